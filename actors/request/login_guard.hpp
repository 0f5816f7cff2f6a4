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

namespace skein::request {

/// The part of an address that its owner cannot choose: of an IPv6 address the first 64 bits.
[[nodiscard]] std::string network_of(std::string_view address);

struct login_limits {
  std::uint32_t failures_max = 20;           ///< of one address within `window`; more are refused unseen. 0: no limit
  std::chrono::milliseconds window{60'000};  ///< from an address's first failure
  std::uint32_t addresses_max = 4096;        ///< remembered at once; the oldest makes room
};

/// Counts wrong passwords by address. After too many, further wrong ones get 429 until the window that began with the
/// first is over, loopback included. A right one always counts: clients behind one address cannot lock each other out.
/// An IPv6 client owns its last 64 bits, so that addresses that differ there only count as one.
///
/// Shared by all io threads, as a guesser's connections are: every function is thread safe, and quick.
class login_guard {
 public:
  explicit login_guard(const login_limits& limits) : limits_(limits) {}

  /// How long wrong passwords of that address get 429; nothing: the next one gets 401.
  /// Says nothing about a right one.
  [[nodiscard]] std::optional<duration> must_wait(std::string_view address, steady_time now);
  /// That address sent a password, which is the right one or not: how long it has to wait after a wrong one too many;
  /// nothing: it is right, or one of the failures_max. Asks and counts in one step, so that of wrong passwords which
  /// come together no more than failures_max get 401.
  [[nodiscard]] std::optional<duration> judge(std::string_view address, bool right, steady_time now);

  /// A request of that address brought no password: as judge() with one that is wrong, but counted apart from those,
  /// and up to visits_a_failure times as many. Who opens a page has none yet, and comes back.
  [[nodiscard]] std::optional<duration> judge_visit(std::string_view address, steady_time now);
  static constexpr std::uint32_t visits_a_failure = 5;

  /// From now on these limits count; a window that has begun keeps its length.
  void change(const login_limits& limits);

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

  login_limits limits_;
  mutable std::mutex mutex_;
  std::list<record> records_;                                                     ///< oldest window first
  std::unordered_map<std::string_view, std::list<record>::iterator> by_network_;  ///< keys live in the records
};

}  // namespace skein::request
