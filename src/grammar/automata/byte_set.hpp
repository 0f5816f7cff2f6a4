#pragma once
#include <array>
#include <bit>
#include <cstdint>

namespace skein::grammar {

/// A set of bytes.
class byte_set {
 public:
  void add(unsigned char byte) { words_[byte / 64] |= std::uint64_t{1} << (byte % 64); }
  void add(unsigned char first, unsigned char last) {
    for (unsigned i = first / 64u; i <= last / 64u; ++i) {
      const unsigned low = i == first / 64u ? first % 64u : 0, high = i == last / 64u ? last % 64u : 63;
      words_[i] |= (~std::uint64_t{0} << low) & (~std::uint64_t{0} >> (63 - high));
    }
  }
  [[nodiscard]] bool has(unsigned char byte) const { return (words_[byte / 64] >> (byte % 64) & 1) != 0; }
  [[nodiscard]] int count() const {
    int bytes = 0;
    for (const auto word : words_) bytes += std::popcount(word);
    return bytes;
  }
  /// Calls visit(byte) for each byte of the set, in order.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (unsigned i = 0; i < words_.size(); ++i)
      for (auto word = words_[i]; word != 0; word &= word - 1)
        visit(static_cast<unsigned char>(64 * i + static_cast<unsigned>(std::countr_zero(word))));
  }

 private:
  std::array<std::uint64_t, 4> words_{};
};

}  // namespace skein::grammar
