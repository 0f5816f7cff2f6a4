#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/connection/http.hpp"
#include "actors/connection/refusal.hpp"

/// How an HTTP request becomes a WebSocket (RFC 6455, 4.2).
namespace skein::connection {

/// Whether the request asks for a WebSocket, be it well or badly.
[[nodiscard]] bool asks_for_socket(const request_head& head);
/// What is wrong with it as such: 400, or 426 for a version that is not 13.
[[nodiscard]] std::optional<refusal> judge_handshake(const request_head& head);
/// What Sec-WebSocket-Accept says to a key.
[[nodiscard]] std::string accept_of(std::string_view key);
/// The protocols that the client offers, in its order.
[[nodiscard]] std::vector<std::string_view> offered_protocols(const request_head& head);

}  // namespace skein::connection
