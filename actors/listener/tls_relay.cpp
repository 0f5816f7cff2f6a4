#include "actors/listener/tls_relay.hpp"

#include <sys/socket.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <exception>
#include <utility>

#include "base/log/log.hpp"

namespace skein::listener {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using connection::stream_socket;

constexpr auto token = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t piece_bytes = 16 * 1024;          // maximum size of a TLS record
constexpr auto goodbye_time = std::chrono::seconds(1);  // for the client's close_notify

class relay : public std::enable_shared_from_this<relay> {
 public:
  relay(stream_socket client, stream_socket server, std::shared_ptr<asio::ssl::context> with)
      : with_(std::move(with)), client_(std::move(client), *with_), server_(std::move(server)) {}

  void start() {
    asio::co_spawn(server_.get_executor(), upwards(shared_from_this()), asio::detached);
    asio::co_spawn(server_.get_executor(), downwards(shared_from_this()), asio::detached);
  }

 private:
  /// From the client to the server. `self` keeps the relay alive, here and below.
  asio::awaitable<void> upwards([[maybe_unused]] std::shared_ptr<relay> self) {
    const auto [refused] = co_await client_.async_handshake(asio::ssl::stream_base::server, token);
    if (refused) {
      log::debug("TLS handshake failed", {{"why", refused.message()}});
      co_return close();
    }
    secure_ = true;
    for (std::array<char, piece_bytes> piece;;) {
      const auto [ended, count] = co_await client_.async_read_some(asio::buffer(piece), token);
      if (ended && ending_) co_return;
      if (ended == asio::error::eof || ended == asio::ssl::error::stream_truncated) break;
      if (ended) co_return close();
      const auto [lost, written] = co_await asio::async_write(server_, asio::buffer(piece, count), token);
      if (lost) co_return;  // downwards() sees it too
    }
    error_code ignored;
    server_.shutdown(asio::socket_base::shutdown_send, ignored);  // the server may still respond
  }

  asio::awaitable<void> downwards([[maybe_unused]] std::shared_ptr<relay> self) {
    for (std::array<char, piece_bytes> piece;;) {
      const auto [ended, count] = co_await server_.async_read_some(asio::buffer(piece), token);
      if (ended || !secure_) break;
      const auto [lost, written] = co_await asio::async_write(client_, asio::buffer(piece, count), token);
      if (lost) co_return close();
    }
    if (!secure_) co_return close();
    ending_ = true;
    error_code ignored;
    client_.next_layer().cancel(ignored);
    asio::steady_timer late(server_.get_executor(), goodbye_time);
    late.async_wait([weak = weak_from_this()](const error_code& no) {
      const auto here = weak.lock();
      if (!no && here) here->close();
    });
    co_await client_.async_shutdown(token);
    close();
  }

  void close() {
    error_code ignored;
    client_.next_layer().close(ignored);
    server_.close(ignored);
  }

  const std::shared_ptr<asio::ssl::context> with_;
  asio::ssl::stream<stream_socket> client_;
  stream_socket server_;
  bool secure_ = false;  // the handshake is complete
  bool ending_ = false;  // the server has closed
};

}  // namespace

std::optional<stream_socket> relay_tls(asio::io_context& context, stream_socket socket,
                                       std::shared_ptr<asio::ssl::context> with) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return std::nullopt;
  const asio::generic::stream_protocol unix_stream(AF_UNIX, 0);
  try {
    stream_socket inner(context, unix_stream, ends[0]), outer(context, unix_stream, ends[1]);
    std::make_shared<relay>(std::move(socket), std::move(inner), std::move(with))->start();
    return outer;
  } catch (const std::exception& e) {
    log::warning("cannot begin a TLS connection", {{"why", e.what()}});
    return std::nullopt;
  }
}

}  // namespace skein::listener
