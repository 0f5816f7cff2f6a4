// Start and end of a connection, its exchange with the service, writing and deadlines. Reading is in
// connection_reading.cpp.
#include "actors/connection/connection.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <ctime>
#include <exception>

#include "actors/connection/awaiting.hpp"
#include "actors/connection/exchange.hpp"
#include "actors/connection/http/response_head.hpp"
#include "base/log/log.hpp"

namespace skein::connection {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// A stream that ignores queued_bytes is cut at this multiple of outbound_bytes_max, but not before this number of
/// writes above the limit: tokens that a fast device generated while this thread waited for a CPU arrive in one large
/// piece, which is not the reader's fault.
constexpr std::size_t outbound_overrun = 8;
constexpr std::uint32_t deaf_writes_max = 256;

}  // namespace

connection::connection(stream_socket socket, peer_address peer, std::uint64_t number,
                       std::shared_ptr<connection_set> home, std::function<void()> on_end)
    : socket_(std::move(socket)),
      peer_(std::move(peer)),
      number_(number),
      home_(std::move(home)),
      on_end_(std::move(on_end)),
      timer_(socket_.get_executor()) {}

connection::~connection() {
  if (exchange_) exchange_->out->detach();  // the io thread ended before the connection
}

void connection::start() {
  error_code ignored;  // a socket that cannot be made non-blocking fails at the first read
  socket_.non_blocking(true, ignored);
  const auto ended = [self = shared_from_this()](const std::exception_ptr& trouble) {
    if (!trouble) return;
    self->cut("internal error");
    std::rethrow_exception(trouble);  // the io thread logs it
  };
  asio::co_spawn(socket_.get_executor(), run(), ended);
  asio::co_spawn(socket_.get_executor(), watch(), ended);
}

void connection::wake() {
  woken_ = true;
  stop_waiting_.emit(asio::cancellation_type::all);
}

void connection::cut(std::string_view why) {
  if (closed_) return;
  error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);  // a reset, so that the client does not take it for
                                                                    // a regular end
  close();
  lose_call(why, client_gone);
}

void connection::close() {
  if (closed_) return;
  closed_ = true;
  error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
  if (!writing_) {
    out_.clear();
    out_hold_.clear();
  }
  in_.clear();
  in_hold_.clear();
  wake();
  home_->forget(this);
  if (on_end_) std::exchange(on_end_, nullptr)();
}

// ---- the exchange ----

void connection::begin_exchange(admission admitted) {
  const connection_limits& limits = home_->limits();
  home_->counts().requests.fetch_add(1, std::memory_order_relaxed);
  ++requests_;
  exchange_ = std::make_unique<exchange>();
  exchange_->out = std::make_shared<writer>(this);
  exchange_->bodiless = admitted.head.method == "HEAD";
  exchange_->http_1_0 = admitted.http_1_0;
  exchange_->keep_alive = admitted.keep_alive && requests_ < limits.requests_per_connection_max;
  exchange_->body_unread = admitted.framing.has_body();

  request_head& head = admitted.head;
  head.remote_address = client_address(peer_, head.fields, limits.trusted_proxies);
  head.loopback = peer_.loopback;
  head.unix_socket = peer_.unix_socket;
  head.admin = peer_.admin;
  head.connection_number = number_;
  head.received = now();
  exchange_->socket_key = head.field("sec-websocket-key");

  calls([&] { exchange_->call = home_->service().accept(head, exchange_->out); });
  if (!exchange_->call && exchange_->progress != exchange::answer::complete) return refuse({500, "internal error"});

  if (exchange_->call && admitted.framing.content_length > exchange_->call->body_bytes_max())
    return refuse(body_too_large(exchange_->call->body_bytes_max()));
  if (exchange_->call && admitted.framing.content_length > 0) {  // checks whether it would fit before the client sends
                                                                 // it
    const auto fits = in_hold_.set(admitted.framing.content_length);
    in_hold_.clear();
    if (fits != byte_share::outcome::taken) return refuse_memory(fits, admitted.framing.content_length);
  }
  const bool wanted = exchange_->body_unread && exchange_->progress == exchange::answer::none;
  if (admitted.expects_continue && wanted && in_.empty()) {
    out_.push("HTTP/1.1 100 Continue\r\n\r\n");
    flush();
  }
}

