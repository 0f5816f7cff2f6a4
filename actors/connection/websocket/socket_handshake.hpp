#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/connection/http/http.hpp"
#include "actors/connection/http/refusal.hpp"

/// The WebSocket opening handshake (RFC 6455, 4.2).
namespace skein::connection {

/// Whether the request asks for a WebSocket, valid or not.
[[nodiscard]] bool asks_for_socket(const request_head& head);
/// Checks the handshake: 400 if it is malformed, 426 if the version is not 13.
[[nodiscard]] std::optional<refusal> judge_handshake(const request_head& head);
/// The Sec-WebSocket-Accept value for a key.
[[nodiscard]] std::string accept_of(std::string_view key);
/// The subprotocols that the client offers, in its order.
[[nodiscard]] std::vector<std::string_view> offered_protocols(const request_head& head);

}  // namespace skein::connection
