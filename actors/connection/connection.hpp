#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "actors/byte_hold.hpp"
#include "actors/connection/connection_set.hpp"
#include "actors/connection/http/http.hpp"
#include "actors/connection/http/peer_address.hpp"
#include "actors/connection/http/refusal.hpp"
#include "actors/connection/http/request_gate.hpp"
#include "actors/connection/outbound_queue.hpp"
#include "actors/connection/websocket/socket_frames.hpp"

namespace skein::connection {

/// One HTTP/1.1 connection, which may become a WebSocket.
///
/// It runs only on the io thread of its set. One coroutine, `run`, reads header and body, applies the gate, and keeps
/// reading, so that it notices a hang-up while the response is awaited or streamed. Writing is a chain of completions,
/// at most one write at a time, started when bytes are queued. A second coroutine, `watch`, owns the one timer for both
/// deadlines. All three keep the connection alive; it ends when `close` has made them return.
class connection : public std::enable_shared_from_this<connection> {
 public:
  connection(stream_socket socket, peer_address peer, std::uint64_t number, std::shared_ptr<connection_set> home,
             std::function<void()> on_end);
  ~connection();
  connection(const connection&) = delete;  // one owner of the socket
  connection& operator=(const connection&) = delete;

  void start();
  /// Makes `run` check for changes: a response was sent, or the set is closing.
  void wake();
  /// Ends the connection immediately with a reset. Never called from within http_call.
  void cut(std::string_view why);

 private:
  /// The result of waiting for the client.
  enum class arrival { bytes, end, broken, late, woken };
  /// One request and its response.
  struct exchange;
  /// The response_writer of one exchange; a no-op after its end.
  class writer;

  boost::asio::awaitable<void> run();
  boost::asio::awaitable<void> watch();
  boost::asio::awaitable<bool> serve_one();
  boost::asio::awaitable<std::optional<raw_header>> read_header();
  boost::asio::awaitable<bool> read_body(const body_framing& framing);
  boost::asio::awaitable<void> await_response();
  boost::asio::awaitable<void> serve_socket();
  boost::asio::awaitable<void> say_goodbye();
  boost::asio::awaitable<arrival> receive();
  boost::asio::awaitable<arrival> receive(std::string_view& fresh);
  boost::asio::awaitable<arrival> listen();
  boost::asio::awaitable<arrival> wait_for(boost::asio::socket_base::wait_type what);

  void begin_exchange(admission admitted);
  void end_exchange();
  void lose_call(std::string_view why, unsigned status);
  void refuse(const refusal& why, const header_list& fields = {}, std::string_view target = {});
  void refuse_memory(byte_share::outcome no, std::size_t bytes);
  void close();
  template <typename Function>
  bool calls(Function&& into_service);

  void respond(unsigned status, const header_list& headers, std::string body);
  void begin_stream(unsigned status, const header_list& headers);
  void write(std::string bytes);
  void end_stream();
  void upgrade(header_list headers);
  void send(std::string_view message);
  void close_socket(std::uint16_t code, std::string_view reason);
  void charge(const byte_share& share);
  [[nodiscard]] byte_share::outcome reserve(std::size_t bytes);
  [[nodiscard]] std::size_t queued_bytes() const;
  [[nodiscard]] bool hear(socket_event event);
  void post_cut(const char* why);
  [[nodiscard]] bool may_persist() const;
  [[nodiscard]] bool response_sent() const;

  void flush();
  void on_written(const boost::system::error_code& ec, std::size_t count);

  void set_read_deadline(steady_time at);
  void expect_by(steady_time at);

  stream_socket socket_;
  const peer_address peer_;
  const std::uint64_t number_;
  const std::shared_ptr<connection_set> home_;
  std::function<void()> on_end_;

  std::string in_;  ///< received and not yet consumed
  outbound_queue out_;
  byte_hold in_hold_, out_hold_;  ///< of the body so far or a WebSocket message; of out_
  std::unique_ptr<exchange> exchange_;
  std::uint32_t requests_ = 0;

  boost::asio::basic_waitable_timer<std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>,
                                    boost::asio::io_context::executor_type>
      timer_;
  steady_time read_deadline_ = steady_time::max();
  steady_time write_deadline_ = steady_time::max();  ///< of the current write
  boost::asio::cancellation_signal stop_waiting_;    ///< cancels the wait in receive()

  bool woken_ = false;
  bool late_ = false;          ///< the read deadline has passed
  bool client_ended_ = false;  ///< the client has closed its sending side
  bool writing_ = false;
  bool closed_ = false;
};

}  // namespace skein::connection