void connection::end_exchange() {
  in_hold_.clear();
  exchange_->out->detach();
  exchange_.reset();
}

/// Tells the call that the exchange is over, and drops it.
void connection::lose_call(std::string_view why, unsigned status) {
  in_hold_.clear();
  if (!exchange_) return;
  const auto lost = std::move(exchange_);
  lost->out->detach();
  if (lost->call) calls([&] { lost->call->gone(why, status); });
}

/// Responds in place of the service and ends the exchange, if one has begun; otherwise `fields` and `target` are those
/// of the request, if they could be read. `run` then closes the connection.
void connection::refuse(const refusal& why, const header_list& fields, std::string_view target) {
  if (closed_) return;
  if (exchange_ && exchange_->progress != exchange::answer::none) return cut(why.message);
  const bool begun = exchange_ && exchange_->call;
  header_list headers = begun ? exchange_->call->headers() : home_->service().refusal_headers(fields);
  headers.emplace_back("Content-Type", "application/json");
  if (why.status == 429 || why.status == 503) headers.emplace_back("Retry-After", "1");
  const std::string in_its_words = begun ? exchange_->call->error_body(why.status, why.message) : std::string();
  lose_call(why.message, why.status);
  std::string body = home_->service().error_body(why.status, why.message, target);
  if (!in_its_words.empty()) body = in_its_words;
  const response_frame frame{.kind = response_frame::body::sized,
                             .content_length = body.size(),
                             .after = response_frame::persistence::close,
                             .now = std::time(nullptr)};
  out_.push(response_head(why.status, headers, frame));
  out_.push(std::move(body));
  flush();
}

void connection::refuse_memory(byte_share::outcome no, std::size_t bytes) {
  refuse(no_memory(in_hold_.why_not(no, bytes)));
}

void connection::charge(const byte_share& share) {
  in_hold_.move_to(share);
  out_hold_.move_to(share);
}

byte_share::outcome connection::reserve(std::size_t bytes) { return out_hold_.set(out_.held_bytes() + bytes); }

std::size_t connection::queued_bytes() const {
  const std::size_t too_many = std::size_t{home_->limits().outbound_bytes_max} + 1;
  return exchange_ && exchange_->starved ? std::max(out_.bytes(), too_many) : out_.bytes();
}

void connection::respond(unsigned status, const header_list& headers, std::string body) {
  if (exchange_->progress != exchange::answer::none) return log::error("a second response was dropped");
  response_frame frame{.now = std::time(nullptr)};
  if (status_has_body(status)) {
    frame.kind = response_frame::body::sized;
    frame.content_length = body.size();
  }
  exchange_->bodiless |= !status_has_body(status);
  exchange_->keep_alive = may_persist();
  if (!exchange_->keep_alive)
    frame.after = response_frame::persistence::close;
  else if (exchange_->http_1_0)
    frame.after = response_frame::persistence::keep_alive;
  out_.push(response_head(status, headers, frame));
  if (!exchange_->bodiless) out_.push(std::move(body));
  exchange_->progress = exchange::answer::complete;
  (void)out_hold_.set_anyway(out_.held_bytes());  // already reserved, or the small body of a refusal
  flush();
}

void connection::begin_stream(unsigned status, const header_list& headers) {
  if (exchange_->progress != exchange::answer::none) return log::error("a second response was dropped");
  response_frame frame{.now = std::time(nullptr)};
  exchange_->bodiless |= !status_has_body(status);
  exchange_->chunked = !exchange_->http_1_0;
  if (status_has_body(status))
    frame.kind = exchange_->chunked ? response_frame::body::chunked : response_frame::body::until_close;
  exchange_->keep_alive = may_persist() && exchange_->chunked;
  if (!exchange_->keep_alive) frame.after = response_frame::persistence::close;
  out_.push(response_head(status, headers, frame));
  exchange_->progress = exchange::answer::streaming;
  flush();
}

