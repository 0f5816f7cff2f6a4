#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.hpp"
#include "config/config.hpp"

namespace skein::request {

/// The part of an address that its owner cannot choose: of an IPv6 address the first 64 bits.
[[nodiscard]] std::string network_of(std::string_view address);

/// Counts wrong passwords by address, loopback included. After too many, further wrong ones get 429 until the window
/// that began with the first is over. A right password is always accepted: clients behind one address cannot lock each
/// other out. An IPv6 client owns its last 64 bits, so addresses that differ only there count as one.
///
/// Shared by all io threads, since an attacker's connections spread over them. Every function is thread safe and fast.
class login_guard {
 public:
  explicit login_guard(const config::limit_settings& limits) : limits_(limits) {}

  /// How long wrong passwords from that address get 429. Nothing: the next one gets 401.
  /// Right passwords are accepted all the same.
  [[nodiscard]] std::optional<duration> must_wait(std::string_view address, steady_time now);
  /// Records a password from that address. Returns how long the address has to wait after too many wrong ones. Nothing:
  /// the password is right, or among the first login_failures_max wrong ones. Checks and counts in one step, so that at
  /// most login_failures_max of concurrent wrong passwords get 401.
  [[nodiscard]] std::optional<duration> judge(std::string_view address, bool right, steady_time now);

  /// Records a request without a password: like judge() with a wrong one, but counted separately and with a limit
  /// visits_a_failure times as high, since a browser opens pages before it has a password.
  [[nodiscard]] std::optional<duration> judge_visit(std::string_view address, steady_time now);
  static constexpr std::uint32_t visits_a_failure = 5;

  /// Replaces the limits. A window that has begun keeps its length.
  void change(const config::limit_settings& limits);

  [[nodiscard]] std::size_t addresses() const;

 private:
  struct record {
    std::string network;
    steady_time until;
    std::uint32_t failures;
  };
  [[nodiscard]] std::optional<duration> count(std::string network, std::uint32_t allowance, steady_time now);
  [[nodiscard]] std::optional<duration> wait_of(const std::string& network, std::uint32_t allowance,
                                                steady_time now) const;
  void count_failure(std::string network, steady_time now);
  void forget_until(steady_time now);
  void forget_oldest();

  config::limit_settings limits_;
  mutable std::mutex mutex_;
  std::list<record> records_;                                                     ///< oldest window first
  std::unordered_map<std::string_view, std::list<record>::iterator> by_network_;  ///< keys live in the records
};

}  // namespace skein::request
