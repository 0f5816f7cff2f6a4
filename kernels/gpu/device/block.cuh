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

/// A barrier of `count` threads of a block, whole warps; barriers of other numbers (1 .. 15) are others. CUDA and the
/// emulator.
template <unsigned count>
__device__ void barrier_of([[maybe_unused]] unsigned number) {
#if defined(SKEIN_GPU_EMULATOR)
  emulator::block_runner::of_this_thread().named_barrier(number, count, std::source_location::current());
#elif defined(__CUDA_ARCH__)
  asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(count) : "memory");
#endif
}

}  // namespace skein::kernels::gpu
