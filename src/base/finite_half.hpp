#pragma once
#include "base/tensor.hpp"

namespace skein {

/// As f32_to_f16, but saturates to the largest finite value: an infinity would turn all later results into NaN or
/// infinity.
[[nodiscard]] inline std::uint16_t f32_to_finite_f16(float value) {
  const std::uint16_t bits = f32_to_f16(value);
  return (bits & 0x7fffu) == 0x7c00u ? static_cast<std::uint16_t>(bits - 1) : bits;
}

}  // namespace skein
