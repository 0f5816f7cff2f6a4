#include "actors/listener/listener.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <ctime>
#include <exception>
#include <future>
#include <utility>

#include "actors/connection/connection_set.hpp"
#include "actors/connection/http/response_head.hpp"
#include "actors/listener/connection_quota.hpp"
#include "actors/listener/listening_socket.hpp"
#include "actors/listener/tls_relay.hpp"
#include "base/check.hpp"
#include "base/log/log.hpp"

namespace skein::listener {
namespace {

namespace asio = boost::asio;
using asio::generic::stream_protocol;
using boost::system::error_code;
using connection::connection_set;
using connection::ending;
using connection::peer_address;
using connection::stream_socket;
using acceptor = asio::basic_socket_acceptor<stream_protocol, asio::io_context::executor_type>;

/// Pause between attempts if the system has no descriptor or memory for another socket. Asio hides errors of single
/// connections.
constexpr std::chrono::milliseconds accept_pause{50};

/// Sends tokens without delay and detects a vanished client within minutes. Limits unsent bytes, since system buffers
/// grow to megabytes otherwise and hide a client that does not read.
void tune(int fd, std::uint32_t unsent_bytes_max) {
  const auto set = [fd](int level, int name, int value) { ::setsockopt(fd, level, name, &value, sizeof(value)); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 20);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_NOTSENT_LOWAT, static_cast<int>(unsent_bytes_max));
}

}  // namespace

/// Properties of the connections of one acceptor.
struct acceptor_options {
  bool admin = false;
  std::shared_ptr<const tls_door> tls = nullptr;
};

/// The part of the listener that runs on the first io thread; all access to it is posted there.
class listener::desk : public std::enable_shared_from_this<listener::desk> {
 public:
  desk(const std::vector<io_lane>& lanes, const connection::connection_limits& limits)
      : lanes_(lanes), limits_(limits), quota_(limits), emptied_(all_gone_.get_future()) {
    for (const io_lane& lane : lanes_) {
      sets_.push_back(std::make_shared<connection_set>(limits_, lane.service, counts_));
      relays_.push_back(std::make_shared<tls_relays>(sets_.back()));
    }
  }

  void post(std::function<void()> work) { lanes_.front().thread.post(std::move(work)); }
  [[nodiscard]] connection::connection_counts& counts() { return counts_; }

  void change(const connection::connection_limits& limits) {
    limits_ = limits;
    quota_.change(limits);
    for (std::size_t i = 0; i < lanes_.size(); ++i)
      lanes_[i].thread.post([set = sets_[i], limits] { set->change(limits); });
  }

  void accept_on(int fd, int family, const std::string& unix_path, acceptor_options what = {}) {
    if (!unix_path.empty()) unix_paths_.push_back(unix_path);
    const auto made = std::make_shared<acceptor>(context_of(0));
    made->assign(stream_protocol(family, 0), fd);
    made->non_blocking(true);
    acceptors_.push_back(made);
    asio::co_spawn(context_of(0), accept_loop(shared_from_this(), made, std::move(what)),
                   [](const std::exception_ptr& trouble) {
                     if (trouble) std::rethrow_exception(trouble);  // the io thread logs it
                   });
  }

  void stop_accepting() {
    error_code ignored;
    for (const auto& a : acceptors_) a->close(ignored);
    for (const std::string& path : unix_paths_) ::unlink(path.c_str());
    unix_paths_.clear();
  }

  void close_idle() {
    on_each_lane([](connection_set& set) { set.close_idle(); });
  }

  void begin_stop() {
    stopping_ = true;
    stop_accepting();
    close_idle();
    tell_if_empty();
  }

