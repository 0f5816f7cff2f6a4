#pragma once
#include "kernels/gpu/device/block.cuh"

namespace skein::kernels::gpu {

/// Threads of a block that normalises rows of that width: by the width alone, because the order of the sums hangs on
/// it.
[[nodiscard]] inline unsigned layer_norm_threads(std::uint32_t width) {
  const std::uint32_t wanted = width / 8 / 64 * 64;  // eight channels a thread
  return wanted < 64 ? 64 : wanted > 512 ? 512 : wanted;
}

/// row = (row - mean) / sqrt(variance + eps) * weight + bias, in shared memory. A thread touches the channels
/// threadIdx.x, threadIdx.x + blockDim.x, ... only: what a caller does with the same ones needs no barrier.
__device__ inline void layer_norm(float* row, std::uint32_t width, const float* weight, const float* bias, float eps) {
  float sum = 0;
  for (std::uint32_t c = threadIdx.x; c < width; c += blockDim.x) sum += row[c];
  const float mean = block_sum(sum) / static_cast<float>(width);
  float squares = 0;
  for (std::uint32_t c = threadIdx.x; c < width; c += blockDim.x) squares += (row[c] - mean) * (row[c] - mean);
  const float scale = 1 / sqrtf(block_sum(squares) / static_cast<float>(width) + eps);
  for (std::uint32_t c = threadIdx.x; c < width; c += blockDim.x)
    row[c] = (row[c] - mean) * scale * weight[c] + bias[c];
}

}  // namespace skein::kernels::gpu
