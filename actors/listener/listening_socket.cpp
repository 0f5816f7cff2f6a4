#include "actors/listener/listening_socket.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/log/log.hpp"

namespace skein::listener {
namespace {

constexpr int backlog = 4096;  // the kernel limits it to net.core.somaxconn

error system_error(const std::string& what, const char* field) {
  const auto kind = errno == EACCES || errno == EPERM ? error_kind::forbidden : error_kind::io;
  return {kind, what + ": " + std::strerror(errno), field};
}

sockaddr_storage local_address(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return address;
}

void switch_option(int fd, int level, int name, int value) { setsockopt(fd, level, name, &value, sizeof(value)); }

result<listening_socket> bind_and_listen(const sockaddr* address, socklen_t size, const std::string& name,
                                         const char* field, mode_t mode = 0777) {
  listening_socket made(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (made.fd() < 0) return system_error("cannot create a socket for " + name, field);
  if (address->sa_family != AF_UNIX) switch_option(made.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address->sa_family == AF_INET6) {
    const auto* six = reinterpret_cast<const sockaddr_in6*>(address);
    switch_option(made.fd(), IPPROTO_IPV6, IPV6_V6ONLY, IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr) ? 0 : 1);
  }
  // The file of a unix socket inherits the permissions of the socket, so it never has wider ones.
  if (address->sa_family == AF_UNIX && ::fchmod(made.fd(), mode) != 0)
    return system_error("cannot set the permissions of " + name, field);
  if (::bind(made.fd(), address, size) != 0 || ::listen(made.fd(), backlog) != 0)
    return system_error("cannot listen on " + name, field);
  return made;
}

/// Listens on the first address of `host` (numeric or a name) that can be bound.
result<listening_socket> listen_on_host(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int trouble = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (trouble != 0)
    return error{error_kind::invalid_argument, "unknown host '" + host + "': " + gai_strerror(trouble), "host"};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);

  error last{error_kind::io, "no address for " + host, "host"};
  for (const addrinfo* a = found; a; a = a->ai_next) {
    auto made = bind_and_listen(a->ai_addr, a->ai_addrlen, host + " port " + std::to_string(port), "port");
    if (made) return made;
    last = made.error();
  }
  return last;
}

/// True if the file is a socket that no process listens on.
bool abandoned(const sockaddr_un& address) {
  struct stat file {};
  if (lstat(address.sun_path, &file) != 0 || !S_ISSOCK(file.st_mode)) return false;
  const listening_socket probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(probe.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
         errno == ECONNREFUSED;
}

}  // namespace

listening_socket::~listening_socket() {
  if (fd_ >= 0) ::close(fd_);
}

std::uint16_t listening_socket::port() const {
  const sockaddr_storage address = local_address(fd_);
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return 0;
}

std::string listening_socket::address() const {
  const sockaddr_storage bound = local_address(fd_);
  char text[INET6_ADDRSTRLEN] = "";
  if (bound.ss_family == AF_UNIX) return reinterpret_cast<const sockaddr_un&>(bound).sun_path;
  if (bound.ss_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(bound).sin_addr, text, sizeof text);
  if (bound.ss_family == AF_INET6) {
    const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(bound).sin6_addr;
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&six);
    inet_ntop(mapped ? AF_INET : AF_INET6, mapped ? six.s6_addr + 12 : six.s6_addr, text, sizeof text);
  }
  return text;
}

int listening_socket::family() const { return local_address(fd_).ss_family; }

result<std::vector<listening_socket>> listen_on_tcp(const std::string& host, std::uint16_t port) {
  std::vector<listening_socket> made;
  const bool both = host == "localhost";
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  auto first = listen_on_host(both ? "127.0.0.1" : bracketed ? host.substr(1, host.size() - 2) : host, port);
  if (!first) return first.error();
  const std::uint16_t bound = first->port();
  made.push_back(std::move(*first));
  if (both) {
    auto second = listen_on_host("::1", bound);
    if (second)
      made.push_back(std::move(*second));
    else
      log::debug("no listener on ::1", {{"why", second.error().message}});
  }
  return made;
}

result<listening_socket> listen_on_unix(const std::string& path, mode_t mode) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path))
    return error{error_kind::invalid_argument, "the path of a unix socket must have 1 to 107 bytes", "host"};
  std::memcpy(address.sun_path, path.data(), path.size());
  if (abandoned(address)) ::unlink(path.c_str());
  return bind_and_listen(reinterpret_cast<const sockaddr*>(&address), sizeof(address), path, "host", mode);
}

}  // namespace skein::listener
