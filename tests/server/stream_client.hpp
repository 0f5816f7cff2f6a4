#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/streamed_answer.hpp"

namespace skein::test {

/// How a connection ends from our side.
enum class departure {
  close,       ///< an orderly end; the kernel makes it a reset when bytes are left unread
  reset,       ///< RST
  half_close,  ///< sends no more, reads on until the server closes
};

/// What one connection does: it sends, reads, and leaves at the latest when its answer is complete.
struct visit {
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

  std::string request;
  std::size_t send_bytes = all;                                           ///< leaves after that many request bytes
  std::size_t read_bytes = all;                                           ///< leaves after that many answer bytes
  std::chrono::microseconds patience = std::chrono::microseconds::max();  ///< leaves so long after it has sent
  departure leaves = departure::close;
  bool slow = false;  ///< takes little into the kernel's buffers, and reads only after read_on()
};

/// Thousands of connections to one server on this machine from one thread, with epoll and plain sockets.
class stream_client {
 public:
  using index = std::size_t;

  explicit stream_client(std::uint16_t port);
  ~stream_client();
  stream_client(const stream_client&) = delete;  // owns descriptors
  stream_client& operator=(const stream_client&) = delete;

  /// Connects; everything else happens in run_until. Numbers count from 0.
  index start(visit what);
  /// Works until `enough` says yes, which is asked after each round. Throws std::runtime_error when nothing has
  /// happened for half a minute: a hanging server is a failed test, not a hanging one.
  void run_until(const std::function<bool()>& enough);
  /// Works until every connection has ended.
  void run();
  /// Lets a slow reader read from now on.
  void read_on(index i);

  [[nodiscard]] const streamed_answer& answer(index i) const { return guests_[i]->answer; }
  [[nodiscard]] bool open(index i) const { return guests_[i]->fd >= 0; }
  [[nodiscard]] std::size_t started() const { return guests_.size(); }
  [[nodiscard]] std::size_t open() const { return open_; }

 private:
  using time_point = std::chrono::steady_clock::time_point;
  struct guest {
    int fd = -1;
    visit what;
    std::size_t sent = 0;
    std::size_t received = 0;
    bool reads = true;
    bool leaving = false;  ///< half-closed
    streamed_answer answer;
  };

  void watch(index i, int operation);
  void handle(index i, std::uint32_t events);
  void send(index i);
  void receive(index i);
  void leave(index i);
  void end(index i);
  [[nodiscard]] bool sent_all(const guest& g) const;

  const std::uint16_t port_;
  int epoll_ = -1;
  std::size_t open_ = 0;
  std::vector<std::unique_ptr<guest>> guests_;
  std::multimap<time_point, index> leave_at_;
};

}  // namespace skein::test
