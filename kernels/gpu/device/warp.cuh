#pragma once
#include <bit>
#include <cstdint>

#include "kernels/gpu/runtime/runtime.hpp"

/// Operations of a warp; all its lanes must take part. `warp_width` differs between GPUs. It may size arrays inside a
/// kernel but must not affect anything that the host sees, because on AMD the compiler's host pass assumes another
/// width than the device. Blocks are multiples of 64 threads, so they are whole warps on every GPU.
namespace skein::kernels::gpu {

#if defined(SKEIN_GPU_EMULATOR)
using emulator::ballot;
using emulator::shuffle_xor;
using emulator::warp_width;
#elif defined(__HIPCC__)
inline constexpr unsigned warp_width = __AMDGCN_WAVEFRONT_SIZE;
__device__ inline float shuffle_xor(float value, unsigned mask) { return __shfl_xor(value, static_cast<int>(mask)); }
__device__ inline std::uint64_t ballot(bool predicate) { return __ballot(predicate); }
#else
inline constexpr unsigned warp_width = 32;
/// The value of the lane whose number differs in the bits of `mask`.
__device__ inline float shuffle_xor(float value, unsigned mask) {
  return __shfl_xor_sync(0xffffffffu, value, static_cast<int>(mask));
}
/// One bit per lane: the value of its predicate.
__device__ inline std::uint64_t ballot(bool predicate) { return __ballot_sync(0xffffffffu, predicate); }
#endif

/// Whether the predicate is true in all lanes.
__device__ inline bool all_lanes(bool predicate) {
#if defined(__CUDA_ARCH__)
  return __all_sync(0xffffffffu, predicate) != 0;
#else
  return ballot(predicate) == ~std::uint64_t{0} >> (64 - warp_width);
#endif
}

/// Tells the compiler that a value is the same in all lanes.
__device__ inline std::uint32_t same_in_all_lanes(std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  return __shfl_sync(0xffffffffu, value, 0);
#else
  return value;
#endif
}

/// The number of bits that are set.
__device__ inline unsigned count_bits(std::uint64_t bits) {
#if defined(SKEIN_GPU_EMULATOR)
  return static_cast<unsigned>(std::popcount(bits));
#else
  return static_cast<unsigned>(__popcll(bits));
#endif
}

/// The sum over the lanes, with the same bits in each of them.
__device__ inline float warp_sum(float value) {
  for (unsigned mask = warp_width / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}

/// Makes a lane's preceding writes to shared memory visible to the other lanes of the warp.
__device__ inline void warp_barrier() {
#if defined(__CUDA_ARCH__)
  __syncwarp();
#elif defined(__HIP_DEVICE_COMPILE__)
  // The barrier alone is one for the compiler: without fences, accesses to shared memory may move across it.
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
#else
  static_cast<void>(ballot(true));
#endif
}

}  // namespace skein::kernels::gpu
