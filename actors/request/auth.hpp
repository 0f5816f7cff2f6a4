#pragma once
#include <chrono>
#include <optional>
#include <string_view>

#include "actors/connection/http.hpp"
#include "actors/request/service_context.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "protocol/http_error.hpp"

namespace skein::request {

/// Compares in a time that depends on the length of `given` only.
[[nodiscard]] bool same_secret(std::string_view given, std::string_view secret);

/// The refusals of strangers, in one place: none of them tells more than the others.
[[nodiscard]] error no_password();
[[nodiscard]] error too_many_passwords();
[[nodiscard]] error too_many_visits();
[[nodiscard]] error no_admin();
/// What Retry-After says with these two.
[[nodiscard]] inline std::chrono::seconds retry_after(duration wait) {
  return std::chrono::ceil<std::chrono::seconds>(wait);
}

/// What the header brings: `Authorization: Bearer <secret>`, `x-api-key: <secret>` or Azure's `api-key: <secret>`. Of
/// another scheme an empty secret, which no caller has.
[[nodiscard]] std::optional<std::string_view> presented_secret(const connection::request_head& head);

/// Who has this secret, the password or a key; null: nobody.
[[nodiscard]] caller_ref identify(std::string_view secret, const service_context& context);
/// The same by access::hash_of the secret, for a connection that outlives its first request.
[[nodiscard]] caller_ref identify(const sha256_digest& hash_of_secret, const service_context& context);

/// What becomes of the secret that a head presents. Wrong ones are counted; too many of them get 429.
struct login {
  caller_ref who;                               ///< whose it is; null: nobody's, or there is none
  std::optional<protocol::http_error> refusal;  ///< of a wrong secret
};
[[nodiscard]] login log_in(const connection::request_head& head, const service_context& context,
                           protocol::error_style style);

/// What pages in a browser, which can set no header of a WebSocket, offer as a protocol: this and the password.
inline constexpr std::string_view password_protocol = "openai-insecure-api-key.";

}  // namespace skein::request
