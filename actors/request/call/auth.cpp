#include "actors/request/call/auth.hpp"

#include <algorithm>
#include <cstddef>

#include "access/api_key.hpp"
#include "actors/connection/websocket/socket_handshake.hpp"

namespace skein::request {
namespace {

bool same_letters(std::string_view a, std::string_view lower) {
  if (a.size() != lower.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if ((a[i] | 0x20) != lower[i]) return false;
  return true;
}

}  // namespace

bool same_secret(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0u : 1u;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
    difference |= static_cast<unsigned>(static_cast<unsigned char>(given[i] ^ expected));
  }
  return difference == 0;
}

error no_password() { return {error_kind::unauthorized, "invalid or missing password", ""}; }

error no_admin() { return {error_kind::forbidden, "this route needs a key with the admin right", ""}; }

error revoked_key() { return {error_kind::unauthorized, "the key of this request was revoked", ""}; }

error too_many_passwords() {
  return {error_kind::overloaded, "too many wrong passwords from this address; try again later", ""};
}

error too_many_visits() {
  return {error_kind::overloaded, "too many requests without a password from this address; try again later", ""};
}

std::optional<std::string_view> presented_secret(const connection::request_head& head) {
  std::string_view given = head.field("authorization");
  const std::size_t space = given.find(' ');
  if (space != std::string_view::npos) {
    if (!same_letters(given.substr(0, space), "bearer")) return "";
    return given.substr(std::min(given.find_first_not_of(' ', space), given.size()));
  }
  if (!given.empty()) return "";  // a scheme without credentials, or an unknown one
  given = head.field("x-api-key");
  if (given.empty()) given = head.field("api-key");
  for (const auto protocol : connection::offered_protocols(head))
    if (given.empty() && protocol.starts_with(password_protocol)) given = protocol.substr(password_protocol.size());
  return given.empty() ? std::nullopt : std::optional(given);
}

caller_ref identify(std::string_view secret, const service_context& context) {
  auto holder = context.keys->find(secret);
  const std::string& password = context.settings.server.password;
  if (!password.empty() && same_secret(secret, password)) return anybody();
  return holder;
}

caller_ref identify(const sha256_digest& hash_of_secret, const service_context& context) {
  auto holder = context.keys->find(hash_of_secret);
  const std::string& password = context.settings.server.password;
  if (!password.empty() && access::same(hash_of_secret, access::hash_of(password))) return anybody();
  return holder;
}

login log_in(const connection::request_head& head, const service_context& context, protocol::error_style style) {
  const auto secret = presented_secret(head);
  caller_ref found = secret ? identify(*secret, context) : nullptr;
  if (!secret || found) return {std::move(found), std::nullopt};
  if (const auto wait = context.logins->judge(head.remote_address, false, context.time->now()))
    return {nullptr, protocol::to_http(too_many_passwords(), retry_after(*wait), style)};
  return {nullptr, protocol::to_http(no_password(), std::chrono::seconds(1), style)};
}

}  // namespace skein::request
