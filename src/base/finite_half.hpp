#pragma once
#include "base/tensor.hpp"

namespace skein {

/// As f32_to_f16, but what rounds to an infinity becomes the largest number: an infinity would poison all that follows.
[[nodiscard]] inline std::uint16_t f32_to_finite_f16(float value) {
  const std::uint16_t bits = f32_to_f16(value);
  return (bits & 0x7fffu) == 0x7c00u ? static_cast<std::uint16_t>(bits - 1) : bits;
}

}  // namespace skein
