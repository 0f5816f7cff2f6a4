#include "actors/connection/http_response.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "actors/connection/http/response_head.hpp"
#include "actors/connection/link/awaiting.hpp"
#include "actors/connection/websocket/socket_frames.hpp"
#include "actors/connection/websocket/socket_handshake.hpp"
#include "base/log/log.hpp"

namespace skein::connection {
namespace {

/// How long to wait for the client's close frame.
constexpr std::chrono::seconds farewell_time{2};

}  // namespace

http_response::http_response(client_link& link, connection_set& home, const admission& request, bool keep_alive)
    : link_(&link),
      home_(home),
      bodiless_(request.head.method == "HEAD"),
      http_1_0_(request.http_1_0),
      keep_alive_(keep_alive),
      body_unread_(request.framing.has_body()),
      socket_key_(request.head.field("sec-websocket-key")) {}

void http_response::respond(unsigned status, header_list headers, std::string body) {
  if (!link_) return;
  if (!is(response_phase::none)) return log::error("a second response was dropped");
  response_frame frame{.now = std::time(nullptr)};
  if (status_has_body(status)) {
    frame.kind = response_frame::body::sized;
    frame.content_length = body.size();
  }
  bodiless_ |= !status_has_body(status);
  keep_alive_ = may_persist();
  if (!keep_alive_)
    frame.after = response_frame::persistence::close;
  else if (http_1_0_)
    frame.after = response_frame::persistence::keep_alive;
  link_writer& out = link_->out();
  out.push(response_head(status, headers, frame));
  if (!bodiless_) out.push(std::move(body));
  phase_.enter(response_phase::complete);
  (void)out.account();  // already reserved, or the small body of a refusal
  out.flush();
}

void http_response::begin_stream(unsigned status, header_list headers) {
  if (!link_) return;
  if (!is(response_phase::none)) return log::error("a second response was dropped");
  response_frame frame{.now = std::time(nullptr)};
  bodiless_ |= !status_has_body(status);
  chunked_ = !http_1_0_;
  if (status_has_body(status))
    frame.kind = chunked_ ? response_frame::body::chunked : response_frame::body::until_close;
  keep_alive_ = may_persist() && chunked_;
  if (!keep_alive_) frame.after = response_frame::persistence::close;
  link_->out().push(response_head(status, headers, frame));
  phase_.enter(response_phase::streaming);
  link_->out().flush();
}

void http_response::write(std::string bytes) {
  if (!link_) return;
  if (!is(response_phase::streaming)) return log::error("bytes outside a stream were dropped");
  queue(std::move(bytes));
}

void http_response::end() {
  if (!link_) return;
  if (!is(response_phase::streaming)) return log::error("an end outside a stream was dropped");
  link_writer& out = link_->out();
  if (chunked_ && !bodiless_) out.push("0\r\n\r\n");
  phase_.enter(response_phase::complete);
  out.flush();
  if (out.empty()) link_->in().wake();
}

void http_response::upgrade(header_list headers) {
  if (!link_) return;
  if (!is(response_phase::none)) return log::error("a second response was dropped");
  if (http_1_0_) {
    headers.emplace_back("Content-Type", "application/json");
    return respond(400, std::move(headers), home_.service().error_body(400, "a WebSocket needs HTTP/1.1", ""));
  }
  headers.emplace_back("Upgrade", "websocket");
  headers.emplace_back("Connection", "Upgrade");
  headers.emplace_back("Sec-WebSocket-Accept", accept_of(socket_key_));
  link_->out().push(response_head(101, headers, {.now = std::time(nullptr)}));
  phase_.enter(response_phase::socket);
  link_->out().flush();
}

void http_response::send(std::string_view message) {
  if (link_ && is(response_phase::socket)) queue(text_frame(message));
}

void http_response::close(std::uint16_t code, std::string_view reason) {
  if (!link_ || !is(response_phase::socket)) return;
  queue(close_frame(code, reason));
  phase_.enter(response_phase::socket_closing);
  link_->set_read_deadline(now() + farewell_time);
  link_->in().wake();
}

void http_response::charge(byte_share share) {
  if (!link_) return;
  link_->in().hold().move_to(share);
  link_->out().charge(share);
}

byte_share::outcome http_response::reserve(std::size_t bytes) {
  return link_ ? link_->out().reserve(bytes) : byte_share::outcome::taken;
}

std::size_t http_response::queued_bytes() const {
  if (!link_) return 0;
  const std::size_t too_many = std::size_t{home_.limits().outbound_bytes_max} + 1;
  const std::size_t queued = link_->out().bytes();
  return pressure_.lacks_memory() ? std::max(queued, too_many) : queued;
}

bool http_response::on_sent() {
  return link_ && pressure_.on_sent(link_->out().bytes(), home_.limits().outbound_bytes_max);
}

bool http_response::may_persist() const {
  return keep_alive_ && !body_unread_ && !home_.closing() && !link_->in().ended();
}

void http_response::queue(std::string bytes) {
  if (!link_ || bytes.empty() || bodiless_ || cut_) return;
  link_writer& out = link_->out();
  if (chunked_)
    out.push_chunk(std::move(bytes));
  else
    out.push(std::move(bytes));
  const std::size_t limit = home_.limits().outbound_bytes_max;
  pressure_.on_write(out.bytes(), limit);
  if (pressure_.is_ignored(out.bytes(), limit)) cut_later("slow_consumer");
  if (!out.account()) {
    pressure_.on_no_memory(out.bytes());
    if (out.bytes() > limit) cut_later("out of memory");
  }
  out.flush();
}

void http_response::cut_later(const char* why) {
  if (!link_) return;
  cut_ = true;
  link_->cut_later(why);
}

}  // namespace skein::connection
