#include "actors/connection/http/request_target.hpp"

#include <algorithm>
#include <optional>

#include "base/path_text.hpp"

namespace skein::connection {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decode_percent(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

/// Removes scheme and authority from an absolute-form target; nullopt if the target has another form.
std::optional<std::string_view> take_authority(std::string_view& target) {
  const std::size_t colon = target.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  std::string scheme(target.substr(0, colon));
  std::transform(scheme.begin(), scheme.end(), scheme.begin(), [](char c) { return static_cast<char>(c | 0x20); });
  if (scheme != "http" && scheme != "https") return std::nullopt;
  target.remove_prefix(colon + 3);
  const std::string_view authority = target.substr(0, target.find_first_of("/?"));
  if (authority.empty() || authority.find('@') != std::string_view::npos) return std::nullopt;
  target.remove_prefix(authority.size());
  return authority;
}

}  // namespace

accepted<request_target> parse_target(std::string_view method, std::string_view target) {
  for (const char c : target)
    if (c <= 0x20 || c >= 0x7f || c == '#')
      return refusal{400, "the request target contains a character that must be escaped"};

  request_target parts;
  if (target == "*" && method == "OPTIONS") {
    parts.path = "*";
    return parts;
  }
  if (!target.starts_with('/')) {
    const auto authority = take_authority(target);
    if (!authority) return refusal{400, "the request target must be a path or an http URL"};
    parts.authority = *authority;
  }
  const std::size_t question = target.find('?');
  if (question != std::string_view::npos) parts.query = target.substr(question + 1);
  const std::string_view path = target.substr(0, question);

  auto decoded = decode_percent(path.empty() ? "/" : path);
  if (!decoded) return refusal{400, "the request target has an invalid % escape"};
  if (!is_printable_utf8(*decoded)) return refusal{400, "the path is not printable UTF-8"};
  if (has_dot_segment(*decoded)) return refusal{400, "the path has a dot segment"};
  parts.path = std::move(*decoded);
  parts.raw_path = path;
  return parts;
}

}  // namespace skein::connection
