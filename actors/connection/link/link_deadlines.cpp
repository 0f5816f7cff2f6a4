#include "actors/connection/link/link_deadlines.hpp"

#include <algorithm>

#include "actors/connection/link/awaiting.hpp"

namespace skein::connection {

void link_deadlines::set_read(steady_time at) {
  read_ = at;
  expect_by(at);
}

void link_deadlines::begin_write(steady_time at) {
  write_ = at;
  expect_by(at);
}

boost::asio::awaitable<link_deadlines::kind> link_deadlines::wait() {
  // The deadline of a finished write stays in the timer and is checked when it passes, so a stream of tokens sets the
  // timer once per write_timeout_ms instead of with every token.
  timer_.expires_at(std::min(read_, write_));
  co_await timer_.async_wait(token);
  const steady_time time = now();
  if (time >= write_) co_return kind::write;
  if (time < read_) co_return kind::none;
  read_ = never;
  co_return kind::read;
}

/// Makes a running wait end at `at` or earlier.
void link_deadlines::expect_by(steady_time at) {
  if (at < timer_.expiry()) timer_.cancel();
}

}  // namespace skein::connection
