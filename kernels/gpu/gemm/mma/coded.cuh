#pragma once
#include "kernels/gpu/gemm/mma/kernel.cuh"
#include "kernels/gpu/gemm/mma/shapes.cuh"

/// The kernels for one kind of code; each has a file of its own, because they take long to compile.
namespace skein::kernels::gpu::mma {

template <weight_element code>
result<void> launch_coded(mma_shape shape, const tile_launch& what) {
  const auto start = [&]<typename t>() {
    return launch_tiles<t>(what, matmul_coded_kernel<half, t, code>, matmul_coded_kernel<bf16, t, code>);
  };
  check(what.work != takes::sum_of_all || shape != mma_shape::wide);
  if (shape == mma_shape::wide)
    return what.work == takes::one ? start.template operator()<wide_tiles<takes::one>>()
                                   : start.template operator()<wide_tiles<takes::adds_each>>();
  return start_tiles(shape, what.work, start);
}

}  // namespace skein::kernels::gpu::mma
