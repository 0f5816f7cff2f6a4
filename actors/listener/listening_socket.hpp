#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace skein::listener {

/// Owner of a socket that is bound and listens.
class listening_socket {
 public:
  explicit listening_socket(int fd) : fd_(fd) {}
  ~listening_socket();
  listening_socket(listening_socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  listening_socket& operator=(listening_socket&&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  /// Of the bound address; 0 for unix sockets.
  [[nodiscard]] std::uint16_t port() const;
  /// The bound address without its port, as "127.0.0.1" or "::"; the path of a unix socket; empty: another kind.
  [[nodiscard]] std::string address() const;
  /// AF_INET, AF_INET6 or AF_UNIX.
  [[nodiscard]] int family() const;
  /// Hands the descriptor to the caller.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// Listens on a host and port. `localhost` means both loopback addresses where both exist, on one port; `::` takes IPv4
/// too. Port 0 lets the system choose.
[[nodiscard]] result<std::vector<listening_socket>> listen_on_tcp(const std::string& host, std::uint16_t port);

/// Listens on a unix socket. A socket file that nobody answers on is replaced, anything else at that path is left
/// alone. `mode`: the file's permissions, as far as the process's mask allows them.
[[nodiscard]] result<listening_socket> listen_on_unix(const std::string& path, mode_t mode = 0777);

}  // namespace skein::listener
