#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>

#include "base/clock.hpp"

namespace skein::connection {

/// The deadlines of one client, for its next bytes and for the current write, on one timer.
class link_deadlines {
 public:
  enum class kind : std::uint8_t { none, read, write };

  explicit link_deadlines(const boost::asio::io_context::executor_type& executor) : timer_(executor) {}

  void set_read(steady_time at);
  void begin_write(steady_time at);
  void end_write() { write_ = steady_time::max(); }
  /// Waits once for the earlier deadline and returns the one that has passed; none: another deadline was set, or none
  /// has passed yet. A read deadline passes once.
  [[nodiscard]] boost::asio::awaitable<kind> wait();
  /// Ends a running wait.
  void cancel() { timer_.cancel(); }

 private:
  void expect_by(steady_time at);

  boost::asio::basic_waitable_timer<std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>,
                                    boost::asio::io_context::executor_type>
      timer_;
  steady_time read_ = steady_time::max();
  steady_time write_ = steady_time::max();
};

}  // namespace skein::connection
