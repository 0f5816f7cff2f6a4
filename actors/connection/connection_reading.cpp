// The reading half of a connection. A co_await here is always a statement or an initialiser of its own: GCC 12 loses
// `this` if one follows && or ||.
#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "actors/connection/awaiting.hpp"
#include "actors/connection/exchange.hpp"
#include "actors/connection/http/body_decoder.hpp"
#include "actors/connection/http/header_scan.hpp"

namespace skein::connection {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

/// How long the unread rest of a request is discarded before closing, so that the close does not reset the connection
/// before the client has read the response.
constexpr std::chrono::seconds goodbye_time{2};

/// Size of the empty lines at the beginning of `bytes`.
std::size_t leading_empty_lines(std::string_view bytes) {
  std::size_t size = 0;
  while (bytes.substr(size).starts_with("\r\n")) size += 2;
  return size;
}

}  // namespace

asio::awaitable<void> connection::run() {
  for (bool another = true; another;) another = co_await serve_one();
  co_await say_goodbye();
  close();
}

/// Returns false if the connection should end.
asio::awaitable<bool> connection::serve_one() {
  auto header = co_await read_header();
  if (!header) co_return false;
  auto admitted = pass_gate(std::move(*header), home_->limits());
  if (!admitted) {
    refuse(admitted.error(), header->fields, header->target);
    co_return false;
  }
  const body_framing framing = admitted->framing;
  begin_exchange(std::move(*admitted));
  if (!exchange_) co_return false;
  if (exchange_->upgraded != exchange::socket::none) {
    co_await serve_socket();
    co_return false;
  }
  if (exchange_->progress != exchange::answer::complete) {
    const bool body_read = co_await read_body(framing);
    if (!body_read) co_return false;
  }
  co_await await_response();
  if (closed_) co_return false;
  const bool another = exchange_->keep_alive && !home_->closing();
  end_exchange();
  co_return another;
}

asio::awaitable<std::optional<raw_header>> connection::read_header() {
  const connection_limits& limits = home_->limits();
  header_scan scan(limits.header_bytes_max);
  bool begun = false;
  std::size_t skipped = 0;
  set_read_deadline(now() + milliseconds(requests_ == 0 ? limits.header_timeout_ms : limits.idle_timeout_ms));
  for (;;) {
    if (!begun) {  // old clients send an empty line after a body (RFC 9112, 2.2)
      const std::size_t empty = leading_empty_lines(in_);
      in_.erase(0, empty);
      skipped += empty;
      if (skipped > limits.header_bytes_max) {
        refuse({400, "too many empty lines before the request line"});
        co_return std::nullopt;
      }
    }
    if (!in_.empty() && in_ != "\r") {
      if (!begun) set_read_deadline(now() + milliseconds(limits.header_timeout_ms));
      begun = true;
      const auto size = scan.look(in_);
      if (!size) {
        refuse(size.error());
        co_return std::nullopt;
      }
      if (*size > 0) {
        auto header = parse_header(std::string_view(in_).substr(0, *size), limits.header_fields_max);
        in_.erase(0, *size);
        if (header) co_return std::move(*header);
        refuse(header.error());
        co_return std::nullopt;
      }
    }
    const arrival what = co_await receive();
    if (what == arrival::bytes) continue;
    if (what == arrival::woken && !closed_ && (begun || !home_->closing())) continue;
    if (what == arrival::late && begun)
      refuse({408, "the header took too long"});
    else
      close();  // no response is due between requests
    co_return std::nullopt;
  }
}

