#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace skein::supervisor {

/// Tells whoever started the process (systemd) how it is, by the protocol of sd_notify(3): one datagram a message to
/// the socket that $NOTIFY_SOCKET names. Where nobody asked to be told, all of this does nothing; where nobody listens
/// any more, a message is lost. Never waits.
class service_manager {
 public:
  /// `address`: a path, or "@name" for an abstract one; empty: nobody asked. `watchdog`: the silence after which the
  /// service counts as hung; none: nobody watches.
  service_manager(std::string_view address, std::optional<std::chrono::microseconds> watchdog);
  /// As $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID say.
  [[nodiscard]] static service_manager from_environment();
  ~service_manager();
  service_manager(service_manager&& other) noexcept;
  service_manager& operator=(service_manager&&) = delete;

  [[nodiscard]] bool is_there() const { return fd_ >= 0; }
  [[nodiscard]] std::optional<std::chrono::microseconds> watchdog() const { return watchdog_; }

  /// Requests are served from now on.
  void ready() { send("READY=1"); }
  /// Settings are read anew; ready() ends that.
  void reloading() const;
  /// One line for people; repeated only when it changes.
  void status(std::string_view line);
  /// What goes on may take this much longer, counted from now.
  void extend(std::chrono::microseconds time);
  /// There was progress, or there is nothing to do.
  void alive() { send("WATCHDOG=1"); }
  void stopping() { send("STOPPING=1"); }

 private:
  void send(std::string_view message) const;

  int fd_ = -1;
  std::string address_;  // sockaddr_un, of the length that counts
  std::optional<std::chrono::microseconds> watchdog_;
  std::string last_status_;
};

}  // namespace skein::supervisor
