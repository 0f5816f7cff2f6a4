#pragma once
#include <cstdint>

#include "kernels/gpu/types/elements.hpp"
#include "kernels/weights/weight_format.hpp"

namespace skein::kernels::gpu {

/// Both dimensions of a matrix in memory are padded with zeros to multiples of this; so are the rows of its input.
inline constexpr std::uint32_t matrix_tile = 64;
[[nodiscard]] constexpr std::uint32_t padded(std::uint32_t size) {
  return (size + matrix_tile - 1) / matrix_tile * matrix_tile;
}

/// A matrix on the device. Its format says how it is stored:
///   f32, f16, bf16   [padded(outputs), padded(inputs)] row-major; the element type of the launches that read it
///   int8, fp8, int4, nf4  codes with the scales of their groups, laid out as in types/coded_layout.hpp
/// Kernels are chosen by the format, the device and the number of rows.
struct device_matrix {
  const void* data = nullptr;
  std::uint32_t outputs = 0, inputs = 0;  ///< rows and columns, without padding
  weight_format format = {};
};

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
