#include "protocol/json/http_error.hpp"

#include <algorithm>

#include "protocol/json/json_writer.hpp"

namespace skein::protocol {
namespace {

/// An empty `code` is written as null.
struct mapping {
  unsigned status;
  std::string_view type, code;
};

std::string_view conflict_code(std::string_view field) {
  if (field == "Idempotency-Key") return "idempotency_key_reused";
  if (field == "session_id") return "session_busy";
  if (field == "expected_version") return "version_conflict";
  if (field == "model" || field == "state_name") return "model_mismatch";
  return "";
}

mapping map(const error& e) {
  switch (e.kind) {
    case error_kind::invalid_argument:
    case error_kind::bad_file: return {400, "invalid_request_error", ""};
    case error_kind::unsupported: return {400, "invalid_request_error", "unsupported_parameter"};
    case error_kind::unauthorized: return {401, "authentication_error", "invalid_api_key"};
    case error_kind::forbidden: return {403, "permission_error", ""};
    case error_kind::not_found:
      return {404, "invalid_request_error", e.field == "model" ? "model_not_found" : "not_found"};
    case error_kind::missing_file: return {404, "invalid_request_error", "not_found"};
    case error_kind::in_use:
    case error_kind::conflict:
      if (e.field == "Idempotency-Key") return {422, "invalid_request_error", conflict_code(e.field)};
      return {409, "conflict", conflict_code(e.field)};
    case error_kind::damaged: return {410, "invalid_request_error", "state_corrupt"};
    case error_kind::no_space: return {507, "server_error", "insufficient_storage"};
    case error_kind::no_memory: return {507, "insufficient_memory", ""};
    case error_kind::too_large:
      if (!e.field.empty()) return {400, "invalid_request_error", "context_length_exceeded"};
      return {413, "invalid_request_error", "request_too_large"};
    case error_kind::overloaded: return {429, "rate_limit_error", "rate_limit_exceeded"};
    case error_kind::cancelled: return {499, "server_error", "cancelled"};
    case error_kind::unavailable: return {503, "service_unavailable", ""};
    case error_kind::timeout: return {504, "server_error", "timeout"};
    case error_kind::io:
    case error_kind::bad_config:
    case error_kind::internal: break;
  }
  return {500, "server_error", ""};
}

std::string body_of(const mapping& as, std::string_view message, std::string_view param) {
  std::string body;
  json_writer out(body);
  const auto text_or_null = [&](std::string_view text) { text.empty() ? out.null() : out.value(text); };
  out.begin_object().key("error").begin_object();
  out.key("message").value(message);
  out.key("type").value(as.type);
  out.key("param");
  text_or_null(param);
  out.key("code");
  text_or_null(as.code);
  out.end_object().end_object();
  return body;
}

std::string body_in(error_style style, const mapping& as, std::string_view text, std::string_view field) {
  if (style == error_style::openai) return body_of(as, text, field);
  const std::string message = (as.status == 401 ? "Unauthorized: " : "") + std::string(text);
  std::string body;
  json_writer out(body);
  out.begin_object();
  if (style == error_style::detail) out.key("detail").value(message);
  out.key("error").value(message).end_object();
  return body;
}

}  // namespace

http_error to_http(const error& e, std::chrono::seconds retry_after, error_style style) {
  const auto as = map(e);
  http_error answer{as.status, {}, body_in(style, as, e.message, e.field)};
  if (as.code == "version_conflict" || as.code == "model_mismatch" || as.code == "idempotency_key_reused")
    answer.headers.emplace_back("x-should-retry", "false");  // a retry would fail again
  if (as.status == 401) answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (as.status == 429 || as.status == 503) {
    const auto wait = std::clamp(retry_after, std::chrono::seconds(1), retry_after_max);
    answer.headers.emplace_back("Retry-After", std::to_string(wait.count()));
  }
  return answer;
}

http_error method_not_allowed(std::string_view allow, error_style style) {
  const mapping as{405, "invalid_request_error", "method_not_allowed"};
  return {
      as.status, {{"Allow", std::string(allow)}}, body_in(style, as, "this route allows " + std::string(allow), "")};
}

std::string error_body(unsigned status, std::string_view message, error_style style) {
  mapping as{status, status < 500 ? "invalid_request_error" : "server_error", ""};
  if (status == 413) as.code = "request_too_large";
  if (status == 503) as.type = "service_unavailable";
  return body_in(style, as, message, "");
}

}  // namespace skein::protocol
