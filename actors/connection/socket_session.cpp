#include "actors/connection/socket_session.hpp"

#include <chrono>
#include <utility>

#include "actors/connection/link/awaiting.hpp"
#include "actors/connection/service_call.hpp"

namespace skein::connection {

namespace asio = boost::asio;

socket_session::socket_session(client_link& link, const connection_set& home, http_call& call,
                               std::shared_ptr<http_response> out, std::uint64_t connection_number)
    : link_(link),
      home_(home),
      call_(call),
      out_(std::move(out)),
      connection_number_(connection_number),
      frames_(home.limits().socket_message_bytes_max) {}

asio::awaitable<socket_session::ending> socket_session::serve() {
  std::string& in = link_.in().bytes();
  expect_sign_of_life();
  for (;;) {
    while (auto event = frames_.next(in)) {
      if (!hear(std::move(*event)) || link_.closed()) co_return ending{std::move(why_), false};
    }
    if (in.empty()) in.shrink_to_fit();
    if (link_.in().hold().set(in.size() + frames_.held_bytes()) != byte_share::outcome::taken) {
      if (!is_open()) co_return ending{"out of memory", true};
      out_->close(close_code::try_again_later, "not enough memory for the message");
    }
    arrival what = arrival::woken;
    if (link_.out().bytes() > home_.limits().outbound_bytes_max)
      what = co_await link_.in().wait_for(asio::socket_base::wait_error);
    else
      what = co_await link_.in().receive();
    if (link_.closed()) co_return ending{"", false};
    if (what == arrival::broken || what == arrival::end) co_return ending{"client closed", true};
    if (what == arrival::bytes && is_open()) {
      asked_ = false;
      expect_sign_of_life();
    }
    if (what == arrival::late) {
      if (asked_ || !is_open()) co_return ending{"idle timeout", true};
      asked_ = true;
      out_->send_frame(ping_frame());
      expect_sign_of_life();
    }
    if (home_.closing() && !into_service(connection_number_, [&] { call_.leave(); }))
      co_return ending{"internal error", true};
  }
}

void socket_session::expect_sign_of_life() {
  link_.set_read_deadline(now() + std::chrono::milliseconds(home_.limits().socket_idle_timeout_ms) / 2);
}

/// Returns false if the session is over.
bool socket_session::hear(socket_event event) {
  using kind = socket_event::kind;
  switch (event.what) {
    case kind::pong: return true;
    case kind::ping:
      if (is_open()) out_->send_frame(pong_frame(event.data));
      return true;
    case kind::text:
      if (!is_open() || into_service(connection_number_, [&] { call_.message(std::move(event.data)); })) return true;
      out_->close(close_code::internal, "internal error");
      return true;
    case kind::close:
      if (is_open()) out_->send_frame(close_frame(event.code, ""));
      why_ = "client closed";
      return false;
    case kind::fault:
      if (is_open()) out_->send_frame(close_frame(event.code, event.data));
      why_ = event.data;
      return false;
  }
  return false;
}

}  // namespace skein::connection
