#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "actors/connection/connection_set.hpp"
#include "actors/connection/http/http.hpp"
#include "actors/connection/http/peer_address.hpp"
#include "actors/connection/http/refusal.hpp"
#include "actors/connection/http/request_gate.hpp"
#include "actors/connection/http_response.hpp"
#include "actors/connection/link/client_link.hpp"
#include "actors/connection/link/link_owner.hpp"

namespace skein::connection {

/// One HTTP/1.1 connection, which may become a WebSocket: reads requests from its link, applies the gate, and lets the
/// service answer them one after another.
///
/// It runs only on the io thread of its set. One coroutine, `run`, reads header and body, and keeps reading, so that it
/// notices a hang-up while the response is awaited or streamed. A second one applies the deadlines of the link. Both,
/// and a running write, keep the connection alive; it ends when `close` has made them return.
class connection final : public std::enable_shared_from_this<connection>, private link_owner {
 public:
  connection(stream_socket socket, peer_address peer, std::uint64_t number, std::shared_ptr<connection_set> home,
             std::function<void(ending)> on_end);
  ~connection() override;
  connection(const connection&) = delete;  // one owner of the socket
  connection& operator=(const connection&) = delete;

  void start();
  /// Makes `run` check for changes: a response was sent, or the set is closing.
  void wake() { link_.in().wake(); }
  /// Ends the connection immediately with a reset. Never called from within http_call.
  void cut(std::string_view why) override;

 private:
  /// One request and its response.
  struct exchange {
    std::unique_ptr<http_call> call;
    std::shared_ptr<http_response> out;
  };

  std::shared_ptr<void> keep_alive() override { return shared_from_this(); }
  void on_sent() override;

  boost::asio::awaitable<void> run();
  boost::asio::awaitable<bool> serve_one();
  boost::asio::awaitable<std::optional<raw_header>> read_header();
  boost::asio::awaitable<bool> read_body(const body_framing& framing);
  boost::asio::awaitable<void> await_response();
  boost::asio::awaitable<void> serve_socket();
  boost::asio::awaitable<void> say_goodbye();

  void begin_exchange(admission admitted);
  void end_exchange();
  void lose_call(std::string_view why, unsigned status);
  void refuse(const refusal& why, const header_list& fields = {}, std::string_view target = {});
  void refuse_memory(byte_share::outcome no, std::size_t bytes);
  void close(ending how = ending::regular);

  const peer_address peer_;
  const std::uint64_t number_;
  const std::shared_ptr<connection_set> home_;
  std::function<void(ending)> on_end_;
  client_link link_;
  std::optional<exchange> exchange_;
  std::uint32_t requests_ = 0;
};

}  // namespace skein::connection
