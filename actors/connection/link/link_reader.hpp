#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/socket_base.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "actors/byte_hold.hpp"
#include "actors/connection/link/stream_socket.hpp"

namespace skein::connection {

/// The result of waiting for the client.
enum class arrival : std::uint8_t {
  bytes,
  end,     ///< the client has closed its sending side
  broken,  ///< the socket has failed
  late,    ///< the read deadline has passed
  woken,   ///< something other than the client has changed
};

/// The receiving half of a client's socket, read by one coroutine: bytes that are not yet consumed, and waiting for
/// more.
class link_reader {
 public:
  /// `scratch`: used for one read, until the next wait. It and `socket` outlive this.
  link_reader(stream_socket& socket, std::span<char> scratch) : socket_(socket), scratch_(scratch) {}

  /// Received and not yet consumed.
  [[nodiscard]] std::string& bytes() { return bytes_; }
  /// The memory of the body so far or of a WebSocket message.
  [[nodiscard]] byte_hold& hold() { return hold_; }
  /// The client has closed its sending side.
  [[nodiscard]] bool ended() const { return ended_; }

  /// Waits for bytes and adds them to bytes().
  [[nodiscard]] boost::asio::awaitable<arrival> receive();
  /// Waits for bytes; they stay valid until the next wait that uses the same scratch.
  [[nodiscard]] boost::asio::awaitable<arrival> receive(std::string_view& fresh);
  /// As receive, while a response is being sent: bytes belong to a pipelined request. If there is no room for more of
  /// it or the client has closed its side, waits only for errors.
  [[nodiscard]] boost::asio::awaitable<arrival> listen(std::size_t bytes_max);
  /// Waits until the socket is ready (arrival::bytes) or another event occurs.
  [[nodiscard]] boost::asio::awaitable<arrival> wait_for(boost::asio::socket_base::wait_type ready);

  /// Ends the current or next wait with arrival::woken.
  void wake();
  /// The same with arrival::late, unless expect() is called first.
  void set_late();
  /// A new deadline holds: forgets that an earlier one has passed.
  void expect() { late_ = false; }
  /// Drops the bytes and ends the wait.
  void close();

 private:
  stream_socket& socket_;
  const std::span<char> scratch_;
  std::string bytes_;
  byte_hold hold_;
  boost::asio::cancellation_signal stop_waiting_;
  bool woken_ = false, late_ = false;  ///< events that no wait has returned yet
  bool ended_ = false;
};

}  // namespace skein::connection
