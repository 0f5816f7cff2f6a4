#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace skein::supervisor {

/// Reports the state of the process to the service manager (systemd) by the protocol of sd_notify(3): one datagram per
/// message to the socket in $NOTIFY_SOCKET. Without that variable all functions are no-ops; if the socket is gone,
/// messages are lost. Never waits.
class service_manager {
 public:
  /// `address`: a path, or "@name" for an abstract socket; empty: no service manager. `watchdog`: time without a
  /// message after which the service counts as hung; none: no watchdog.
  service_manager(std::string_view address, std::optional<std::chrono::microseconds> watchdog);
  /// With the values of $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID.
  [[nodiscard]] static service_manager from_environment();
  ~service_manager();
  service_manager(service_manager&& other) noexcept;
  service_manager& operator=(service_manager&&) = delete;

  [[nodiscard]] bool is_there() const { return fd_ >= 0; }
  [[nodiscard]] std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }

  /// The server is ready for requests.
  void ready() { send("READY=1"); }
  /// Settings are being reloaded; ready() ends the reload.
  void reloading() const;
  /// One line of status text; sent only when it changes.
  void status(std::string_view line);
  /// Extends the timeout of the current start or stop, counted from now.
  void extend(std::chrono::microseconds time);
  /// Feeds the watchdog: there was progress, or there is nothing to do.
  void alive() { send("WATCHDOG=1"); }
  void stopping() { send("STOPPING=1"); }

 private:
  void send(std::string_view message) const;

  int fd_ = -1;
  std::string address_;  // the used bytes of a sockaddr_un
  std::optional<std::chrono::microseconds> watchdog_;
  std::string last_status_;
};

}  // namespace skein::supervisor
