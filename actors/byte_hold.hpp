#pragma once
#include <cstddef>
#include <utility>

#include "actors/byte_share.hpp"

namespace skein {

/// The bytes that one connection currently holds of a share; they grow and shrink with its buffers. Taken in steps, so
/// that most changes do not update a counter. The first few kilobytes are free, since every connection needs as much
/// anyway.
class byte_hold {
 public:
  byte_hold() = default;
  ~byte_hold() { clear(); }
  byte_hold(const byte_hold&) = delete;  // one owner of the bytes
  byte_hold& operator=(const byte_hold&) = delete;

  /// Charges `share` from now on, including the bytes already held.
  void move_to(byte_share share) {
    share_.give_back(taken_);
    share_ = std::move(share);
    share_.take_anyway(taken_);
  }
  /// Sets the held bytes to `bytes`, the current or planned size of the buffers.
  [[nodiscard]] byte_share::outcome set(std::size_t bytes) {
    const std::size_t wanted = in_steps(bytes);
    if (wanted > taken_)
      if (const auto no = share_.take(wanted - taken_); no != byte_share::outcome::taken) return no;
    settle(wanted);
    return byte_share::outcome::taken;
  }
  /// The same for bytes that are already allocated. False: the share is exceeded.
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
  /// An increase has already been taken from the share. A decrease is returned if it is large or the share was
  /// exceeded.
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