/// Reads the whole body and passes it to the call. False if the connection should end; client and call have then been
/// notified.
asio::awaitable<bool> connection::read_body(const body_framing& framing) {
  const connection_limits& limits = home_->limits();
  body_decoder decoder(framing, limits, exchange_->call->body_bytes_max());
  const steady_time start = now();
  std::string early = std::exchange(in_, {});  // received together with the header
  std::string_view fresh = early;
  for (;;) {
    const auto taken = decoder.take(fresh);
    if (!taken) {
      refuse(taken.error());
      co_return false;
    }
    if (const auto room = in_hold_.set(decoder.held_bytes()); room != byte_share::outcome::taken) {
      refuse_memory(room, decoder.held_bytes());
      co_return false;
    }
    in_ = fresh.substr(*taken);
    if (decoder.done()) break;
    std::string().swap(early);

    // The allowed time grows with the received bytes, so only a body below the minimum rate exceeds it.
    const std::uint64_t earned_seconds = decoder.wire_bytes() / std::max(1u, limits.body_bytes_per_second_min);
    set_read_deadline(start + milliseconds(limits.body_timeout_ms) + std::chrono::seconds(earned_seconds));
    const arrival what = co_await receive(fresh);
    if (closed_) co_return false;
    if (what == arrival::late) {
      refuse({408, "the body took too long"});
      co_return false;
    }
    if (what == arrival::end || what == arrival::broken) {
      cut("client closed");
      co_return false;
    }
    if (exchange_->progress == exchange::answer::complete) co_return true;  // early response: discard the rest
  }
  exchange_->body_unread = false;
  in_hold_.clear();  // from here on the call accounts for it
  if (calls([&] { exchange_->call->body(decoder.release()); })) co_return true;
  refuse({500, "internal error"});
  co_return false;
}

asio::awaitable<void> connection::await_response() {
  set_read_deadline(never);
  if (in_.empty()) in_.shrink_to_fit();  // a stream may last for hours
  while (!closed_ && !response_sent()) {
    if (client_ended_ && exchange_->progress != exchange::answer::complete) co_return cut("client closed");
    const arrival what = co_await listen();
    if (what == arrival::broken) co_return cut("client closed");
    if (!closed_ && exchange_->body_unread) std::string().swap(in_);
  }
}

/// Sends queued bytes, shuts down the sending side, and discards input from the client for a moment.
asio::awaitable<void> connection::say_goodbye() {
  bool ended = false;
  std::string_view unwanted;
  std::string().swap(in_);
  set_read_deadline(never);
  while (!closed_ && !(ended && client_ended_)) {
    if (!ended && out_.empty()) {
      ended = true;
      error_code ignored;
      socket_.shutdown(asio::socket_base::shutdown_send, ignored);
      set_read_deadline(now() + goodbye_time);
      continue;
    }
    arrival what = arrival::woken;
    if (client_ended_)
      what = co_await wait_for(asio::socket_base::wait_error);
    else
      what = co_await receive(unwanted);
    if (what == arrival::broken || what == arrival::late) break;
  }
}

/// Waits for bytes and adds them to in_.
asio::awaitable<connection::arrival> connection::receive() {
  std::string_view fresh;
  const arrival what = co_await receive(fresh);
  in_ += fresh;
  co_return what;
}

/// Waits for bytes; they stay valid until the next wait of any connection of the set.
asio::awaitable<connection::arrival> connection::receive(std::string_view& fresh) {
  fresh = {};
  for (;;) {
    if (client_ended_) co_return arrival::end;
    const arrival what = co_await wait_for(asio::socket_base::wait_read);
    if (what != arrival::bytes) co_return what;
    error_code ec;
    const std::size_t count = socket_.read_some(asio::buffer(home_->scratch()), ec);
    fresh = std::string_view(home_->scratch().data(), count);
    if (!ec) co_return arrival::bytes;
    client_ended_ = ec == asio::error::eof;
    if (!client_ended_ && ec != asio::error::would_block) co_return arrival::broken;
  }
}

/// As receive, while a response is being sent: bytes belong to a pipelined request. If there is no room for more of it
/// or the client has closed its side, waits only for errors.
asio::awaitable<connection::arrival> connection::listen() {
  const bool deaf = client_ended_ || in_.size() >= home_->limits().header_bytes_max;
  if (deaf) return wait_for(asio::socket_base::wait_error);
  return receive();
}

/// Waits until the socket is ready (arrival::bytes) or another event occurs.
asio::awaitable<connection::arrival> connection::wait_for(asio::socket_base::wait_type ready) {
  if (!woken_ && !late_) {
    const auto [failed] = co_await socket_.async_wait(ready, asio::bind_cancellation_slot(stop_waiting_.slot(), token));
    if (!woken_ && !late_)
      co_return failed || ready == asio::socket_base::wait_error ? arrival::broken : arrival::bytes;
  }
  if (std::exchange(woken_, false)) co_return arrival::woken;
  late_ = false;
  co_return arrival::late;
}

}  // namespace skein::connection
