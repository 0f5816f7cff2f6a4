#pragma once
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/product_rows.hpp"

namespace skein::kernels::gpu {

/// Outputs `channel` .. `channel` + count of a product's row; `Element` is the type that its rows have or its sums are
/// rounded to. `channel`, `stride` and `part_stride` are multiples of `count`.
template <typename Element, unsigned count>
__device__ void load_products(const product_rows& of, std::uint32_t row, std::uint32_t channel,
                              float (&values)[count]) {
  const std::size_t at = static_cast<std::size_t>(row) * of.stride + channel;
  if (of.parts == 0) {
    load_floats(static_cast<const Element*>(of.data) + at, values);
    return;
  }
  float addends[product_parts_max][count];  // all on their way before the first is added
#pragma unroll
  for (std::uint32_t p = 0; p < product_parts_max; ++p)
    if (p < of.parts) load_floats(static_cast<const float*>(of.data) + p * of.part_stride + at, addends[p]);
  for (unsigned i = 0; i < count; ++i) values[i] = addends[0][i];
#pragma unroll
  for (std::uint32_t p = 1; p < product_parts_max; ++p)
    if (p < of.parts)
      for (unsigned i = 0; i < count; ++i) values[i] += addends[p][i];
  for (unsigned i = 0; i < count; ++i) values[i] = to_float(from_float<Element>(values[i]));
}

template <typename Element>
__device__ float load_product(const product_rows& of, std::uint32_t row, std::uint32_t channel) {
  float value[1];
  load_products<Element>(of, row, channel, value);
  return value[0];
}

}  // namespace skein::kernels::gpu
