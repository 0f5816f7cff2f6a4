#pragma once
#include "kernels/gpu/device/gemm_rows.cuh"
#include "kernels/gpu/device/warp.cuh"
#include "kernels/gpu/time_mix/time_mix.hpp"

/// A block that processes a head of any size, with a thread for each channel.
namespace skein::kernels::gpu {

/// The sum over the block's threads, the same bits in each.
__device__ inline float sum_of_block(float value) {
  __shared__ float of_warp[head_size_max / warp_width];
  value = warp_sum(value);
  __syncthreads();  // those of the previous call have been read
  if (threadIdx.x % warp_width == 0) of_warp[threadIdx.x / warp_width] = value;
  __syncthreads();
  float sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / warp_width; ++warp) sum += of_warp[warp];
  return sum;
}

/// The output of a GEMM for one channel; adds up partial sums.
template <typename Element>
__device__ float load_channel(const gemm_rows& from, std::uint32_t row, std::uint32_t channel) {
  float value[1];
  load_gemms<Element>(from, row, channel, value);
  return value[0];
}

}  // namespace skein::kernels::gpu
