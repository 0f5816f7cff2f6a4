#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace skein::protocol {

/// The format of errors: an OpenAI object, or that of the older servers, {"error":"<message>"}, for some of them with
/// an additional "detail":"<message>".
enum class error_style : std::uint8_t { openai, flat, detail };

/// An error as an HTTP response. `headers` are additional ones; the sender adds Content-Type and the rest.
struct http_error {
  unsigned status = 500;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;  ///< {"error":{"message","type","param","code"}}; sent as an event in a stream
};

/// Clients honour Retry-After without a limit of their own, so it is limited here.
inline constexpr std::chrono::seconds retry_after_max{30};

/// The only mapping from error kinds to HTTP:
///   invalid_argument, bad_file  400 invalid_request_error
///   unsupported                 400 invalid_request_error, unsupported_parameter
///   unauthorized                401 authentication_error, invalid_api_key; WWW-Authenticate: Bearer
///   forbidden                   403 permission_error
///   not_found, missing_file     404 invalid_request_error, not_found; model_not_found if the field is "model"
///   conflict                    409 conflict; by field: session_id session_busy, expected_version version_conflict,
///                               model and state_name model_mismatch; x-should-retry: false if a retry cannot help
///                               Idempotency-Key: 422 invalid_request_error, idempotency_key_reused
///   damaged                     410 state_corrupt
///   no_space                    507 insufficient_storage
///   no_memory                   507 insufficient_memory
///   too_large                   413 invalid_request_error, request_too_large; with a field, the prompt is too long,
///                               not the body: 400, context_length_exceeded
///   overloaded                  429 rate_limit_error, rate_limit_exceeded; Retry-After
///   cancelled                   499, only for the log: the client has disconnected
///   unavailable                 503 service_unavailable; Retry-After
///   timeout                     504 server_error, timeout
///   io, bad_config, internal    500 server_error
/// `retry_after` is clamped to 1 second .. retry_after_max.
[[nodiscard]] http_error to_http(const error& e, std::chrono::seconds retry_after = std::chrono::seconds(1),
                                 error_style style = error_style::openai);

/// 405: the route exists, with the methods in `allow` ("GET, HEAD").
[[nodiscard]] http_error method_not_allowed(std::string_view allow, error_style style = error_style::openai);

/// The body for an error of the HTTP layer itself (400 framing, 408, 413, 414, 417, 431, 501, 503).
[[nodiscard]] std::string error_body(unsigned status, std::string_view message,
                                     error_style style = error_style::openai);

}  // namespace skein::protocol
