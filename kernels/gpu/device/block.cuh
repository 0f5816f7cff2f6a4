#pragma once
#include "kernels/gpu/device/warp.cuh"

/// What the threads of a block do together; all threads must take part.
namespace skein::kernels::gpu {

/// The sum over the threads: the same bits in each of them, and the same for every block of that many threads.
__device__ inline float block_sum(float value) {
  __shared__ float of_warp[1024 / 32];
  value = warp_sum(value);
  __syncthreads();  // nobody still reads the sums of the call before
  if (threadIdx.x % warp_width == 0) of_warp[threadIdx.x / warp_width] = value;
  __syncthreads();
  float sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / warp_width; ++warp) sum += of_warp[warp];
  return sum;
}

/// The shared memory that the launch asked for (launch_shape::shared_bytes), aligned for 16-byte accesses.
template <typename T>
__device__ T* dynamic_shared() {
#if defined(SKEIN_GPU_EMULATOR)
  return reinterpret_cast<T*>(emulator::now.dynamic_shared);
#else
  extern __shared__ uint4 memory_of_launch[];
  return reinterpret_cast<T*>(memory_of_launch);
#endif
}

}  // namespace skein::kernels::gpu
