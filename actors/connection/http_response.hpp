#pragma once
#include <cstdint>
#include <string>

#include "actors/checked_phase.hpp"
#include "actors/connection/back_pressure.hpp"
#include "actors/connection/connection_set.hpp"
#include "actors/connection/http/http.hpp"
#include "actors/connection/http/request_gate.hpp"
#include "actors/connection/link/client_link.hpp"

namespace skein::connection {

/// How far the response of one exchange is.
enum class response_phase : std::uint8_t {
  none,
  streaming,
  complete,        ///< it is queued as a whole
  socket,          ///< the exchange is a WebSocket
  socket_closing,  ///< the same, after the server's close frame
};

[[nodiscard]] constexpr bool may_follow(response_phase from, response_phase to) {
  using enum response_phase;
  switch (from) {
    case none: return to == streaming || to == complete || to == socket;
    case streaming: return to == complete;
    case socket: return to == socket_closing;
    case complete:
    case socket_closing: return false;
  }
  return false;
}

/// The response of one exchange: frames what the service writes, for the client's HTTP version, and queues it on the
/// link. The service may keep it; it does nothing once it is detached.
class http_response final : public response_writer {
 public:
  /// `keep_alive`: the connection may serve another request.
  http_response(client_link& link, connection_set& home, const admission& request, bool keep_alive);
  /// Ends the exchange, before the link dies.
  void detach() { link_ = nullptr; }

  void respond(unsigned status, header_list headers, std::string body) override;
  void begin_stream(unsigned status, header_list headers) override;
  void write(std::string bytes) override;
  void end() override;
  void upgrade(header_list headers) override;
  void send(std::string_view message) override;
  void close(std::uint16_t code, std::string_view reason) override;
  void abort() override { cut_later("aborted"); }
  void charge(byte_share share) override;
  [[nodiscard]] byte_share::outcome reserve(std::size_t bytes) override;
  [[nodiscard]] std::size_t queued_bytes() const override;
  [[nodiscard]] bool is_full() const override { return link_ && pressure_.is_on(); }

  /// Queues a frame of a WebSocket.
  void send_frame(std::string frame) { queue(std::move(frame)); }

  [[nodiscard]] bool is(response_phase one) const { return phase_.is(one); }
  [[nodiscard]] bool is_socket() const { return is(response_phase::socket) || is(response_phase::socket_closing); }
  /// It is complete and the socket has taken all of it.
  [[nodiscard]] bool sent() const { return is(response_phase::complete) && link_ && link_->out().idle(); }
  /// Another request may follow on the connection. Final when the response is complete.
  [[nodiscard]] bool keeps_alive() const { return keep_alive_; }
  /// Part of the request's body may still arrive.
  [[nodiscard]] bool body_unread() const { return body_unread_; }
  void on_body_read() { body_unread_ = false; }
  /// The socket has taken bytes. True: http_call::writable is due.
  [[nodiscard]] bool on_sent();

 private:
  [[nodiscard]] bool may_persist() const;
  void queue(std::string bytes);
  void cut_later(const char* why);

  client_link* link_;
  connection_set& home_;
  checked_phase<response_phase> phase_{response_phase::none};
  back_pressure pressure_;
  bool bodiless_;  ///< to HEAD, or its status allows no body
  const bool http_1_0_;
  bool chunked_ = false;
  bool keep_alive_;
  bool body_unread_;
  bool cut_ = false;  ///< the connection ends as soon as the service returns
  const std::string socket_key_;
};

}  // namespace skein::connection
