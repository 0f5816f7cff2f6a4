#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

/// 8-bit floats of the type e4m3fn (arXiv 2209.05433, table 1): a sign, four bits of exponent with bias 7, three of
/// mantissa. No infinity; 0x7f and 0xff are NaN; the largest number is 448, the smallest normal one 2^-6.
namespace skein::kernels {

inline constexpr float e4m3_max = 448;

[[nodiscard]] constexpr bool is_nan_of_e4m3(std::uint8_t code) { return (code & 0x7f) == 0x7f; }

/// The value of a code. The codes of finite numbers are the upper bits of an fp16 number 2^-8 times as large, with a
/// bit of exponent left out: kernels decode them by shifts.
[[nodiscard]] constexpr float e4m3_to_f32(std::uint8_t code) {
  const auto magnitude = static_cast<std::uint32_t>(code & 0x7f), sign = static_cast<std::uint32_t>(code & 0x80);
  if (is_nan_of_e4m3(code)) return std::numeric_limits<float>::quiet_NaN();
  const float value =
      magnitude < 8 ? static_cast<float>(magnitude) * 0x1p-9f : std::bit_cast<float>((magnitude << 20) + (120u << 23));
  return sign != 0 ? -value : value;
}

/// The code of the nearest number, of two equally near ones that with an even mantissa. Larger numbers become the
/// largest one; NaN stays NaN. Without branches, so that loops of it vectorise.
[[nodiscard]] constexpr std::uint8_t f32_to_e4m3(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  // Adding 2^14 leaves no bits for fractions of 2^-9, the step of numbers below 2^-6.
  const float small = std::bit_cast<float>(std::min(magnitude, 0x3c800000u)) + 0x1p14f;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(small) - std::bit_cast<std::uint32_t>(0x1p14f);
  const std::uint32_t rounded = ((magnitude + 0x7ffff + (magnitude >> 20 & 1)) >> 20) - (120u << 3);
  const std::uint32_t normal = magnitude > 0x43e00000u ? 0x7e : rounded;  // 448
  const std::uint32_t finite = magnitude < 0x3c800000u ? subnormal : normal;
  return static_cast<std::uint8_t>((magnitude > 0x7f800000u ? 0x7f : finite) | (bits >> 24 & 0x80));
}

}  // namespace skein::kernels
