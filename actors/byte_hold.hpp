#pragma once
#include <cstddef>
#include <utility>

#include "actors/byte_share.hpp"

namespace skein {

/// What one connection holds of a share at present; it grows and shrinks with its buffers. Taken in steps, so that most
/// changes touch no counter; the first few kilobytes are free, since a connection takes as much by itself.
class byte_hold {
 public:
  byte_hold() = default;
  ~byte_hold() { clear(); }
  byte_hold(const byte_hold&) = delete;  // one owner of what it took
  byte_hold& operator=(const byte_hold&) = delete;

  /// Counts there from now on, also what is held already.
  void move_to(byte_share share) {
    share_.give_back(taken_);
    share_ = std::move(share);
    share_.take_anyway(taken_);
  }
  /// The buffers hold `bytes`, or are about to.
  [[nodiscard]] byte_share::outcome set(std::size_t bytes) {
    const std::size_t wanted = in_steps(bytes);
    if (wanted > taken_)
      if (const auto no = share_.take(wanted - taken_); no != byte_share::outcome::taken) return no;
    settle(wanted);
    return byte_share::outcome::taken;
  }
  /// For bytes that are there already. False: the share is overdrawn.
  [[nodiscard]] bool set_anyway(std::size_t bytes) {
    if (set(bytes) == byte_share::outcome::taken) return true;
    const std::size_t wanted = in_steps(bytes);
    share_.take_anyway(wanted - taken_);
    taken_ = wanted;
    overdrawn_ = true;
    return false;
  }
  void clear() { settle(0); }

  [[nodiscard]] error why_not(byte_share::outcome no, std::size_t bytes) const {
    return no_room(no, bytes, share_.most());
  }

 private:
  static constexpr std::size_t step = 4096, free = 4096, slack = 65536;

  static std::size_t in_steps(std::size_t bytes) { return bytes <= free ? 0 : (bytes + step - 1) / step * step; }
  /// More than `taken_` has been taken already; less is given back when it is worth it, or should never have been
  /// taken.
  void settle(std::size_t wanted) {
    if (wanted < taken_ && wanted != 0 && taken_ - wanted < slack && !overdrawn_) return;
    if (wanted < taken_) {
      share_.give_back(taken_ - wanted);
      overdrawn_ = false;
    }
    taken_ = wanted;
  }

  byte_share share_;
  std::size_t taken_ = 0;
  bool overdrawn_ = false;
};

}  // namespace skein
