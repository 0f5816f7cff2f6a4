// A co_await here is always a statement or an initialiser of its own: GCC 12 loses `this` when one stands behind && or
// ||.
#include "actors/connection/connection.hpp"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <ctime>
#include <exception>

#include "actors/connection/body_decoder.hpp"
#include "actors/connection/header_scan.hpp"
#include "actors/connection/response_head.hpp"
#include "base/log.hpp"

namespace skein::connection {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr auto token = asio::as_tuple(asio::use_awaitable);
constexpr auto never = steady_time::max();

/// Bytes asked of the socket at once, and with header_bytes_max the bound on what a client can send ahead.
constexpr std::size_t read_bytes = 16 * 1024;
/// How long the rest of a request that nobody wants is read away, so that closing does not reset the connection before
/// the client has read the response.
constexpr std::chrono::seconds goodbye_time{2};
/// A stream that ignores queued_bytes is cut at this multiple of outbound_bytes_max.
constexpr std::size_t outbound_overrun = 8;

steady_time now() { return real_clock().now(); }

}  // namespace

struct connection::exchange {
  enum class answer { none, streaming, complete };

  std::unique_ptr<http_call> call;
  std::shared_ptr<writer> out;
  bool bodiless = false;  ///< the response to HEAD, or one with a status that has no body
  bool http_1_0 = false;
  bool chunked = false;      ///< the streamed response
  bool keep_alive = false;   ///< the connection may serve another request after this one
  bool body_unread = false;  ///< while part of the request body may still come
  bool cut = false;          ///< the connection ends as soon as the service is done talking
  bool choked = false;       ///< the queue has been above its limit and writable() is owed
  answer progress = answer::none;
};

class connection::writer final : public response_writer {
 public:
  explicit writer(connection* owner) : owner_(owner) {}
  void detach() { owner_ = nullptr; }

  void respond(unsigned status, header_list headers, std::string body) override {
    if (owner_) owner_->respond(status, headers, std::move(body));
  }
  void begin_stream(unsigned status, header_list headers) override {
    if (owner_) owner_->begin_stream(status, headers);
  }
  void write(std::string bytes) override {
    if (owner_) owner_->write(std::move(bytes));
  }
  void end() override {
    if (owner_) owner_->end_stream();
  }
  void abort() override {
    if (owner_) owner_->post_cut("aborted");
  }
  [[nodiscard]] std::size_t queued_bytes() const override { return owner_ ? owner_->out_.bytes() : 0; }

 private:
  connection* owner_;  ///< detached at the end of the exchange, before the connection dies
};

connection::connection(stream_socket socket, peer_address peer, std::uint64_t number,
                       std::shared_ptr<connection_set> home, std::function<void()> on_end)
    : socket_(std::move(socket)),
      peer_(std::move(peer)),
      number_(number),
      home_(std::move(home)),
      on_end_(std::move(on_end)),
      timer_(socket_.get_executor()) {}

connection::~connection() {
  if (exchange_) exchange_->out->detach();  // the io thread ended before the connection did
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
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);  // a reset: the client must not take it for an end
  close();
  lose_call(why);
}

void connection::close() {
  if (closed_) return;
  closed_ = true;
  error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
  if (!writing_) out_.clear();
  in_.clear();
  wake();
  home_->forget(this);
  if (on_end_) std::exchange(on_end_, nullptr)();
}

// ---- reading ----

asio::awaitable<void> connection::run() {
  for (bool another = true; another;) another = co_await serve_one();
  co_await say_goodbye();
  close();
}

/// False when the connection is to end.
asio::awaitable<bool> connection::serve_one() {
  auto header = co_await read_header();
  if (!header) co_return false;
  auto admitted = pass_gate(std::move(*header), home_->limits());
  if (!admitted) {
    refuse(admitted.error());
    co_return false;
  }
  const body_framing framing = admitted->framing;
  begin_exchange(std::move(*admitted));
  if (!exchange_) co_return false;
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
  set_read_deadline(now() + (requests_ == 0 ? limits.header_timeout : limits.idle_timeout));
  for (;;) {
    while (in_.starts_with("\r\n")) in_.erase(0, 2);  // old clients send an empty line after a body (RFC 9112, 2.2)
    if (!in_.empty() && in_ != "\r") {
      if (!begun) set_read_deadline(now() + limits.header_timeout);
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
      close();  // between requests nobody is owed a word
    co_return std::nullopt;
  }
}

/// Hands the whole body to the call. False when the connection is to end, with everyone told.
asio::awaitable<bool> connection::read_body(const body_framing& framing) {
  const connection_limits& limits = home_->limits();
  body_decoder decoder(framing, limits);
  const steady_time start = now();
  for (;;) {
    const auto taken = decoder.take(in_);
    if (!taken) {
      refuse(taken.error());
      co_return false;
    }
    in_.erase(0, *taken);
    if (decoder.done()) break;

    // The time allowed grows with what has come, so only a body slower than the minimum rate runs out of it.
    const std::uint64_t earned_seconds = decoder.wire_bytes() / std::max(1u, limits.body_bytes_per_second_min);
    set_read_deadline(start + limits.body_timeout + std::chrono::seconds(earned_seconds));
    const arrival what = co_await receive();
    if (closed_) co_return false;
    if (what == arrival::late) {
      refuse({408, "the body took too long"});
      co_return false;
    }
    if (what == arrival::end || what == arrival::broken) {
      cut("client closed");
      co_return false;
    }
    if (exchange_->progress == exchange::answer::complete) co_return true;  // answered early: the rest is unwanted
  }
  exchange_->body_unread = false;
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
    if (!closed_ && exchange_->body_unread) in_.clear();
  }
}

