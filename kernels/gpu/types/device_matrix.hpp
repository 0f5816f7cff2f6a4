#pragma once
#include <cstdint>

#include "kernels/gpu/types/elements.hpp"
#include "kernels/weights/weight_format.hpp"

namespace skein::kernels::gpu {

/// Both dimensions of a matrix in memory are padded with zeros to multiples of this; so are the rows of its input.
inline constexpr std::uint32_t matrix_tile = 64;
[[nodiscard]] constexpr std::uint32_t padded(std::uint32_t size, std::uint32_t tile = matrix_tile) {
  return (size + tile - 1) / tile * tile;
}

/// A matrix on the device. Its format says how it is stored:
///   f32, f16, bf16   [padded(outputs), padded(inputs)] row-major; the element type of the launches that read it
///   int8, fp8, int4, nf4  codes with the scales of their groups, laid out as in types/coded_layout.hpp
///   fp8 with row_scales   [padded(outputs), depth() * 128] codes, row-major; its inputs are rounded to e4m3, too
/// Kernels are chosen by the format, the device and the number of rows.
struct device_matrix {
  const void* data = nullptr;
  std::uint32_t outputs = 0, inputs = 0;  ///< rows and columns, without padding
  weight_format format = {};
  /// Powers of two, [scaled_outputs(outputs)]; null in all layouts but that of fp8 rows.
  const float* row_scales = nullptr;

  [[nodiscard]] constexpr bool rounds_inputs() const { return row_scales != nullptr; }
  /// The inputs of a tile: 128 bytes of 16-bit elements or of e4m3 in rows, or one of codes in blocks.
  [[nodiscard]] constexpr std::uint32_t tile_inputs() const { return rounds_inputs() ? 2 * matrix_tile : matrix_tile; }
  /// In tiles.
  [[nodiscard]] constexpr std::uint32_t depth() const { return (inputs + tile_inputs() - 1) / tile_inputs(); }
};

/// The space for the row_scales of a matrix: those of whole tiles of 128 outputs.
[[nodiscard]] constexpr std::uint32_t scaled_outputs(std::uint32_t outputs) { return (outputs + 127) / 128 * 128; }

/// The format of a matrix that is not quantised.
[[nodiscard]] constexpr weight_format row_format(element type) {
  switch (type) {
    case element::f16: return {weight_element::f16};
    case element::bf16: return {weight_element::bf16};
    default: return {weight_element::f32};
  }
}

/// run.operator()<code>() with the kind of codes of a quantised format.
template <typename Run>
decltype(auto) with_code(weight_format format, Run run) {
  switch (format.element) {
    case weight_element::int8: return run.template operator()<weight_element::int8>();
    case weight_element::int4: return run.template operator()<weight_element::int4>();
    case weight_element::fp8: return run.template operator()<weight_element::fp8>();
    default: return run.template operator()<weight_element::nf4>();
  }
}

}  // namespace skein::kernels::gpu
