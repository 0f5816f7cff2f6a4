#pragma once
#include "kernels/gpu/device/warp.cuh"

/// What the threads of a block share.
namespace skein::kernels::gpu {

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
