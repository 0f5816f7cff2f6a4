#pragma once
#include <array>
#include <cstdint>

namespace skein::grammar {

/// A set of bytes.
class byte_set {
 public:
  void add(unsigned char byte) { words_[byte / 64] |= std::uint64_t{1} << (byte % 64); }
  void add(unsigned char first, unsigned char last) {
    for (unsigned byte = first; byte <= last; ++byte) add(static_cast<unsigned char>(byte));
  }
  [[nodiscard]] bool has(unsigned char byte) const { return (words_[byte / 64] >> (byte % 64) & 1) != 0; }

 private:
  std::array<std::uint64_t, 4> words_{};
};

}  // namespace skein::grammar
