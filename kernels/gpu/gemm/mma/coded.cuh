#pragma once
#include "kernels/gpu/gemm/mma/kernel.cuh"
#include "kernels/gpu/gemm/mma/shapes.cuh"

/// The kernels for one kind of code; each has a file of its own, because they take long to compile.
namespace skein::kernels::gpu::mma {

template <weight_element code>
result<void> launch_coded(mma_shape shape, takes work, const tile_launch& what) {
  const auto start = [&]<typename t>() {
    return launch_tiles<t>(what, matmul_coded_kernel<half, t, code>, matmul_coded_kernel<bf16, t, code>);
  };
  const auto start_many = [&]<takes how>() {
    if constexpr (how != takes::sum_of_all)
      if (shape == mma_shape::wide) return start.template operator()<wide_tiles<how>>();
    if (shape == mma_shape::square) return start.template operator()<square_tiles<how>>();
    if (shape == mma_shape::flat) return start.template operator()<flat_tiles<how>>();
    return start.template operator()<small_tiles<how>>();
  };
  switch (work) {
    case takes::sum_of_all: return start_many.template operator()<takes::sum_of_all>();
    case takes::adds_each: return start_many.template operator()<takes::adds_each>();
    case takes::one: break;
  }
  if (shape == mma_shape::rows_8) return start.template operator()<rows_8_tiles>();
  if (shape == mma_shape::rows_16) return start.template operator()<rows_16_tiles>();
  if (shape == mma_shape::rows_32) return start.template operator()<rows_32_tiles>();
  return start_many.template operator()<takes::one>();
}

}  // namespace skein::kernels::gpu::mma
