#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/listener/listener.hpp"
#include "actors/supervisor/inherited_sockets.hpp"
#include "base/result.hpp"
#include "config/config.hpp"

namespace skein::supervisor {

/// For all descriptors that connections may need.
void make_room(const config::config& c);

/// The sockets that a server listens on: those of its settings, or those of a service manager, which keeps them while
/// the process is started anew, so that whoever connects meanwhile waits. Lives on the main thread.
class open_sockets {
 public:
  explicit open_sockets(listener::listener& into) : listener_(into) {}

  /// All but the admin socket. `guarded`: clients need a secret. Errors: io, bad_config, and those of certificates;
  /// bad_config also for an inherited socket beyond loopback that nothing guards.
  [[nodiscard]] result<void> open(const config::config& c, bool guarded);
  /// Only when no other server can have the state directory. Where nobody asked for it, it is no reason to end.
  [[nodiscard]] result<void> open_admin(const config::config& c);
  /// A certificate that was exchanged; or the first one, with which TLS begins here and now. Otherwise nothing changes.
  [[nodiscard]] result<void> renew_tls(const config::config& c);

  /// The addresses of what is inherited, each with its port; else the configured one.
  [[nodiscard]] const std::string& addresses() const { return addresses_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }          ///< 0: there is none
  [[nodiscard]] std::uint16_t tls_port() const { return tls_port_; }  ///< likewise

 private:
  result<void> listen(const config::config& c);
  result<void> listen_tls(const config::config& c);
  result<void> adopt(const std::vector<inherited_socket>& sockets, bool may_reach_others);
  result<void> read_certificate(const config::config& c);

  listener::listener& listener_;
  std::shared_ptr<listener::tls_door> tls_;  // null: nobody speaks TLS
  bool inherited_ = false;
  std::string addresses_;
  std::uint16_t port_ = 0, tls_port_ = 0;
};

}  // namespace skein::supervisor
