#pragma once
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

#include "actors/connection/http/http.hpp"

namespace skein::connection {

/// The peer of a socket.
struct peer_address {
  std::string text;       ///< "127.0.0.1", "::1", "unix" or "unix:UID"; IPv4 in IPv6 is written as IPv4
  bool loopback = false;  ///< this machine; unix sockets too
  bool trusted = false;   ///< one of limits.trusted_proxies, which may name "unix"
  bool admin = false;     ///< connected to the admin socket
  bool unix_socket = false;
};

[[nodiscard]] peer_address describe_peer(const sockaddr* address, socklen_t size,
                                         const std::vector<std::string>& trusted_proxies);

/// Adds the peer's user id for a unix socket `fd`, so that users are counted separately.
void name_user(peer_address& peer, int fd);

/// The client behind a peer. For a trusted proxy: the last address of X-Forwarded-For that is not a trusted proxy
/// itself, since everything to the left of it is client-supplied, or "unknown" if that is not an address. Otherwise:
/// the peer.
[[nodiscard]] std::string client_address(const peer_address& peer, const header_list& fields,
                                         const std::vector<std::string>& trusted_proxies);

}  // namespace skein::connection
