#pragma once
#include "kernels/gpu/device/warp.cuh"

/// Shared memory and barriers of a block.
namespace skein::kernels::gpu {

/// The dynamic shared memory of the launch (launch_shape::shared_bytes), aligned for 16-byte accesses.
template <typename T>
__device__ T* dynamic_shared() {
#if defined(SKEIN_GPU_EMULATOR)
  return reinterpret_cast<T*>(emulator::now.dynamic_shared);
#else
  extern __shared__ uint4 memory_of_launch[];
  return reinterpret_cast<T*>(memory_of_launch);
#endif
}

/// Named barrier `number` (1 .. 15) for `count` threads of a block, whole warps. CUDA and the emulator.
template <unsigned count>
__device__ void barrier_of([[maybe_unused]] unsigned number) {
#if defined(SKEIN_GPU_EMULATOR)
  emulator::block_runner::of_this_thread().named_barrier(number, count, std::source_location::current());
#elif defined(__CUDA_ARCH__)
  asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(count) : "memory");
#endif
}

}  // namespace skein::kernels::gpu
