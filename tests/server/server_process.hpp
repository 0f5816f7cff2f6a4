#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace skein::test {

/// What /health counts.
struct server_counters {
  std::uint64_t slots_used = 0;
  std::uint64_t running = 0, waiting = 0, parked = 0, paused = 0;
  std::uint64_t finished = 0, rejected = 0, cancelled = 0, preempted = 0;
  std::uint64_t generated = 0;         ///< tokens
  std::uint64_t connections_open = 0;  ///< without the one that asked

  /// No request is served and no memory is held for one.
  [[nodiscard]] bool idle() const { return slots_used + running + waiting + parked + connections_open == 0; }
};

/// A running `skein serve` on a free port of this machine.
class server_process {
 public:
  /// Starts it and waits until it is ready. `arguments` come after `serve`; SKEIN_* variables are not passed on. Throws
  /// std::runtime_error with its log when it ends before.
  server_process(const std::string& program, const std::vector<std::string>& arguments);
  ~server_process();
  server_process(const server_process&) = delete;  // owns the process
  server_process& operator=(const server_process&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// All that it has logged.
  [[nodiscard]] std::string log() const;

  [[nodiscard]] server_counters counters() const;
  /// Asks for the counters until `good` says yes; throws after half a minute.
  server_counters wait_for(const std::function<bool(const server_counters&)>& good) const;

  [[nodiscard]] std::size_t resident_bytes() const;  ///< VmRSS
  [[nodiscard]] double processor_seconds() const;    ///< of all its threads
  [[nodiscard]] std::size_t descriptors() const;     ///< open ones
  /// Waits until that many are open, without a connection of its own; false after half a minute.
  [[nodiscard]] bool wait_for_descriptors(std::size_t count) const;

  void signal(int number) const;
  /// Waits for its end; the exit code, or -1 when a signal killed it. Throws after a minute.
  int wait_for_exit();

 private:
  [[nodiscard]] std::string status(std::string_view file) const;

  pid_t process_ = -1;
  int log_ = -1;  ///< its stderr
  std::uint16_t port_ = 0;
};

}  // namespace skein::test