  void cut_all() {
    on_each_lane([](connection_set& set) { set.cut_all("server stopping"); });
    for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i].thread.post([relays = relays_[i]] { relays->cut_all(); });
  }

  /// Returns whether everything was closed by the deadline.
  [[nodiscard]] bool wait_until_empty(steady_time deadline) const {
    return emptied_.wait_until(deadline) == std::future_status::ready;
  }

 private:
  asio::io_context& context_of(std::size_t lane) { return lanes_[lane].thread.context(); }

  template <typename Function>
  void on_each_lane(Function work) {
    for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i].thread.post([set = sets_[i], work] { work(*set); });
  }

  /// `self` keeps the desk alive while the coroutine runs.
  asio::awaitable<void> accept_loop([[maybe_unused]] std::shared_ptr<desk> self, std::shared_ptr<acceptor> from,
                                    acceptor_options what) {
    asio::steady_timer pause(context_of(0));
    while (from->is_open()) {
      // Not async_accept: without memory for the socket it would not resume this coroutine, but destroy it.
      const auto [closed] = co_await from->async_wait(acceptor::wait_read, asio::as_tuple(asio::use_awaitable));
      if (closed || accept_one(*from, what)) continue;
      pause.expires_after(accept_pause);
      co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    std::erase(acceptors_, from);
    tell_if_empty();
  }

  /// False: the system has no descriptor or memory for another socket.
  bool accept_one(acceptor& from, const acceptor_options& what) {
    try {
      const std::size_t lane = next_lane_++ % lanes_.size();
      stream_protocol::endpoint peer;
      error_code failed;
      stream_socket socket = from.accept(context_of(lane), peer, failed);
      if (!failed) welcome(lane, std::move(socket), peer, what);
      if (!failed || failed == asio::error::would_block || !from.is_open()) return true;
      log::warning("cannot accept connections", {{"why", failed.message()}});
      return false;
    } catch (const std::exception& e) {  // out of memory, which a pause would need as well
      log::warning("a connection was closed at once", {{"why", e.what()}});
      return true;
    }
  }

  void welcome(std::size_t lane, stream_socket socket, const stream_protocol::endpoint& from,
               const acceptor_options& what) {
    if (stopping_) return;  // accepted just before the acceptor closed
    const std::uint64_t number = counts_.accepted.fetch_add(1, std::memory_order_relaxed) + 1;
    auto peer = connection::describe_peer(from.data(), static_cast<socklen_t>(from.size()), limits_.trusted_proxies);
    peer.admin = what.admin;
    connection::name_user(peer, socket.native_handle());
    if (!quota_.admit(peer)) return turn_away(std::move(socket), what.tls != nullptr);
    counts_.open.store(quota_.open(), std::memory_order_relaxed);
    if (!peer.unix_socket) tune(socket.native_handle(), limits_.unsent_bytes_max);
    try {
      hand_over(lane, std::move(socket), peer, number, what.tls);
    } catch (...) {
      release(peer);
      throw;
    }
  }

  void hand_over(std::size_t lane, stream_socket socket, const peer_address& peer, std::uint64_t number,
                 const std::shared_ptr<const tls_door>& door) {
    std::function<void(ending)> on_end = [self = shared_from_this(), peer](ending) {
      self->post([self, peer] { self->release(peer); });
    };
    asio::post(context_of(lane), [set = sets_[lane], relays = relays_[lane], socket = std::move(socket), peer, number,
                                  on_end = std::move(on_end), context = &context_of(lane), tls = door]() mutable {
      if (!tls) return set->serve(std::move(socket), std::move(peer), number, std::move(on_end));
      auto plain = relays->open(*context, std::move(socket), tls->current(), std::move(on_end));
      if (plain) set->serve(std::move(plain->socket), std::move(peer), number, std::move(plain->on_end));
    });
  }

  /// Sends 503 and closes, without waiting; with TLS only closes.
  void turn_away(stream_socket socket, bool has_tls) {
    counts_.refused.fetch_add(1, std::memory_order_relaxed);
    if (has_tls) return;
    const std::string body = lanes_.front().service.error_body(503, "too many connections", "");
    auto headers = lanes_.front().service.refusal_headers({});
    headers.insert(headers.end(), {{"Content-Type", "application/json"}, {"Retry-After", "1"}});
    const std::string head = connection::response_head(503, headers,
                                                       {.kind = connection::response_frame::body::sized,
                                                        .content_length = body.size(),
                                                        .after = connection::response_frame::persistence::close,
                                                        .now = std::time(nullptr)});
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(std::array{asio::buffer(head), asio::buffer(body)}, ignored);
    socket.shutdown(asio::socket_base::shutdown_send, ignored);
    std::array<char, 4096> unread{};  // a close with unread bytes would reset the connection and lose the response
    socket.read_some(asio::buffer(unread), ignored);
  }

  void release(const peer_address& peer) {
    quota_.release(peer);
    counts_.open.store(quota_.open(), std::memory_order_relaxed);
    tell_if_empty();
  }

  void tell_if_empty() {
    if (!stopping_ || told_ || !acceptors_.empty() || quota_.open() > 0) return;
    told_ = true;
    all_gone_.set_value();
  }

  const std::vector<io_lane> lanes_;
  connection::connection_limits limits_;
  connection::connection_counts counts_;
  std::vector<std::shared_ptr<connection_set>> sets_;  ///< one per lane; used on that lane only
  std::vector<std::shared_ptr<tls_relays>> relays_;    ///< likewise
  std::vector<std::shared_ptr<acceptor>> acceptors_;   ///< acceptors whose loop runs
  std::vector<std::string> unix_paths_;
  connection_quota quota_;
  std::size_t next_lane_ = 0;
  bool stopping_ = false;
  bool told_ = false;
  std::promise<void> all_gone_;
  std::shared_future<void> emptied_;
};

