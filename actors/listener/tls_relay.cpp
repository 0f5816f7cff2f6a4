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
#include <chrono>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "base/log/log.hpp"

namespace skein::listener {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using connection::ending;
using connection::stream_socket;

constexpr auto token = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t piece_bytes = 16 * 1024;  // maximum size of a TLS record
/// For the client's close_notify, or for delivering what a cut connection has written.
constexpr std::chrono::seconds goodbye_time{1};

}  // namespace

/// Copies between a client and its connection. It ends when both sockets are closed and the connection has said so.
class tls_relay : public std::enable_shared_from_this<tls_relay> {
 public:
  tls_relay(stream_socket client, stream_socket server, std::shared_ptr<asio::ssl::context> with, tls_relays& all)
      : with_(std::move(with)),
        client_(std::move(client), *with_),
        server_(std::move(server)),
        deadline_(server_.get_executor()),
        all_(all) {
    all_.relays_.insert(this);
  }
  ~tls_relay() = default;
  tls_relay(const tls_relay&) = delete;  // registered by its address
  tls_relay& operator=(const tls_relay&) = delete;

  /// Throws for lack of memory; `on_end` is then not called.
  void start(std::function<void(ending)> on_end) {
    const auto ended = [self = shared_from_this()](const std::exception_ptr& trouble) {
      if (!trouble) return;
      self->close(ending::cut);
      std::rethrow_exception(trouble);  // the io thread logs it
    };
    asio::co_spawn(server_.get_executor(), upwards(shared_from_this()), ended);
    asio::co_spawn(server_.get_executor(), downwards(shared_from_this()), ended);
    on_end_ = std::move(on_end);
  }

  /// The connection has closed its end. A client that does not read hides this from downwards(), so a deadline begins.
  void on_connection_end(ending how) {
    connection_ended_ = how;
    write_timeout_ = std::chrono::milliseconds(all_.home_->limits().write_timeout_ms);
    if (open_ && !ending_) close_in(how == ending::cut ? goodbye_time : write_timeout_);
    end_if_over();
  }

  /// Closes both sockets.
  void close(ending how) {
    if (!std::exchange(open_, false)) return;
    error_code ignored;
    if (how == ending::cut) client_.next_layer().set_option(asio::socket_base::linger(true, 0), ignored);
    client_.next_layer().close(ignored);
    server_.close(ignored);
    deadline_.cancel();
    end_if_over();
  }

 private:
  /// From the client to the server. `self` keeps the relay alive, here and below.
  asio::awaitable<void> upwards([[maybe_unused]] std::shared_ptr<tls_relay> self) {
    const auto [refused] = co_await client_.async_handshake(asio::ssl::stream_base::server, token);
    if (refused) {
      log::debug("TLS handshake failed", {{"why", refused.message()}});
      co_return close(ending::regular);
    }
    secure_ = true;
    for (std::array<char, piece_bytes> piece;;) {
      const auto [ended, count] = co_await client_.async_read_some(asio::buffer(piece), token);
      if (ended && ending_) co_return;
      if (ended == asio::error::eof || ended == asio::ssl::error::stream_truncated) break;
      if (ended) co_return close(ending::regular);
      const auto [lost, written] = co_await asio::async_write(server_, asio::buffer(piece, count), token);
      if (lost) co_return;  // the connection has closed: downwards() or the deadline ends the relay
    }
    error_code ignored;
    server_.shutdown(asio::socket_base::shutdown_send, ignored);  // the server may still respond
  }

  asio::awaitable<void> downwards([[maybe_unused]] std::shared_ptr<tls_relay> self) {
    for (std::array<char, piece_bytes> piece;;) {
      const auto [ended, count] = co_await server_.async_read_some(asio::buffer(piece), token);
      if (ended || !secure_) break;
      if (connection_ended_ == ending::regular) close_in(write_timeout_);
      const auto [lost, written] = co_await asio::async_write(client_, asio::buffer(piece, count), token);
      if (lost) co_return close(ending::regular);
    }
    // Without close_notify and with a reset, a client knows that the response is incomplete.
    if (!secure_ || connection_ended_ == ending::cut) co_return close(connection_ended_.value_or(ending::regular));
    ending_ = true;
    error_code ignored;
    client_.next_layer().cancel(ignored);
    close_in(goodbye_time);
    co_await client_.async_shutdown(token);
    close(ending::regular);
  }

  /// Replaces the deadline.
  void close_in(std::chrono::milliseconds time) {
    if (!open_) return;
    deadline_.expires_after(time);
    deadline_.async_wait([weak = weak_from_this()](const error_code& no) {
      const auto here = weak.lock();
      if (!no && here) here->close(here->ending_ ? ending::regular : ending::cut);
    });
  }

  void end_if_over() {
    if (open_ || !connection_ended_ || !on_end_) return;
    all_.forget(this);
    std::exchange(on_end_, nullptr)(*connection_ended_);
  }

  const std::shared_ptr<asio::ssl::context> with_;
  asio::ssl::stream<stream_socket> client_;
  stream_socket server_;
  asio::steady_timer deadline_;
  tls_relays& all_;  // alive while on_end_ is set
  std::function<void(ending)> on_end_;
  std::chrono::milliseconds write_timeout_{};
  std::optional<ending> connection_ended_;
  bool open_ = true;
  bool secure_ = false;  // the handshake is complete
  bool ending_ = false;  // the server has sent everything and close_notify follows
};

std::optional<plain_side> tls_relays::open(asio::io_context& context, stream_socket client,
                                           std::shared_ptr<asio::ssl::context> with,
                                           std::function<void(ending)> on_end) {
  std::array<int, 2> ends{};
  std::shared_ptr<tls_relay> made;
  try {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0) {
      const asio::generic::stream_protocol unix_stream(AF_UNIX, 0);
      stream_socket inner(context, unix_stream, ends[0]), outer(context, unix_stream, ends[1]);
      made = std::make_shared<tls_relay>(std::move(client), std::move(inner), std::move(with), *this);
      plain_side plain{std::move(outer), [made](ending how) { made->on_connection_end(how); }};
      made->start(on_end);
      return plain;
    }
  } catch (const std::exception& e) {
    log::warning("cannot begin a TLS connection", {{"why", e.what()}});
    if (made) {
      made->close(ending::cut);
      forget(made.get());
    }
  }
  on_end(ending::cut);
  return std::nullopt;
}

void tls_relays::cut_all() {
  const std::vector<tls_relay*> all(relays_.begin(), relays_.end());  // a relay that ends removes itself
  for (tls_relay* relay : all) relay->close(ending::cut);
}

}  // namespace skein::listener
