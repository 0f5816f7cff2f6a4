#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/listener/listener.hpp"
#include "actors/listener/listening_socket.hpp"
#include "actors/supervisor/process/inherited_sockets.hpp"
#include "base/result.hpp"
#include "config/config.hpp"

namespace skein::supervisor {

/// Raises the descriptor limit to what connections may need.
void make_room(const config::config& c);

/// The listening sockets of the server: those of its settings, or those of a service manager, which keeps them open
/// while the process restarts, so that clients wait in the meantime: also while the model loads, until
/// accept_inherited(). Used only on the main thread.
class open_sockets {
 public:
  explicit open_sockets(listener::listener& into) : listener_(into) {}

  /// Opens all except the admin socket. `guarded`: clients need a secret. Errors: io, bad_config, and those of
  /// certificates; bad_config also for an inherited socket beyond loopback without authentication.
  [[nodiscard]] result<void> open(const config::config& c, bool guarded);
  /// Begins to accept from inherited sockets. Call when the server is ready. Errors: io.
  [[nodiscard]] result<void> accept_inherited();
  /// Opens the admin socket. Call after the state directory is locked. A failure is an error only if
  /// server.admin_socket is set.
  [[nodiscard]] result<void> open_admin(const config::config& c);
  /// Loads a new certificate. With the first one, TLS starts immediately. No effect without a certificate.
  [[nodiscard]] result<void> renew_tls(const config::config& c);

  /// The addresses of inherited sockets, each with its port; otherwise the configured one.
  [[nodiscard]] const std::string& addresses() const { return addresses_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }          ///< 0: none
  [[nodiscard]] std::uint16_t tls_port() const { return tls_port_; }  ///< likewise

 private:
  result<void> listen(const config::config& c);
  result<void> listen_tls(const config::config& c);
  result<void> adopt(const std::vector<inherited_socket>& sockets, bool may_reach_others);
  result<void> read_certificate(const config::config& c);

  listener::listener& listener_;
  std::shared_ptr<listener::tls_door> tls_;  // null: no TLS
  struct inherited_door {
    listener::listening_socket socket;
    std::shared_ptr<const listener::tls_door> tls;  // null: no TLS
  };
  std::vector<inherited_door> waiting_;  // until accept_inherited()
  bool inherited_ = false;
  std::string addresses_;
  std::uint16_t port_ = 0, tls_port_ = 0;
};

}  // namespace skein::supervisor
