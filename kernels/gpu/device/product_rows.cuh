#pragma once
#include "kernels/gpu/device/convert.cuh"
#include "kernels/gpu/product_rows.hpp"

namespace skein::kernels::gpu {

/// One output of a product; `Element` is the type that its rows have or its sums are rounded to.
template <typename Element>
__device__ float load_product(const product_rows& of, std::uint32_t row, std::uint32_t channel) {
  const std::size_t at = static_cast<std::size_t>(row) * of.stride + channel;
  if (of.parts == 0) return to_float(static_cast<const Element*>(of.data)[at]);
  const float* part = static_cast<const float*>(of.data) + at;
  float sum = *part;
  for (std::uint32_t p = 1; p < of.parts; ++p) {
    part += of.part_stride;
    sum += *part;
  }
  return to_float(from_float<Element>(sum));
}

}  // namespace skein::kernels::gpu
