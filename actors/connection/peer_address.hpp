#pragma once
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

#include "actors/connection/http.hpp"

namespace skein::connection {

/// Who is at the other end of a socket.
struct peer_address {
  std::string text;  ///< "127.0.0.1", "::1", "unix" or "unix:UID"; IPv4 in IPv6 is written as IPv4
  bool loopback = false;     ///< this machine; unix sockets too
  bool trusted = false;      ///< one of limits.trusted_proxies, which may name "unix"
  bool admin = false;        ///< came through the admin socket
  bool unix_socket = false;
};

[[nodiscard]] peer_address describe_peer(const sockaddr* address, socklen_t size,
                                         const std::vector<std::string>& trusted_proxies);

/// Names the user at the other end of a unix socket, `fd`, so that users are counted apart.
void name_user(peer_address& peer, int fd);

/// The client behind a peer: for a trusted proxy the last address of X-Forwarded-For that is not a trusted proxy
/// itself, since everything to the left of it is the client's own word, and "unknown" where that is no address; for
/// others the peer.
[[nodiscard]] std::string client_address(const peer_address& peer, const header_list& fields,
                                         const std::vector<std::string>& trusted_proxies);

}  // namespace skein::connection
