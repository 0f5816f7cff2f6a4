#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/connection/connection_counts.hpp"
#include "actors/connection/http/http.hpp"
#include "actors/connection/io_thread.hpp"
#include "actors/listener/tls_door.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace skein::listener {

/// One io thread and the service that answers its requests.
struct io_lane {
  connection::io_thread& thread;
  connection::http_service& service;
};

/// Accepts sockets on the first lane's io thread and distributes them to the lanes in turn. Connections above a limit,
/// in total or per address, get 503 and are closed. If the process runs out of descriptors, accepting pauses.
///
/// Every function may be called from any thread except those of the lanes. Threads and services must outlive the
/// listener; stop() ends all connections.
class listener {
 public:
  /// `lanes` has at least one.
  listener(const std::vector<io_lane>& lanes, const connection::connection_limits& limits);
  ~listener();
  listener(const listener&) = delete;  // one owner of the sockets
  listener& operator=(const listener&) = delete;

  /// Listens on host ("127.0.0.1", "::", "localhost", a name) and port; returns the port, which differs if `port` is 0.
  [[nodiscard]] result<std::uint16_t> listen_tcp(const std::string& host, std::uint16_t port);
  /// Listens on a unix socket at that path; stop_accepting() removes the file.
  [[nodiscard]] result<void> listen_unix(const std::string& path);
  /// The same for the administrator: only the user of this process may connect, and request_head::admin is set.
  [[nodiscard]] result<void> listen_admin(const std::string& path);
  /// As listen_tcp, with TLS by `door`, which must have a certificate.
  [[nodiscard]] result<std::uint16_t> listen_tls(const std::string& host, std::uint16_t port,
                                                 std::shared_ptr<const tls_door> door);
  /// Accepts from a listening socket created by another process (systemd), with TLS if `door` is not null. Takes
  /// ownership of the descriptor.
  [[nodiscard]] result<void> adopt(int fd, std::shared_ptr<const tls_door> door = nullptr);

  /// Applies new limits on every lane.
  void change(const connection::connection_limits& limits);
  /// Closes the acceptors; connections continue.
  void stop_accepting();
  /// Closes connections that wait for a request. The others send Connection: close in their response and close after
  /// it.
  void close_idle();
  /// Does both, then waits until all connections are closed; cuts the rest at the deadline. May be repeated.
  void stop(steady_time deadline);

  [[nodiscard]] connection::connection_counts& counts();

 private:
  class desk;
  std::shared_ptr<desk> desk_;
};

}  // namespace skein::listener
