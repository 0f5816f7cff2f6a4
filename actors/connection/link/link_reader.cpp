#include "actors/connection/link/link_reader.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <utility>

#include "actors/connection/link/awaiting.hpp"

namespace skein::connection {

namespace asio = boost::asio;

asio::awaitable<arrival> link_reader::receive() {
  std::string_view fresh;
  const arrival what = co_await receive(fresh);
  bytes_ += fresh;
  co_return what;
}

asio::awaitable<arrival> link_reader::receive(std::string_view& fresh) {
  fresh = {};
  for (;;) {
    if (ended_) co_return arrival::end;
    const arrival what = co_await wait_for(asio::socket_base::wait_read);
    if (what != arrival::bytes) co_return what;
    boost::system::error_code ec;
    const std::size_t count = socket_.read_some(asio::buffer(scratch_.data(), scratch_.size()), ec);
    fresh = std::string_view(scratch_.data(), count);
    if (!ec) co_return arrival::bytes;
    ended_ = ec == asio::error::eof;
    if (!ended_ && ec != asio::error::would_block) co_return arrival::broken;
  }
}

asio::awaitable<arrival> link_reader::listen(std::size_t bytes_max) {
  const bool deaf = ended_ || bytes_.size() >= bytes_max;
  if (deaf) return wait_for(asio::socket_base::wait_error);
  return receive();
}

asio::awaitable<arrival> link_reader::wait_for(asio::socket_base::wait_type ready) {
  if (!woken_ && !late_) {
    const auto [failed] = co_await socket_.async_wait(ready, asio::bind_cancellation_slot(stop_waiting_.slot(), token));
    if (!woken_ && !late_)
      co_return failed || ready == asio::socket_base::wait_error ? arrival::broken : arrival::bytes;
  }
  if (std::exchange(woken_, false)) co_return arrival::woken;
  late_ = false;
  co_return arrival::late;
}

void link_reader::wake() {
  woken_ = true;
  stop_waiting_.emit(asio::cancellation_type::all);
}

void link_reader::set_late() {
  late_ = true;
  stop_waiting_.emit(asio::cancellation_type::all);
}

void link_reader::close() {
  bytes_.clear();
  hold_.clear();
  wake();
}

}  // namespace skein::connection