/// Sends what is queued, ends this direction, and reads the client's rest away for a moment.
asio::awaitable<void> connection::say_goodbye() {
  bool ended = false;
  set_read_deadline(never);
  while (!closed_ && !(ended && client_ended_)) {
    in_.clear();
    if (!ended && out_.empty()) {
      ended = true;
      error_code ignored;
      socket_.shutdown(asio::socket_base::shutdown_send, ignored);
      set_read_deadline(now() + goodbye_time);
      continue;
    }
    const arrival what = co_await listen();
    if (what == arrival::broken || what == arrival::late) break;
  }
}

/// Waits for bytes and adds them to in_.
asio::awaitable<connection::arrival> connection::receive() {
  for (;;) {
    if (client_ended_) co_return arrival::end;
    const arrival what = co_await wait_for(asio::socket_base::wait_read);
    if (what != arrival::bytes) co_return what;
    const std::size_t before = in_.size();
    in_.resize(before + read_bytes);
    error_code ec;
    const std::size_t count = socket_.read_some(asio::buffer(in_.data() + before, read_bytes), ec);
    in_.resize(before + count);
    if (!ec) co_return arrival::bytes;
    client_ended_ = ec == asio::error::eof;
    if (!client_ended_ && ec != asio::error::would_block) co_return arrival::broken;
  }
}

/// As receive, while a response is on its way: bytes are a request sent ahead, and once there is no room for more of it
/// or the client has ended, only errors are waited for.
asio::awaitable<connection::arrival> connection::listen() {
  const bool deaf = client_ended_ || in_.size() >= home_->limits().header_bytes_max;
  if (deaf) return wait_for(asio::socket_base::wait_error);
  return receive();
}

/// `bytes` means that the socket is ready.
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
  head.connection_number = number_;
  head.received = now();

  calls([&] { exchange_->call = home_->service().accept(head, exchange_->out); });
  if (!exchange_->call && exchange_->progress != exchange::answer::complete) return refuse({500, "internal error"});

  const bool wanted = exchange_->body_unread && exchange_->progress == exchange::answer::none;
  if (admitted.expects_continue && wanted && in_.empty()) {
    out_.push("HTTP/1.1 100 Continue\r\n\r\n");
    flush();
  }
}

void connection::end_exchange() {
  exchange_->out->detach();
  exchange_.reset();
}

/// Tells the answering side that it is over, and forgets it.
void connection::lose_call(std::string_view why) {
  if (!exchange_) return;
  const auto lost = std::move(exchange_);
  lost->out->detach();
  if (lost->call) calls([&] { lost->call->gone(why); });
}

/// Answers for the service and ends the exchange, if one has begun; `run` then says goodbye.
void connection::refuse(const refusal& why) {
  if (closed_) return;
  if (exchange_ && exchange_->progress != exchange::answer::none) return cut(why.message);
  lose_call(why.message);
  std::string body = home_->service().error_body(why.status, why.message);
  const response_frame frame{.kind = response_frame::body::sized,
                             .content_length = body.size(),
                             .after = response_frame::persistence::close,
                             .now = std::time(nullptr)};
  out_.push(response_head(why.status, {{"Content-Type", "application/json"}}, frame));
  out_.push(std::move(body));
  flush();
}

/// Runs a call into the service; false when it threw.
template <typename Function>
bool connection::calls(Function&& into_service) {
  try {
    into_service();
    return true;
  } catch (const std::exception& e) {
    log::error("a request handler failed", {{"what", e.what()}, {"connection", number_}});
    return false;
  }
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
  if (out_.bytes() > ceiling) exchange_->choked = true;
  if (out_.bytes() > ceiling * outbound_overrun) post_cut("slow_consumer");
  flush();
}

void connection::end_stream() {
  if (exchange_->progress != exchange::answer::streaming) return log::error("the end of no stream was dropped");
  if (exchange_->chunked && !exchange_->bodiless) out_.push("0\r\n\r\n");
  exchange_->progress = exchange::answer::complete;
  flush();
  if (out_.empty()) wake();
}

/// Cuts from a handler of its own: the caller is the service, and may be inside a call of ours.
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
  write_deadline_ = now() + home_->limits().write_timeout;
  expect_by(write_deadline_);
  socket_.async_write_some(buffers, [self = shared_from_this()](const error_code& ec, std::size_t written) {
    self->on_written(ec, written);
  });
}

void connection::on_written(const error_code& ec, std::size_t count) {
  writing_ = false;
  if (closed_) return out_.clear();
  if (ec) return cut("client closed");
  out_.consumed(count);
  flush();
  if (exchange_ && exchange_->choked && out_.bytes() < home_->limits().outbound_bytes_max / 2) {
    exchange_->choked = false;
    if (exchange_->call && !calls([&] { exchange_->call->writable(); })) return cut("internal error");
  }
  const bool streaming = exchange_ && exchange_->progress != exchange::answer::complete;
  if (out_.empty() && !streaming) wake();
}

// ---- time ----

asio::awaitable<void> connection::watch() {
  while (!closed_) {
    // The deadline of a write that is over stays in the timer and is looked at when it passes: a stream of tokens then
    // touches the timer once in write_timeout, not with every token.
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

/// Makes `watch` look at the deadlines at that time or before.
void connection::expect_by(steady_time at) {
  if (at < timer_.expiry()) timer_.cancel();
}

}  // namespace skein::connection
