// Start and end of a connection and of its exchange with the service. Reading is in connection_reading.cpp.
#include "actors/connection/connection.hpp"

#include <boost/asio/co_spawn.hpp>
#include <ctime>
#include <exception>
#include <utility>

#include "actors/connection/http/response_head.hpp"
#include "actors/connection/link/awaiting.hpp"
#include "actors/connection/service_call.hpp"

namespace skein::connection {

connection::connection(stream_socket socket, peer_address peer, std::uint64_t number,
                       std::shared_ptr<connection_set> home, std::function<void(ending)> on_end)
    : peer_(std::move(peer)),
      number_(number),
      home_(std::move(home)),
      on_end_(std::move(on_end)),
      link_(std::move(socket), home_->scratch(), home_->limits(), *this) {}

connection::~connection() {
  if (exchange_) exchange_->out->detach();  // the io thread ended before the connection
}

void connection::start() {
  const auto ended = [self = shared_from_this()](const std::exception_ptr& trouble) {
    if (!trouble) return;
    self->cut("internal error");
    std::rethrow_exception(trouble);  // the io thread logs it
  };
  boost::asio::co_spawn(link_.executor(), run(), ended);
  boost::asio::co_spawn(link_.executor(), link_.watch(), ended);
}

void connection::cut(std::string_view why) {
  if (link_.closed()) return;
  link_.reset_on_close();
  close(ending::cut);
  lose_call(why, client_gone);
}

void connection::close(ending how) {
  if (link_.closed()) return;
  link_.close();
  home_->forget(this);
  if (on_end_) std::exchange(on_end_, nullptr)(how);
}

// ---- the exchange ----

void connection::begin_exchange(admission admitted) {
  const connection_limits& limits = home_->limits();
  home_->counts().requests.fetch_add(1, std::memory_order_relaxed);
  ++requests_;
  const bool keep_alive = admitted.keep_alive && requests_ < limits.requests_per_connection_max;
  exchange_.emplace(nullptr, std::make_shared<http_response>(link_, *home_, admitted, keep_alive));
  http_response& response = *exchange_->out;

  request_head& head = admitted.head;
  head.remote_address = client_address(peer_, head.fields, limits.trusted_proxies);
  head.loopback = peer_.loopback;
  head.unix_socket = peer_.unix_socket;
  head.admin = peer_.admin;
  head.connection_number = number_;
  head.received = now();

  into_service(number_, [&] { exchange_->call = home_->service().accept(head, exchange_->out); });
  if (!exchange_->call && !response.is(response_phase::complete)) return refuse({500, "internal error"});

  if (exchange_->call && admitted.framing.content_length > exchange_->call->body_bytes_max())
    return refuse(body_too_large(exchange_->call->body_bytes_max()));
  if (exchange_->call && admitted.framing.content_length > 0) {  // checks whether it would fit before the client sends
                                                                 // it
    const auto fits = link_.in().hold().set(admitted.framing.content_length);
    link_.in().hold().clear();
    if (fits != byte_share::outcome::taken) return refuse_memory(fits, admitted.framing.content_length);
  }
  const bool wanted = response.body_unread() && response.is(response_phase::none);
  if (admitted.expects_continue && wanted && link_.in().bytes().empty()) {
    link_.out().push("HTTP/1.1 100 Continue\r\n\r\n");
    link_.out().flush();
  }
}

void connection::end_exchange() {
  link_.in().hold().clear();
  exchange_->out->detach();
  exchange_.reset();
}

/// Tells the call that the exchange is over, and drops it.
void connection::lose_call(std::string_view why, unsigned status) {
  link_.in().hold().clear();
  if (!exchange_) return;
  const auto lost = *std::exchange(exchange_, std::nullopt);
  lost.out->detach();
  if (lost.call) into_service(number_, [&] { lost.call->gone(why, status); });
}

/// Responds in place of the service and ends the exchange, if one has begun; otherwise `fields` and `target` are those
/// of the request, if they could be read. `run` then closes the connection.
void connection::refuse(const refusal& why, const header_list& fields, std::string_view target) {
  if (link_.closed()) return;
  if (exchange_ && !exchange_->out->is(response_phase::none)) return cut(why.message);
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
  link_.out().push(response_head(why.status, headers, frame));
  link_.out().push(std::move(body));
  link_.out().flush();
}

void connection::refuse_memory(byte_share::outcome no, std::size_t bytes) {
  refuse(no_memory(link_.in().hold().why_not(no, bytes)));
}

void connection::on_sent() {
  if (exchange_ && exchange_->out->on_sent() && exchange_->call)
    if (!into_service(number_, [&] { exchange_->call->writable(); })) return cut("internal error");
  const bool is_answering = exchange_ && !exchange_->out->is(response_phase::complete) && !exchange_->out->is_socket();
  if (link_.out().empty() && !is_answering) wake();
}

}  // namespace skein::connection
