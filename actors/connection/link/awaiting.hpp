#pragma once
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/clock.hpp"

namespace skein::connection {

/// The completion token of every operation here: it suspends the coroutine and returns errors as values.
inline constexpr auto token = boost::asio::as_tuple(boost::asio::use_awaitable);
inline constexpr auto never = steady_time::max();

[[nodiscard]] inline steady_time now() { return real_clock().now(); }

}  // namespace skein::connection
