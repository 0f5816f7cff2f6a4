#include "actors/connection/link/client_link.hpp"

#include <boost/asio/post.hpp>
#include <utility>

#include "actors/connection/link/awaiting.hpp"

namespace skein::connection {

namespace asio = boost::asio;
using boost::system::error_code;

client_link::client_link(stream_socket socket, std::span<char> scratch, const connection_limits& limits,
                         link_owner& owner)
    : socket_(std::move(socket)),
      owner_(owner),
      deadlines_(socket_.get_executor()),
      in_(socket_, scratch),
      out_(socket_, deadlines_, limits, owner) {
  error_code ignored;  // a socket that cannot be made non-blocking fails at the first read
  socket_.non_blocking(true, ignored);
}

void client_link::set_read_deadline(steady_time at) {
  in_.expect();
  deadlines_.set_read(at);
}

asio::awaitable<void> client_link::watch() {
  while (!closed_) {
    const auto passed = co_await deadlines_.wait();
    if (passed == link_deadlines::kind::write) co_return owner_.cut("slow_consumer");
    if (passed == link_deadlines::kind::read) in_.set_late();
  }
}

void client_link::end_sending() {
  error_code ignored;
  socket_.shutdown(asio::socket_base::shutdown_send, ignored);
}

void client_link::cut_later(const char* why) {
  asio::post(socket_.get_executor(), [this, alive = owner_.keep_alive(), why] { owner_.cut(why); });
}

void client_link::reset_on_close() {
  error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
}

void client_link::close() {
  closed_ = true;
  error_code ignored;
  socket_.close(ignored);
  deadlines_.cancel();
  out_.close();
  in_.close();
}

}  // namespace skein::connection
