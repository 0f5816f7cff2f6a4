#pragma once
#include <chrono>
#include <optional>
#include <string_view>

#include "actors/connection/http/http.hpp"
#include "actors/request/shared/service_context.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "protocol/json/http_error.hpp"

namespace skein::request {

/// The time of the comparison depends only on the length of `given`.
[[nodiscard]] bool same_secret(std::string_view given, std::string_view secret);

/// The refusals, in one place, so that none reveals more than the others.
[[nodiscard]] error no_password();
[[nodiscard]] error too_many_passwords();
[[nodiscard]] error too_many_visits();
[[nodiscard]] error no_admin();
[[nodiscard]] error revoked_key();
/// The Retry-After of too_many_passwords and too_many_visits.
[[nodiscard]] inline std::chrono::seconds retry_after(duration wait) {
  return std::chrono::ceil<std::chrono::seconds>(wait);
}

/// The secret in the header: `Authorization: Bearer <secret>`, `x-api-key: <secret>` or Azure's `api-key: <secret>`.
/// Other schemes give an empty secret, which no caller has.
[[nodiscard]] std::optional<std::string_view> presented_secret(const connection::request_head& head);

/// The caller with this secret (the password or a key); null: none.
[[nodiscard]] caller_ref identify(std::string_view secret, const service_context& context);
/// The same by access::hash_of the secret, for a connection that outlives its first request.
[[nodiscard]] caller_ref identify(const sha256_digest& hash_of_secret, const service_context& context);

/// Result of checking the secret in a header. Wrong secrets are counted; too many of them get 429.
struct login {
  caller_ref who;                               ///< the caller; null: wrong or missing secret
  std::optional<protocol::http_error> refusal;  ///< of a wrong secret
};
[[nodiscard]] login log_in(const connection::request_head& head, const service_context& context,
                           protocol::error_style style);

/// Browsers cannot set headers of a WebSocket, so pages offer this prefix and the password as a subprotocol.
inline constexpr std::string_view password_protocol = "openai-insecure-api-key.";

}  // namespace skein::request
