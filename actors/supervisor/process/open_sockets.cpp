#include "actors/supervisor/process/open_sockets.hpp"

#include <sys/socket.h>

#include <utility>

#include "actors/supervisor/process/descriptor_limit.hpp"
#include "app/state_server.hpp"
#include "base/log/log.hpp"
#include "config/rules.hpp"

namespace skein::supervisor {
namespace {

/// "127.0.0.1:8000", "[::]:8000" or the path of a unix socket.
std::string name_of(const listener::listening_socket& s) {
  std::string address = s.address();
  if (s.family() == AF_UNIX) return address;
  return (s.family() == AF_INET6 ? '[' + address + ']' : address) + ':' + std::to_string(s.port());
}

}  // namespace

void make_room(const config::config& c) {
  const std::uint32_t each = c.server.tls_certificate.empty() ? 1 : 3;  // a TLS connection has three descriptors
  allow_connections(c.limits.connections_max, each);
}

result<void> open_sockets::open(const config::config& c, bool guarded) {
  const auto sockets = inherited_sockets();
  if (!sockets) return sockets.error();
  inherited_ = !sockets->empty();
  if (auto ok = read_certificate(c); !ok) return ok;
  addresses_ = c.server.host;
  return inherited_ ? adopt(*sockets, guarded || c.server.allow_unauthenticated) : listen(c);
}

result<void> open_sockets::listen(const config::config& c) {
  if (!c.server.unix_socket.empty())
    if (auto ok = listener_.listen_unix(c.server.unix_socket); !ok) return ok;
  auto port = listener_.listen_tcp(c.server.host, static_cast<std::uint16_t>(c.server.port));
  if (!port) return port.error();
  port_ = *port;
  return tls_ ? listen_tls(c) : result<void>();
}

result<void> open_sockets::listen_tls(const config::config& c) {
  auto port = listener_.listen_tls(c.server.host, static_cast<std::uint16_t>(c.server.tls_port), tls_);
  if (!port) return port.error();
  tls_port_ = *port;
  return {};
}

result<void> open_sockets::adopt(const std::vector<inherited_socket>& sockets, bool may_reach_others) {
  addresses_.clear();
  for (const inherited_socket& s : sockets) {
    listener::listening_socket taken(s.fd);
    const std::string address = name_of(taken);
    const bool is_here = taken.family() == AF_UNIX || config::is_loopback(taken.address());
    if (!is_here && !may_reach_others)
      return error{error_kind::bad_config,
                   "the inherited socket " + address +
                       " is not on a loopback address; set server.password_file (--password-file), server.keys_file "
                       "(--keys-file) or, for a public server, server.allow_unauthenticated "
                       "(--allow-unauthenticated)",
                   "LISTEN_FDS"};
    addresses_ += (addresses_.empty() ? "" : ", ") + address;
    const bool has_tls = s.name == "https";
    if (has_tls && !tls_)
      return error{error_kind::bad_config,
                   "server.tls_certificate is not set; the inherited socket https needs a certificate",
                   "server.tls_certificate"};
    if (taken.port() != 0) (has_tls ? tls_port_ : port_) = taken.port();
    waiting_.push_back({std::move(taken), has_tls ? tls_ : nullptr});
  }
  return {};
}

result<void> open_sockets::accept_inherited() {
  for (inherited_door& door : std::exchange(waiting_, {}))
    if (auto ok = listener_.adopt(door.socket.release(), door.tls); !ok) return ok;
  return {};
}

/// Loads the certificate. If the setting was removed, the old certificate stays and listening continues.
result<void> open_sockets::read_certificate(const config::config& c) {
  if (c.server.tls_certificate.empty()) {
    if (tls_) log::warning("TLS can be disabled only by a restart; the old certificate stays");
    return {};
  }
  const auto door = tls_ ? tls_ : std::make_shared<listener::tls_door>();
  if (auto ok = door->load(c.server.tls_certificate, c.server.tls_key); !ok) return ok;
  tls_ = door;
  return {};
}

result<void> open_sockets::renew_tls(const config::config& c) {
  const bool begins = !tls_;
  if (auto ok = read_certificate(c); !ok || !begins || !tls_) return ok;
  if (inherited_) {
    log::warning("no TLS until a restart: the service manager passed no socket named https");
    return {};
  }
  if (auto ok = listen_tls(c); !ok) {
    tls_ = nullptr;
    return ok;
  }
  make_room(c);
  log::info("listening with TLS", {{"tls_port", static_cast<std::uint32_t>(tls_port_)}});
  return {};
}

result<void> open_sockets::open_admin(const config::config& c) {
  const auto& s = c.server;
  if (!s.admin_socket.empty()) return listener_.listen_admin(s.admin_socket);
  if (s.state_dir.empty()) return {};
  const auto standard = listener_.listen_admin(cli::admin_socket(s.state_dir).string());
  if (!standard) log::warning("the admin socket is not available", {{"why", standard.error().message}});
  return {};
}

}  // namespace skein::supervisor
