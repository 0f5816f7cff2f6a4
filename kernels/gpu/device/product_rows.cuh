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
  const float* part = static_cast<const float*>(of.data) + at;
  load_floats(part, values);
  for (std::uint32_t p = 1; p < of.parts; ++p) {
    float addends[count];
    load_floats(part += of.part_stride, addends);
    for (unsigned i = 0; i < count; ++i) values[i] += addends[i];
  }
  for (unsigned i = 0; i < count; ++i) values[i] = to_float(from_float<Element>(values[i]));
}

template <typename Element>
__device__ float load_product(const product_rows& of, std::uint32_t row, std::uint32_t channel) {
  float value[1];
  load_products<Element>(of, row, channel, value);
  return value[0];
}

}  // namespace skein::kernels::gpu
