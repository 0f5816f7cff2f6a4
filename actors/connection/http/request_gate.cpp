#include "actors/connection/http/request_gate.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "actors/connection/http/request_target.hpp"

namespace skein::connection {
namespace {

constexpr std::string_view known_methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
constexpr std::size_t method_bytes_max = 32;

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

std::vector<std::string_view> values_of(const header_list& fields, std::string_view name) {
  std::vector<std::string_view> values;
  for (const auto& [n, v] : fields)
    if (n == name) values.emplace_back(v);
  return values;
}

/// Whether the comma-separated lists in the fields of that name contain the token.
bool lists_token(const header_list& fields, std::string_view name, std::string_view token) {
  for (std::string_view list : values_of(fields, name)) {
    while (!list.empty()) {
      std::string_view item = list.substr(0, list.find(','));
      list.remove_prefix(std::min(item.size() + 1, list.size()));
      const std::size_t first = item.find_first_not_of(" \t");
      if (first == std::string_view::npos) continue;
      item = item.substr(first, item.find_last_not_of(" \t") - first + 1);
      if (equal_ignoring_case(item, token)) return true;
    }
  }
  return false;
}

std::optional<refusal> judge_method(std::string_view method) {
  const bool upper_case = std::all_of(method.begin(), method.end(), [](char c) { return c < 'a' || c > 'z'; });
  if (!upper_case || method.size() > method_bytes_max) return refusal{400, "the method is malformed"};
  if (std::find(std::begin(known_methods), std::end(known_methods), method) == std::end(known_methods))
    return refusal{501, "the method is not supported"};
  return std::nullopt;
}

std::optional<refusal> judge_host(const header_list& fields, bool http_1_0) {
  constexpr std::string_view allowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%!$&'()*+;=:[]";
  const auto hosts = values_of(fields, "host");
  if (hosts.size() > 1 || (hosts.empty() && !http_1_0)) return refusal{400, "a request needs exactly one Host"};
  if (!hosts.empty() && hosts[0].find_first_not_of(allowed) != std::string_view::npos)
    return refusal{400, "the Host is malformed"};
  return std::nullopt;
}

accepted<body_framing> judge_framing(const header_list& fields, bool http_1_0, std::uint64_t body_bytes_max) {
  const auto codings = values_of(fields, "transfer-encoding");
  const auto lengths = values_of(fields, "content-length");
  body_framing framing;
  if (!codings.empty()) {
    if (http_1_0) return refusal{400, "Transfer-Encoding is not allowed in HTTP/1.0"};
    if (!lengths.empty()) return refusal{400, "Transfer-Encoding and Content-Length exclude each other"};
    if (codings.size() > 1 || !equal_ignoring_case(codings[0], "chunked"))
      return refusal{400, "Transfer-Encoding must be chunked"};
    framing.chunked = true;
    return framing;
  }
  if (lengths.empty()) return framing;
  if (lengths.size() > 1) return refusal{400, "there is more than one Content-Length"};
  const std::string_view digits = lengths[0];
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos)
    return refusal{400, "Content-Length must be a number"};
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), framing.content_length);
  if (parsed.ec != std::errc() || framing.content_length > body_bytes_max) return body_too_large(body_bytes_max);
  return framing;
}

/// Without this check a compressed body would fail as invalid JSON; the client should see the actual reason.
std::optional<refusal> judge_content_encoding(const header_list& fields) {
  for (const std::string_view coding : values_of(fields, "content-encoding"))
    if (!coding.empty() && !equal_ignoring_case(coding, "identity"))
      return refusal{415, "Content-Encoding: " + std::string(coding) + " is not supported; send the body unencoded"};
  return std::nullopt;
}

}  // namespace

accepted<admission> pass_gate(raw_header&& header, const connection_limits& limits) {
  admission admitted;
  admitted.http_1_0 = header.version == 10;
  if (header.fields.size() > limits.header_fields_max) return refusal{431, "the header has too many fields"};
  if (auto refused = judge_method(header.method)) return *refused;
  if (auto refused = judge_host(header.fields, admitted.http_1_0)) return *refused;

  if (auto refused = judge_content_encoding(header.fields)) return *refused;

  const bool upload = header.method == "PUT";
  const auto framing =
      judge_framing(header.fields, admitted.http_1_0, upload ? limits.upload_bytes_max : limits.body_bytes_max);
  if (!framing) return framing.error();
  admitted.framing = *framing;
  admitted.framing.upload = upload;

  auto target = parse_target(header.method, header.target);
  if (!target) return target.error();
  if (!target->authority.empty())  // then it replaces Host (RFC 9112, 3.2.2)
    for (auto& [name, value] : header.fields)
      if (name == "host") value = target->authority;

  for (const std::string_view expectation : values_of(header.fields, "expect")) {
    if (!equal_ignoring_case(expectation, "100-continue")) return refusal{417, "Expect must be 100-continue"};
    admitted.expects_continue = !admitted.http_1_0;
  }
  admitted.keep_alive = admitted.http_1_0 ? lists_token(header.fields, "connection", "keep-alive")
                                          : !lists_token(header.fields, "connection", "close");
  admitted.head.method = std::move(header.method);
  admitted.head.path = std::move(target->path);
  admitted.head.raw_path = std::move(target->raw_path);
  admitted.head.query = std::move(target->query);
  admitted.head.fields = std::move(header.fields);
  return admitted;
}

}  // namespace skein::connection
