#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace skein::listener {

/// Owns a bound, listening socket.
class listening_socket {
 public:
  explicit listening_socket(int fd) : fd_(fd) {}
  ~listening_socket();
  listening_socket(listening_socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  listening_socket& operator=(listening_socket&&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  /// The port of the bound address; 0 for unix sockets.
  [[nodiscard]] std::uint16_t port() const;
  /// The bound address without its port, such as "127.0.0.1" or "::"; the path of a unix socket; empty for other
  /// families.
  [[nodiscard]] std::string address() const;
  /// AF_INET, AF_INET6 or AF_UNIX.
  [[nodiscard]] int family() const;
  /// Transfers ownership of the descriptor to the caller.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// Listens on a host and port. `localhost` means both loopback addresses, if both exist, on one port; `::` accepts IPv4
/// too. Port 0 lets the system choose.
[[nodiscard]] result<std::vector<listening_socket>> listen_on_tcp(const std::string& host, std::uint16_t port);

/// Listens on a unix socket. Replaces a stale socket file; fails if anything else is at that path. `mode`: permissions
/// of the file, restricted by the umask.
[[nodiscard]] result<listening_socket> listen_on_unix(const std::string& path, mode_t mode = 0777);

}  // namespace skein::listener
