#include "actors/request/call/route.hpp"

#include <charconv>

namespace skein::request {
namespace {

/// Invalid escapes stay as they are; in paths, request_gate lets only valid ones pass.
std::string decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size()) {
      const auto [end, code] = std::from_chars(&text[i] + 1, &text[i] + 3, byte, 16);
      if (code == std::errc() && end == &text[i] + 3) {
        out += static_cast<char>(byte);
        i += 2;
        continue;
      }
    }
    out += plus_is_space && text[i] == '+' ? ' ' : text[i];
  }
  return out;
}

/// Cuts the first part, up to the next `border`, off the front.
std::string_view take_part(std::string_view& rest, char border) {
  const std::size_t end = rest.find(border);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return part;
}

}  // namespace

std::optional<std::vector<std::string>> match_path(std::string_view pattern, std::string_view raw_path) {
  std::vector<std::string> open;
  while (!pattern.empty()) {
    const bool more_pattern = pattern.find('/') != std::string_view::npos;
    const std::string_view whole = raw_path;
    const bool more_path = raw_path.find('/') != std::string_view::npos;
    const std::string_view expected = take_part(pattern, '/');
    const std::string_view part = take_part(raw_path, '/');
    if (expected == "{*}") {
      if (whole.empty()) return std::nullopt;
      open.push_back(decoded(whole, false));
      return open;
    }
    if (more_pattern != more_path) return std::nullopt;
    if (expected == "{}") {
      if (part.empty()) return std::nullopt;
      open.push_back(decoded(part, false));
    } else if (decoded(part, false) != expected) {
      return std::nullopt;
    }
  }
  if (!raw_path.empty()) return std::nullopt;
  return open;
}

std::optional<std::string> query_field(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    std::string_view pair = take_part(query, '&');
    const std::string_view key = take_part(pair, '=');
    if (decoded(key, true) == name) return decoded(pair, true);
  }
  return std::nullopt;
}

}  // namespace skein::request
