// The reading half of a connection. A co_await here is always a statement or an initialiser of its own: GCC 12 loses
// `this` if one follows && or ||.
#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/connection/connection.hpp"
#include "actors/connection/http/body_decoder.hpp"
#include "actors/connection/http/header_reader.hpp"
#include "actors/connection/link/awaiting.hpp"
#include "actors/connection/service_call.hpp"
#include "actors/connection/socket_session.hpp"

namespace skein::connection {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

/// How long the unread rest of a request is discarded before closing, so that the close does not reset the connection
/// before the client has read the response.
constexpr std::chrono::seconds goodbye_time{2};

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
  if (exchange_->out->is_socket()) {
    co_await serve_socket();
    co_return false;
  }
  if (!exchange_->out->is(response_phase::complete)) {
    const bool body_read = co_await read_body(framing);
    if (!body_read) co_return false;
  }
  co_await await_response();
  if (link_.closed()) co_return false;
  const bool another = exchange_->out->keeps_alive() && !home_->closing();
  end_exchange();
  co_return another;
}

asio::awaitable<std::optional<raw_header>> connection::read_header() {
  const connection_limits& limits = home_->limits();
  header_reader reader(limits);
  link_.set_read_deadline(now() + milliseconds(requests_ == 0 ? limits.header_timeout_ms : limits.idle_timeout_ms));
  for (;;) {
    const bool had_begun = reader.begun();
    auto header = reader.take(link_.in().bytes());
    if (!header) {
      refuse(header.error());
      co_return std::nullopt;
    }
    if (*header) co_return std::move(*header);
    if (!had_begun && reader.begun()) link_.set_read_deadline(now() + milliseconds(limits.header_timeout_ms));
    const arrival what = co_await link_.in().receive();
    if (what == arrival::bytes) continue;
    if (what == arrival::woken && !link_.closed() && (reader.begun() || !home_->closing())) continue;
    if (what == arrival::late && reader.begun())
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
  std::string& in = link_.in().bytes();
  std::string early = std::exchange(in, {});  // received together with the header
  std::string_view fresh = early;
  for (;;) {
    const auto taken = decoder.take(fresh);
    if (!taken) {
      refuse(taken.error());
      co_return false;
    }
    if (const auto room = link_.in().hold().set(decoder.held_bytes()); room != byte_share::outcome::taken) {
      refuse_memory(room, decoder.held_bytes());
      co_return false;
    }
    in = fresh.substr(*taken);
    if (decoder.done()) break;
    std::string().swap(early);

    // The allowed time grows with the received bytes, so only a body below the minimum rate exceeds it.
    const std::uint64_t earned_seconds = decoder.wire_bytes() / std::max(1u, limits.body_bytes_per_second_min);
    link_.set_read_deadline(start + milliseconds(limits.body_timeout_ms) + std::chrono::seconds(earned_seconds));
    const arrival what = co_await link_.in().receive(fresh);
    if (link_.closed()) co_return false;
    if (what == arrival::late) {
      refuse({408, "the body took too long"});
      co_return false;
    }
    if (what == arrival::end || what == arrival::broken) {
      cut("client closed");
      co_return false;
    }
    if (exchange_->out->is(response_phase::complete)) co_return true;  // early response: discard the rest
  }
  exchange_->out->on_body_read();
  link_.in().hold().clear();  // from here on the call accounts for it
  if (into_service(number_, [&] { exchange_->call->body(decoder.release()); })) co_return true;
  refuse({500, "internal error"});
  co_return false;
}

asio::awaitable<void> connection::await_response() {
  link_.set_read_deadline(never);
  if (link_.in().bytes().empty()) link_.in().bytes().shrink_to_fit();  // a stream may last for hours
  while (!link_.closed() && !exchange_->out->sent()) {
    if (link_.in().ended() && !exchange_->out->is(response_phase::complete)) co_return cut("client closed");
    const arrival what = co_await link_.in().listen(home_->limits().header_bytes_max);
    if (what == arrival::broken) co_return cut("client closed");
    if (!link_.closed() && exchange_->out->body_unread()) std::string().swap(link_.in().bytes());
  }
}

asio::awaitable<void> connection::serve_socket() {
  socket_session session(link_, *home_, *exchange_->call, exchange_->out, number_);
  const auto over = co_await session.serve();
  if (over.is_cut) co_return cut(over.why);
  lose_call(over.why, client_gone);
}

/// Sends queued bytes, shuts down the sending side, and discards input from the client for a moment.
asio::awaitable<void> connection::say_goodbye() {
  bool ended = false;
  std::string_view unwanted;
  std::string().swap(link_.in().bytes());
  link_.set_read_deadline(never);
  while (!link_.closed() && !(ended && link_.in().ended())) {
    if (!ended && link_.out().empty()) {
      ended = true;
      link_.end_sending();
      link_.set_read_deadline(now() + goodbye_time);
      continue;
    }
    arrival what = arrival::woken;
    if (link_.in().ended())
      what = co_await link_.in().wait_for(asio::socket_base::wait_error);
    else
      what = co_await link_.in().receive(unwanted);
    if (what == arrival::broken || what == arrival::late) break;
  }
}

}  // namespace skein::connection
