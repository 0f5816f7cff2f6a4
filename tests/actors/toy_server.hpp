#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/connection/http/http.hpp"
#include "actors/connection/io_thread.hpp"
#include "actors/listener/listener.hpp"

namespace skein::test {

/// What a toy service saw, kept for the test's thread.
class ledger {
 public:
  void saw_head(const connection::request_head& head);
  void saw_body(const std::string& body);
  void saw_gone(std::string_view why, unsigned status);
  void keep(std::shared_ptr<connection::response_writer> out);

  [[nodiscard]] std::vector<connection::request_head> heads() const;
  [[nodiscard]] std::vector<std::string> bodies() const;
  [[nodiscard]] std::vector<std::string> gone() const;
  [[nodiscard]] unsigned gone_status() const;  ///< of the last one
  [[nodiscard]] std::shared_ptr<connection::response_writer> last_writer() const;

  std::atomic<int> calls{0};  ///< that live now
  std::atomic<int> writable{0};
  std::atomic<std::size_t> produced{0};     ///< bytes written by /flood
  std::atomic<std::size_t> queued_most{0};  ///< the longest queue /flood has seen

 private:
  mutable std::mutex mutex_;
  std::vector<connection::request_head> heads_;
  std::vector<std::string> bodies_;
  std::vector<std::string> gone_;
  unsigned gone_status_ = 0;
  std::shared_ptr<connection::response_writer> last_writer_;
};

/// A listener with io threads and a service of a few routes:
///   /hello      answers "hello"
///   /echo       answers the body
///   /small      answers the body and wants at most 10 bytes of it, which it says in words of its own
///   /stream?N   streams N events with data 0 .. N-1
///   /wait       answers nothing, /wait-stream begins a stream and writes nothing more
///   /flood?N    streams N bytes, pausing while the queue is above its limit
///   /overrun    streams without looking at the queue
///   /refuse     answers 401 at the head
///   /abort      breaks off in the middle of a stream
///   /throw      throws when it gets the body, /throw-head already before
///   /silent     refuses at the head without any answer
class toy_server {
 public:
  /// `share`: of the memory, of all clients.
  explicit toy_server(const connection::connection_limits& limits = {}, std::size_t lanes = 1, byte_share share = {});
  ~toy_server();
  toy_server(const toy_server&) = delete;  // owns threads
  toy_server& operator=(const toy_server&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] ledger& seen() { return seen_; }
  [[nodiscard]] listener::listener& door() { return *listener_; }
  /// Runs it on the io thread of a lane and waits.
  void run_on_lane(const std::function<void()>& work, std::size_t lane = 0);

 private:
  ledger seen_;
  std::vector<std::unique_ptr<connection::http_service>> services_;
  std::vector<std::unique_ptr<connection::io_thread>> threads_;
  std::unique_ptr<listener::listener> listener_;
  std::uint16_t port_ = 0;
};

/// Waits until the fact is true; false when it does not come true within some seconds.
[[nodiscard]] bool eventually(const std::function<bool()>& fact);

/// Descriptors this process has open.
[[nodiscard]] std::size_t open_descriptors();

}  // namespace skein::test
