// A connection that became a WebSocket.
#include <utility>

#include "actors/connection/awaiting.hpp"
#include "actors/connection/exchange.hpp"
#include "actors/connection/http/response_head.hpp"
#include "actors/connection/websocket/socket_frames.hpp"
#include "actors/connection/websocket/socket_handshake.hpp"

namespace skein::connection {
namespace {

namespace asio = boost::asio;

/// How long to wait for the client's close frame.
constexpr std::chrono::seconds farewell_time{2};

}  // namespace

void connection::upgrade(header_list headers) {
  if (exchange_->progress != exchange::answer::none) return log::error("a second response was dropped");
  if (exchange_->http_1_0) {
    headers.emplace_back("Content-Type", "application/json");
    return respond(400, headers, home_->service().error_body(400, "a WebSocket needs HTTP/1.1", ""));
  }
  headers.emplace_back("Upgrade", "websocket");
  headers.emplace_back("Connection", "Upgrade");
  headers.emplace_back("Sec-WebSocket-Accept", accept_of(exchange_->socket_key));
  out_.push(response_head(101, headers, {.now = std::time(nullptr)}));
  exchange_->progress = exchange::answer::streaming;
  exchange_->upgraded = exchange::socket::open;
  flush();
}

void connection::send(std::string_view message) {
  if (exchange_->upgraded == exchange::socket::open) write(text_frame(message));
}

void connection::close_socket(std::uint16_t code, std::string_view reason) {
  if (exchange_->upgraded != exchange::socket::open) return;
  write(close_frame(code, reason));
  exchange_->upgraded = exchange::socket::closing;
  set_read_deadline(now() + farewell_time);
  wake();
}

/// Reads frames until the close handshake is complete or the client is gone. Stops reading from a client that does not
/// read, so that pongs do not accumulate.
asio::awaitable<void> connection::serve_socket() {
  const connection_limits& limits = home_->limits();
  frame_reader frames(limits.socket_message_bytes_max);
  bool asked = false;  // a ping was sent
  set_read_deadline(now() + std::chrono::milliseconds(limits.socket_idle_timeout_ms) / 2);
  for (;;) {
    while (auto event = frames.next(in_)) {
      if (!hear(std::move(*event))) co_return;
      if (closed_) co_return;
    }
    if (in_.empty()) in_.shrink_to_fit();
    if (in_hold_.set(in_.size() + frames.held_bytes()) != byte_share::outcome::taken) {
      if (exchange_->upgraded == exchange::socket::closing) co_return cut("out of memory");
      close_socket(close_code::try_again_later, "not enough memory for the message");
    }
    arrival what = arrival::woken;
    if (out_.bytes() > limits.outbound_bytes_max)
      what = co_await wait_for(asio::socket_base::wait_error);
    else
      what = co_await receive();
    if (closed_) co_return;
    if (what == arrival::broken || what == arrival::end) co_return cut("client closed");
    if (what == arrival::bytes && exchange_->upgraded == exchange::socket::open) {
      asked = false;
      set_read_deadline(now() + std::chrono::milliseconds(limits.socket_idle_timeout_ms) / 2);
    }
    if (what == arrival::late) {
      if (asked || exchange_->upgraded == exchange::socket::closing) co_return cut("idle timeout");
      asked = true;
      write(ping_frame());
      set_read_deadline(now() + std::chrono::milliseconds(limits.socket_idle_timeout_ms) / 2);
    }
    if (home_->closing() && !calls([&] { exchange_->call->leave(); })) co_return cut("internal error");
  }
}

/// Returns false if the connection should end.
bool connection::hear(socket_event event) {
  using kind = socket_event::kind;
  const bool open = exchange_->upgraded == exchange::socket::open;
  switch (event.what) {
    case kind::pong: return true;
    case kind::ping:
      if (open) write(pong_frame(event.data));
      return true;
    case kind::text:
      if (!open || calls([&] { exchange_->call->message(std::move(event.data)); })) return true;
      close_socket(close_code::internal, "internal error");
      return true;
    case kind::close:
      if (open) write(close_frame(event.code, ""));
      break;
    case kind::fault:
      if (open) write(close_frame(event.code, event.data));
      break;
  }
  lose_call(event.what == kind::fault ? event.data : "client closed", client_gone);
  return false;
}

}  // namespace skein::connection
