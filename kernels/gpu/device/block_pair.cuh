#pragma once
#include <cstdint>

#include "kernels/gpu/device/tile_copy.cuh"

/// Two neighbouring blocks that run at the same time and write to each other's dynamic shared memory: a cluster of two,
/// launched with launch_shape::cluster = 2 (sm_90; PTX ISA, "mapa" and "barrier.cluster"). A pair fits
/// wherever two blocks do, because SMs come in twos. CUDA; the emulator has the same.
namespace skein::kernels::gpu {

__device__ inline unsigned rank_in_pair() { return blockIdx.x % 2; }

/// Waits for all threads of both blocks that have not ended; then their writes to each other's memory are visible.
__device__ inline void wait_for_pair() {
#if defined(SKEIN_GPU_EMULATOR)
  emulator::block_runner::of_this_thread().cluster_barrier(std::source_location::current());
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
#endif
}

/// Writes to the address in the other block's shared memory that corresponds to `own`.
__device__ inline void put_beside([[maybe_unused]] float4* own, [[maybe_unused]] const float4& four) {
#if defined(SKEIN_GPU_EMULATOR)
  *reinterpret_cast<float4*>(emulator::block_runner::of_this_thread().of_other_block(own, 1 - rank_in_pair())) = four;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  std::uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"(shared_address(own)), "r"(1 - rank_in_pair()));
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(there), "f"(four.x), "f"(four.y), "f"(four.z),
               "f"(four.w)
               : "memory");
#endif
}

}  // namespace skein::kernels::gpu
