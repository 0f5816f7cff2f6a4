#include "tests/support/http_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace skein::test {
namespace {

constexpr int wait_ms = 10'000;

[[noreturn]] void fail(const char* what) { throw std::runtime_error(std::string(what) + ": " + std::strerror(errno)); }

void wait_for(int fd, short events) {
  pollfd waiting{fd, events, 0};
  const int ready = ::poll(&waiting, 1, wait_ms);
  if (ready < 0) fail("poll");
  if (ready == 0) throw std::runtime_error("http_client: the server let the deadline pass");
}

std::string trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return std::string(text);
}

}  // namespace

std::string http_response::header(std::string_view name) const {
  for (const auto& [n, v] : headers)
    if (n == name) return v;
  return {};
}

http_client::http_client(std::uint16_t port, const std::string& address) {
  sockaddr_storage to{};
  socklen_t size = sizeof(sockaddr_in);
  if (address.find(':') == std::string::npos) {
    auto& four = reinterpret_cast<sockaddr_in&>(to);
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    inet_pton(AF_INET, address.c_str(), &four.sin_addr);
  } else {
    auto& six = reinterpret_cast<sockaddr_in6&>(to);
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    inet_pton(AF_INET6, address.c_str(), &six.sin6_addr);
    size = sizeof(sockaddr_in6);
  }
  fd_ = ::socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) fail("socket");
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), size) != 0) {
    close();
    fail("connect");
  }
}

http_client::http_client(const std::string& unix_path) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::strncpy(to.sun_path, unix_path.c_str(), sizeof(to.sun_path) - 1);
  fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) fail("socket");
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) {
    close();
    fail("connect");
  }
}

http_client::~http_client() { close(); }

http_client::http_client(http_client&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      received_(std::move(other.received_)),
      body_(std::move(other.body_)),
      framing_(other.framing_),
      remaining_(other.remaining_),
      body_ended_(other.body_ended_) {}

bool http_client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    wait_for(fd_, POLLOUT);
    const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool http_client::request(std::string_view method, std::string_view target, std::string_view body,
                          std::string_view more_headers) {
  std::string bytes = std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n";
  bytes += more_headers;
  if (!body.empty()) bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return send(bytes + "\r\n" + std::string(body));
}

/// Receives some more; false at the end of the connection, orderly or not.
bool http_client::fill() {
  char piece[16384];
  for (;;) {
    wait_for(fd_, POLLIN);
    const ssize_t count = ::recv(fd_, piece, sizeof(piece), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count <= 0) return false;
    received_.append(piece, static_cast<std::size_t>(count));
    return true;
  }
}

std::optional<std::string> http_client::take_line() {
  std::size_t end = 0;
  while ((end = received_.find("\r\n")) == std::string::npos)
    if (!fill()) return std::nullopt;
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 2);
  return line;
}

std::optional<http_response> http_client::read_head() {
  const auto status_line = take_line();
  if (!status_line) return std::nullopt;
  if (!status_line->starts_with("HTTP/1.1 ")) throw std::runtime_error("no response: " + *status_line);
  http_response response;
  response.status = static_cast<unsigned>(std::stoul(status_line->substr(9, 3)));
  for (;;) {
    const auto line = take_line();
    if (!line) return std::nullopt;
    if (line->empty()) break;
    const std::size_t colon = line->find(':');
    if (colon == std::string::npos) throw std::runtime_error("no header: " + *line);
    std::string name = line->substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c < 'A' || c > 'Z' ? c : char(c | 0x20); });
    response.headers.emplace_back(name, trimmed(std::string_view(*line).substr(colon + 1)));
  }
  body_.clear();
  body_ended_ = false;
  remaining_ = 0;
  if (response.header("transfer-encoding") == "chunked") {
    framing_ = framing::chunked;
  } else if (const std::string length = response.header("content-length"); !length.empty()) {
    framing_ = framing::sized;
    remaining_ = std::stoul(length);
    body_ended_ = remaining_ == 0;
  } else if (response.status / 100 == 1 || response.status == 204 || response.status == 304) {
    framing_ = framing::none;
    body_ended_ = true;
  } else {
    framing_ = framing::until_close;
  }
  return response;
}

/// Moves at least one byte, or the end, of the body from received_; false when the connection ended before that.
bool http_client::fill_body() {
  if (framing_ == framing::chunked) {
    const auto line = take_line();
    if (!line) return false;
    const std::size_t size = std::stoul(*line, nullptr, 16);
    while (received_.size() < size + 2)
      if (!fill()) return false;
    if (received_.compare(size, 2, "\r\n") != 0) throw std::runtime_error("a chunk does not end where it says");
    body_.append(received_, 0, size);
    received_.erase(0, size + 2);
    body_ended_ = size == 0;
    return true;
  }
  if (received_.empty() && !fill()) {
    body_ended_ = framing_ == framing::until_close;
    return body_ended_;
  }
  const std::size_t take = framing_ == framing::sized ? std::min(remaining_, received_.size()) : received_.size();
  body_.append(received_, 0, take);
  received_.erase(0, take);
  if (framing_ == framing::sized) {
    remaining_ -= take;
    body_ended_ = remaining_ == 0;
  }
  return true;
}

std::optional<std::string> http_client::read_body() {
  while (!body_ended_)
    if (!fill_body()) return std::nullopt;
  return std::exchange(body_, {});
}

std::optional<http_response> http_client::read_response(bool to_head) {
  auto response = read_head();
  if (!response || to_head) return response;
  auto body = read_body();
  if (!body) return std::nullopt;
  response->body = std::move(*body);
  return response;
}

std::optional<server_event> http_client::read_event() {
  std::size_t end = 0;
  while ((end = body_.find("\n\n")) == std::string::npos)
    if (body_ended_ || !fill_body()) return std::nullopt;
  server_event event;
  std::string_view lines = std::string_view(body_).substr(0, end);
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    if (line.starts_with("event:")) event.name = trimmed(line.substr(6));
    if (line.starts_with("data:")) event.data += (event.data.empty() ? "" : "\n") + trimmed(line.substr(5));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
  }
  body_.erase(0, end + 2);
  return event;
}

std::string http_client::read_to_end() {
  while (fill()) {
  }
  return std::exchange(received_, {});
}

bool http_client::closed_by_server() { return received_.empty() && !fill(); }

void http_client::shutdown_send() { ::shutdown(fd_, SHUT_WR); }

void http_client::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void http_client::reset() {
  const linger at_once{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close();
}

}  // namespace skein::test
