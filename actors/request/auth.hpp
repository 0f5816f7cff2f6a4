#pragma once
#include <chrono>
#include <string_view>

#include "actors/connection/http.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"

namespace skein::request {

/// Compares in a time that depends on the length of `given` only.
[[nodiscard]] bool same_secret(std::string_view given, std::string_view secret);

/// The refusals of strangers, in one place: none of them tells more than the others.
[[nodiscard]] error no_password();
[[nodiscard]] error too_many_passwords();
/// What Retry-After says with too_many_passwords().
[[nodiscard]] inline std::chrono::seconds retry_after(duration wait) {
  return std::chrono::ceil<std::chrono::seconds>(wait);
}

enum class credentials : std::uint8_t { none, right, wrong };

/// What pages in a browser, which can set no header of a WebSocket, offer as a protocol: this and the password.
inline constexpr std::string_view password_protocol = "openai-insecure-api-key.";

/// What the header says: `Authorization: Bearer <password>` or `x-api-key: <password>`, or the protocols of a
/// WebSocket.
[[nodiscard]] credentials check_header(const connection::request_head& head, std::string_view password);

}  // namespace skein::request
