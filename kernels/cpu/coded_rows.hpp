#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/packed_matrix.hpp"

/// Activations as 16-bit integers, for GEMMs with quantised weights other than fp8. A group of inputs, the same as that
/// of the weights, shares one scale, so an activation is off by at most 2^-16 of the largest of its group (2^-14 for
/// nf4).
namespace skein::kernels::cpu {

/// Whether GEMMs with these weights take integers; with the others they take fp32.
[[nodiscard]] constexpr bool takes_integers(weight_element element) {
  return element >= weight_element::int8 && element != weight_element::fp8;
}

/// Follows the integers of a row, once for each group.
struct coded_group {
  float scale;          ///< activation times weight = scale * integer * integer of the weight * scale of the weight
  std::int32_t offset;  ///< where 32-bit sums start, because the integers of int8 and int4 weights are not signed
};

/// How many inputs may be added up in 32 bits: 128 x 255 x 32767 and 64 x 4075 x 8191 are below 2^31.
[[nodiscard]] constexpr std::size_t coded_run(weight_element element) {
  return element == weight_element::nf4 ? 64 : 128;
}
[[nodiscard]] constexpr std::int32_t coded_max(weight_element element) {
  return element == weight_element::nf4 ? 8191 : 32767;
}
/// The integer of a weight of 0.
[[nodiscard]] constexpr std::int32_t coded_zero(weight_element element) {
  return element == weight_element::int8 ? 128 : element == weight_element::int4 ? 8 : 0;
}

/// The numbers of nf4 as integers, by bytes. 4075 gives the smallest error of those below 4096: 8e-5.
inline constexpr float nf4_unit = 4075;
struct nf4_bytes {
  std::array<std::uint8_t, 16> low{}, high{};
};
inline constexpr nf4_bytes nf4_words = [] {
  nf4_bytes bytes;
  for (std::size_t i = 0; i < nf4_values.size(); ++i) {
    const float value = nf4_values[i] * nf4_unit;
    const auto word = static_cast<std::uint16_t>(static_cast<std::int32_t>(value + (value < 0 ? -0.5f : 0.5f)));
    bytes.low[i] = static_cast<std::uint8_t>(word);
    bytes.high[i] = static_cast<std::uint8_t>(word >> 8);
  }
  return bytes;
}();

/// Where the parts of a row are, in bytes. The stride is an odd number of cache lines, as in row_buffer.
struct coded_layout {
  explicit constexpr coded_layout(std::size_t inputs, std::size_t group)
      : groups((2 * inputs + 63) / 64 * 64),
        stride((groups + (inputs + group - 1) / group * sizeof(coded_group) + 63) / 64 * 64) {
    if (stride % 128 == 0) stride += 64;
  }
  std::size_t groups, stride;
};

/// Writes one row for a matrix of this format. NaN and infinity make the scale of their group NaN.
void code_row(const float* in, std::size_t inputs, weight_format format, std::byte* out);

}  // namespace skein::kernels::cpu
