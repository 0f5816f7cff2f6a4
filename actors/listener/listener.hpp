#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/connection/connection_counts.hpp"
#include "actors/connection/http.hpp"
#include "actors/connection/io_thread.hpp"
#include "actors/listener/tls_door.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace skein::listener {

/// One io thread and what answers the requests that arrive there.
struct io_lane {
  connection::io_thread& thread;
  connection::http_service& service;
};

/// Takes sockets on the first lane's io thread and deals them to the lanes in turn. Too many connections, in all or of
/// one address, are answered 503 and closed; when descriptors run out, accepting pauses.
///
/// Every function may be called from any thread but the lanes' own. Threads and services must outlive the listener; its
/// end, stop(), leaves no connection behind.
class listener {
 public:
  /// `lanes` has at least one.
  listener(const std::vector<io_lane>& lanes, const connection::connection_limits& limits);
  ~listener();
  listener(const listener&) = delete;  // one owner of the sockets
  listener& operator=(const listener&) = delete;

  /// Listens on host and port ("127.0.0.1", "::", "localhost", a name) and answers the port, which matters for port 0.
  [[nodiscard]] result<std::uint16_t> listen_tcp(const std::string& host, std::uint16_t port);
  /// Listens on a unix socket at that path; the file is removed with stop_accepting().
  [[nodiscard]] result<void> listen_unix(const std::string& path);
  /// Likewise, for the administrator: only the owner of this process may connect, and request_head::admin is set.
  [[nodiscard]] result<void> listen_admin(const std::string& path);
  /// As listen_tcp, with TLS as `door` says, which has a certificate.
  [[nodiscard]] result<std::uint16_t> listen_tls(const std::string& host, std::uint16_t port,
                                                 std::shared_ptr<const tls_door> door);
  /// Accepts from a listening socket that someone else made (systemd), with TLS where there is a door. Takes the
  /// descriptor over.
  [[nodiscard]] result<void> adopt(int fd, std::shared_ptr<const tls_door> door = nullptr);

  /// From now on these limits count, on every lane.
  void change(const connection::connection_limits& limits);
  /// Closes the acceptors; connections go on.
  void stop_accepting();
  /// Closes connections that wait for a request. The others say Connection: close in their response and close after it.
  void close_idle();
  /// Both of these, then waits: until all connections are closed, or the deadline, when the rest is cut. Harmless when
  /// repeated.
  void stop(steady_time deadline);

  [[nodiscard]] connection::connection_counts& counts();

 private:
  class desk;
  std::shared_ptr<desk> desk_;
};

}  // namespace skein::listener
