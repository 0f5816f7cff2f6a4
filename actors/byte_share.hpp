#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "actors/byte_budget.hpp"
#include "base/error.hpp"

namespace skein {

/// One holder's share of a byte_budget. Its bytes count in its own counter and in those of all groups that it belongs
/// to, each with a limit. Thread safe; copies refer to the same share. A default-constructed share counts nothing and
/// refuses nothing.
class byte_share {
 public:
  struct part {
    std::shared_ptr<byte_budget::counter> held;
    std::size_t most = 0;
  };
  /// `too_large`: more than an empty share can hold; `share_full`, `all_full`: no room at present.
  enum class outcome : std::uint8_t { taken, too_large, share_full, all_full };

  byte_share() = default;
  /// `own` and `group` may be empty.
  byte_share(part own, part group, part all) : parts_{std::move(own), std::move(group), std::move(all)} {}

  [[nodiscard]] outcome take(std::size_t bytes) const {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (add(parts_[i], bytes)) continue;
      for (std::size_t taken = 0; taken < i; ++taken) subtract(parts_[taken], bytes);
      if (bytes > most()) return outcome::too_large;
      return i + 1 < parts_.size() ? outcome::share_full : outcome::all_full;
    }
    return outcome::taken;
  }
  /// Takes bytes without a check of the limits, for memory that is already allocated.
  void take_anyway(std::size_t bytes) const {
    for (const part& p : parts_)
      if (p.held) p.held->fetch_add(bytes, std::memory_order_relaxed);
  }
  void give_back(std::size_t bytes) const {
    for (const part& p : parts_) subtract(p, bytes);
  }
  /// Takes bytes until the last copy of the lease is destroyed; null if take() refuses, with the reason in `why`.
  [[nodiscard]] byte_budget::lease lease(std::size_t bytes, outcome& why) const {
    why = take(bytes);
    if (why != outcome::taken) return nullptr;
    return {this, [share = *this, bytes](const void*) { share.give_back(bytes); }};
  }
  /// Takes bytes without a check of the limits until the last copy of the lease is destroyed.
  [[nodiscard]] byte_budget::lease lease_anyway(std::size_t bytes) const {
    take_anyway(bytes);
    return {this, [share = *this, bytes](const void*) { share.give_back(bytes); }};
  }

  /// Who holds it: the same for all shares of one holder; null without one.
  [[nodiscard]] std::shared_ptr<const void> holder() const { return parts_.front().held; }
  /// The most bytes that it can ever hold.
  [[nodiscard]] std::size_t most() const {
    std::size_t most = static_cast<std::size_t>(-1);
    for (const part& p : parts_)
      if (p.held) most = std::min(most, p.most);
    return most;
  }

 private:
  static bool add(const part& p, std::size_t bytes) {
    if (!p.held) return true;
    std::size_t held = p.held->load(std::memory_order_relaxed);
    do {
      if (bytes > p.most || held > p.most - bytes) return false;
    } while (!p.held->compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
    return true;
  }
  static void subtract(const part& p, std::size_t bytes) {
    if (p.held) p.held->fetch_sub(bytes, std::memory_order_relaxed);
  }

  std::array<part, 3> parts_;
};

/// The error for a client whose request does not get memory: too_large, overloaded or unavailable.
[[nodiscard]] inline error no_room(byte_share::outcome why, std::size_t bytes, std::size_t most) {
  using outcome = byte_share::outcome;
  if (why == outcome::too_large)
    return {error_kind::too_large,
            std::to_string(bytes) + " bytes of memory are needed; the limit of one client is " + std::to_string(most) +
                " bytes (queue.bytes_max, queue.key_bytes_max, queue.address_bytes_max)",
            ""};
  if (why == outcome::share_full)
    return {error_kind::overloaded,
            "requests and responses of this key or address have reached their memory limit (queue.key_bytes_max, "
            "queue.address_bytes_max); try again soon",
            ""};
  return {error_kind::unavailable, "requests and responses of all clients have reached queue.bytes_max; try again soon",
          ""};
}

}  // namespace skein
