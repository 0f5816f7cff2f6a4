#pragma once
#include <boost/asio/awaitable.hpp>
#include <span>

#include "actors/connection/http/http.hpp"
#include "actors/connection/link/link_deadlines.hpp"
#include "actors/connection/link/link_owner.hpp"
#include "actors/connection/link/link_reader.hpp"
#include "actors/connection/link/link_writer.hpp"
#include "actors/connection/link/stream_socket.hpp"

namespace skein::connection {

/// The bytes between a connection and its client: the socket, its two halves and their deadlines. Knows nothing of
/// HTTP.
class client_link {
 public:
  /// `scratch`, `limits` and `owner` outlive this.
  client_link(stream_socket socket, std::span<char> scratch, const connection_limits& limits, link_owner& owner);

  [[nodiscard]] link_reader& in() { return in_; }
  [[nodiscard]] link_writer& out() { return out_; }
  [[nodiscard]] const link_reader& in() const { return in_; }
  [[nodiscard]] const link_writer& out() const { return out_; }
  [[nodiscard]] stream_socket::executor_type executor() { return socket_.get_executor(); }

  /// Bytes must arrive until then, or a wait of in() ends with arrival::late.
  void set_read_deadline(steady_time at);
  /// Applies the deadlines until the link is closed.
  [[nodiscard]] boost::asio::awaitable<void> watch();
  /// Shuts down the sending side.
  void end_sending();
  /// Cuts the owner from a separate handler: for callers that it may not end within their call.
  void cut_later(const char* why);
  /// Makes the coming close() a reset, so that the client does not take it for a regular end.
  void reset_on_close();
  void close();
  [[nodiscard]] bool closed() const { return closed_; }

 private:
  stream_socket socket_;
  link_owner& owner_;
  link_deadlines deadlines_;
  link_reader in_;
  link_writer out_;
  bool closed_ = false;
};

}  // namespace skein::connection
