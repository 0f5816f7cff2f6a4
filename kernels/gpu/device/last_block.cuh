#pragma once
#include <cstdint>

#include "kernels/gpu/runtime/runtime.hpp"

namespace skein::kernels::gpu {

/// True in all threads of the last of `blocks` thread blocks that call this; that block sees the writes of the others.
[[nodiscard]] __device__ inline bool ends_last(std::uint32_t* finished, std::uint32_t blocks) {
  __shared__ std::uint32_t before;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    before = atomicAdd(finished, 1u);
    __threadfence();
  }
  __syncthreads();
  if (before + 1 != blocks) return false;
  if (threadIdx.x == 0) *finished = 0;  // for the next launch
  return true;
}

}  // namespace skein::kernels::gpu