listener::listener(const std::vector<io_lane>& lanes, const connection::connection_limits& limits) {
  check(!lanes.empty());
  desk_ = std::make_shared<desk>(lanes, limits);
}

listener::~listener() { stop(real_clock().now()); }

result<std::uint16_t> listener::listen_tls(const std::string& host, std::uint16_t port,
                                           std::shared_ptr<const tls_door> door) {
  auto made = listen_on_tcp(host, port);
  if (!made) return made.error();
  const std::uint16_t bound = made->front().port();
  for (listening_socket& s : *made) ignore(adopt(s.release(), door), "the socket was created here");
  return bound;
}

result<std::uint16_t> listener::listen_tcp(const std::string& host, std::uint16_t port) {
  return listen_tls(host, port, nullptr);
}

result<void> listener::listen_unix(const std::string& path) {
  auto made = listen_on_unix(path);
  if (!made) return made.error();
  desk_->post([desk = desk_, fd = made->release(), path] { desk->accept_on(fd, AF_UNIX, path); });
  return {};
}

result<void> listener::listen_admin(const std::string& path) {
  auto made = listen_on_unix(path, S_IRUSR | S_IWUSR);
  if (!made) return made.error();
  desk_->post([desk = desk_, fd = made->release(), path] { desk->accept_on(fd, AF_UNIX, path, {.admin = true}); });
  return {};
}

result<void> listener::adopt(int fd, std::shared_ptr<const tls_door> door) {
  listening_socket given(fd);
  int listens = 0;
  socklen_t size = sizeof(listens);
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
    return error{error_kind::invalid_argument, "descriptor " + std::to_string(fd) + " is not a listening socket", ""};
  const int family = given.family();
  desk_->post([desk = desk_, taken = given.release(), family, door = std::move(door)] {
    desk->accept_on(taken, family, "", {.tls = door});
  });
  return {};
}

void listener::stop_accepting() {
  desk_->post([desk = desk_] { desk->stop_accepting(); });
}

void listener::close_idle() {
  desk_->post([desk = desk_] { desk->close_idle(); });
}

void listener::stop(steady_time deadline) {
  desk_->post([desk = desk_] { desk->begin_stop(); });
  if (desk_->wait_until_empty(deadline)) return;
  desk_->post([desk = desk_] { desk->cut_all(); });
  // Only an io thread stuck in a handler can delay this; to abandon it would be worse.
  while (!desk_->wait_until_empty(real_clock().now() + std::chrono::seconds(10)))
    log::warning("connections do not close", {{"open", desk_->counts().open.load()}});
}

void listener::change(const connection::connection_limits& limits) {
  desk_->post([desk = desk_, limits] { desk->change(limits); });
}

connection::connection_counts& listener::counts() { return desk_->counts(); }

}  // namespace skein::listener
