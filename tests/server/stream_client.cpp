#include "tests/server/stream_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace skein::test {
namespace {

constexpr std::chrono::seconds silence_max{30};
constexpr std::chrono::milliseconds round_max{100};

// Together they bound what the kernel holds for a reader that does not read: a small segment keeps the sender's buffer
// from growing, as that is measured in segments.
constexpr int slow_segment_bytes = 536;
constexpr int slow_window_bytes = 16 * 1024;

[[noreturn]] void fail(const char* what) { throw std::runtime_error(std::string(what) + ": " + std::strerror(errno)); }

void set_option(int fd, int level, int name, int value) { ::setsockopt(fd, level, name, &value, sizeof(value)); }

void raise_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

stream_client::stream_client(std::uint16_t port) : port_(port), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) fail("epoll_create1");
  raise_descriptor_limit();
}

stream_client::~stream_client() {
  for (const auto& g : guests_)
    if (g->fd >= 0) ::close(g->fd);
  ::close(epoll_);
}

stream_client::index stream_client::start(visit what) {
  auto made = std::make_unique<guest>();
  made->fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made->fd < 0) fail("socket");
  set_option(made->fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (what.slow) {
    set_option(made->fd, IPPROTO_TCP, TCP_MAXSEG, slow_segment_bytes);
    set_option(made->fd, SOL_SOCKET, SO_RCVBUF, slow_window_bytes);
  }
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port_);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  made->reads = !what.slow;
  made->what = std::move(what);
  const int fd = made->fd;
  guests_.push_back(std::move(made));
  ++open_;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0 && errno != EINPROGRESS) fail("connect");
  watch(guests_.size() - 1, EPOLL_CTL_ADD);
  return guests_.size() - 1;
}

void stream_client::run() {
  run_until([this] { return open_ == 0; });
}

void stream_client::run_until(const std::function<bool()>& enough) {
  std::array<epoll_event, 256> ready;
  time_point last_event = std::chrono::steady_clock::now();
  while (!enough()) {
    auto wait = round_max;
    time_point now = std::chrono::steady_clock::now();
    if (!leave_at_.empty())
      wait = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(leave_at_.begin()->first - now),
                        std::chrono::milliseconds(0), round_max);
    const int count =
        ::epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), static_cast<int>(wait.count()));
    if (count < 0 && errno != EINTR) fail("epoll_wait");
    for (auto event = ready.begin(); event < ready.begin() + count; ++event) handle(event->data.u64, event->events);

    now = std::chrono::steady_clock::now();
    if (count > 0) last_event = now;
    while (!leave_at_.empty() && leave_at_.begin()->first <= now) {
      const index i = leave_at_.begin()->second;
      leave_at_.erase(leave_at_.begin());
      if (guests_[i]->fd >= 0) leave(i);
      last_event = now;
    }
    if (now - last_event > silence_max) throw std::runtime_error("the server has been silent for too long");
  }
}

void stream_client::read_on(index i) {
  guests_[i]->reads = true;
  watch(i, EPOLL_CTL_MOD);
}

bool stream_client::sent_all(const guest& g) const {
  return g.sent == std::min(g.what.send_bytes, g.what.request.size());
}

void stream_client::watch(index i, int operation) {
  const guest& g = *guests_[i];
  epoll_event wanted{};
  wanted.events = (g.reads ? EPOLLIN : 0u) | (sent_all(g) && operation != EPOLL_CTL_ADD ? 0u : EPOLLOUT);
  wanted.data.u64 = i;
  if (::epoll_ctl(epoll_, operation, g.fd, &wanted) != 0) fail("epoll_ctl");
}

void stream_client::handle(index i, std::uint32_t events) {
  guest& g = *guests_[i];
  if (g.fd >= 0 && (events & EPOLLOUT) != 0) send(i);
  if (g.fd >= 0 && (events & EPOLLIN) != 0) receive(i);
  if (g.fd >= 0 && (events & (EPOLLERR | EPOLLHUP)) != 0 && (events & EPOLLIN) == 0) end(i);
}

void stream_client::send(index i) {
  guest& g = *guests_[i];
  if (!sent_all(g)) {
    const std::size_t count = std::min(g.what.send_bytes, g.what.request.size()) - g.sent;
    const ssize_t taken = ::send(g.fd, g.what.request.data() + g.sent, count, MSG_NOSIGNAL);
    if (taken < 0 && errno != EAGAIN) return end(i);
    if (taken > 0) g.sent += static_cast<std::size_t>(taken);
  }
  if (!sent_all(g)) return;
  watch(i, EPOLL_CTL_MOD);
  if (g.what.patience != std::chrono::microseconds::max())
    leave_at_.emplace(std::chrono::steady_clock::now() + g.what.patience, i);
  else if (g.sent < g.what.request.size() || g.what.read_bytes == 0)
    leave(i);
}

void stream_client::receive(index i) {
  guest& g = *guests_[i];
  std::array<char, 16 * 1024> buffer;
  const std::size_t room = g.leaving ? buffer.size() : std::min(buffer.size(), g.what.read_bytes - g.received);
  const ssize_t count = ::recv(g.fd, buffer.data(), room, 0);
  if (count < 0 && errno == EAGAIN) return;
  if (count <= 0) return end(i);
  g.received += static_cast<std::size_t>(count);
  g.answer.read({buffer.data(), static_cast<std::size_t>(count)});
  if (!g.leaving && (g.answer.complete() || g.received >= g.what.read_bytes)) leave(i);
}

void stream_client::leave(index i) {
  guest& g = *guests_[i];
  if (g.what.leaves == departure::half_close) {
    g.leaving = true;
    ::shutdown(g.fd, SHUT_WR);
    return;
  }
  if (g.what.leaves == departure::reset) {
    const linger at_once{1, 0};
    ::setsockopt(g.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  }
  end(i);
}

void stream_client::end(index i) {
  guest& g = *guests_[i];
  ::close(g.fd);
  g.fd = -1;
  --open_;
  g.what.request = {};
}

}  // namespace skein::test
