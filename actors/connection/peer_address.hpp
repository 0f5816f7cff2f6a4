#pragma once
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

#include "actors/connection/http.hpp"

namespace skein::connection {

/// Who is at the other end of a socket.
struct peer_address {
  std::string text;       ///< "127.0.0.1", "::1" or "unix"; IPv4 in IPv6 is written as IPv4
  bool loopback = false;  ///< this machine; unix sockets too
  bool trusted = false;   ///< one of limits.trusted_proxies
  bool admin = false;     ///< came through the admin socket
};

[[nodiscard]] peer_address describe_peer(const sockaddr* address, socklen_t size,
                                         const std::vector<std::string>& trusted_proxies);

/// The client behind a peer: for a trusted proxy the last address of X-Forwarded-For that is not a trusted proxy
/// itself, since everything to the left of it is the client's own word; for others the peer.
[[nodiscard]] std::string client_address(const peer_address& peer, const header_list& fields,
                                         const std::vector<std::string>& trusted_proxies);

}  // namespace skein::connection