void connection::write(std::string bytes) {
  if (exchange_->progress != exchange::answer::streaming) return log::error("bytes outside a stream were dropped");
  if (bytes.empty() || exchange_->bodiless || exchange_->cut) return;
  if (exchange_->chunked)
    out_.push_chunk(std::move(bytes));
  else
    out_.push(std::move(bytes));
  const std::size_t ceiling = home_->limits().outbound_bytes_max;
  if (exchange_->choked) ++exchange_->deaf_writes;
  if (out_.bytes() > ceiling) exchange_->choked = true;
  if (out_.bytes() > ceiling * outbound_overrun && exchange_->deaf_writes > deaf_writes_max) post_cut("slow_consumer");
  if (!out_hold_.set_anyway(out_.held_bytes())) {
    exchange_->choked = exchange_->starved = true;
    exchange_->fed_below = out_.bytes() / 2;
    if (out_.bytes() > ceiling) post_cut("out of memory");
  }
  flush();
}

void connection::end_stream() {
  if (exchange_->progress != exchange::answer::streaming) return log::error("an end outside a stream was dropped");
  if (exchange_->chunked && !exchange_->bodiless) out_.push("0\r\n\r\n");
  exchange_->progress = exchange::answer::complete;
  flush();
  if (out_.empty()) wake();
}

/// Cuts from a separate handler: the caller is the service and may itself be inside one of our calls.
void connection::post_cut(const char* why) {
  exchange_->cut = true;
  asio::post(socket_.get_executor(), [self = shared_from_this(), why] { self->cut(why); });
}

bool connection::may_persist() const {
  return exchange_->keep_alive && !exchange_->body_unread && !home_->closing() && !client_ended_;
}

bool connection::response_sent() const {
  return exchange_->progress == exchange::answer::complete && out_.empty() && !writing_;
}

// ---- writing ----

void connection::flush() {
  if (writing_ || closed_ || out_.empty()) return;
  std::array<std::string_view, 8> pieces;
  std::array<asio::const_buffer, 8> buffers;
  const std::size_t count = out_.gather(pieces);
  for (std::size_t i = 0; i < count; ++i) buffers[i] = asio::buffer(pieces[i]);
  writing_ = true;
  write_deadline_ = now() + std::chrono::milliseconds(home_->limits().write_timeout_ms);
  expect_by(write_deadline_);
  socket_.async_write_some(buffers, [self = shared_from_this()](const error_code& ec, std::size_t written) {
    self->on_written(ec, written);
  });
}

void connection::on_written(const error_code& ec, std::size_t count) {
  writing_ = false;
  if (closed_) {
    out_hold_.clear();
    return out_.clear();
  }
  if (ec) return cut("client closed");
  out_.consumed(count);
  (void)out_hold_.set_anyway(out_.held_bytes());
  flush();
  const std::size_t enough = home_->limits().outbound_bytes_max / 2;
  if (exchange_ && exchange_->choked && out_.bytes() <= (exchange_->starved ? exchange_->fed_below : enough)) {
    exchange_->choked = exchange_->starved = false;
    exchange_->deaf_writes = 0;
    if (exchange_->call && !calls([&] { exchange_->call->writable(); })) return cut("internal error");
  }
  const bool streaming = exchange_ && exchange_->progress != exchange::answer::complete;
  const bool socket = exchange_ && exchange_->upgraded != exchange::socket::none;
  if (out_.empty() && (!streaming || socket)) wake();
}

// ---- time ----

asio::awaitable<void> connection::watch() {
  while (!closed_) {
    // The deadline of a finished write stays in the timer and is checked when it passes, so a stream of tokens sets the
    // timer once per write_timeout_ms instead of with every token.
    timer_.expires_at(std::min(read_deadline_, writing_ ? write_deadline_ : never));
    co_await timer_.async_wait(token);
    const steady_time time = now();
    if (writing_ && time >= write_deadline_) co_return cut("slow_consumer");
    if (time >= read_deadline_) {
      read_deadline_ = never;
      late_ = true;
      stop_waiting_.emit(asio::cancellation_type::all);
    }
  }
}

void connection::set_read_deadline(steady_time at) {
  late_ = false;
  read_deadline_ = at;
  expect_by(at);
}

/// Makes `watch` check the deadlines at `at` or earlier.
void connection::expect_by(steady_time at) {
  if (at < timer_.expiry()) timer_.cancel();
}

}  // namespace skein::connection
