#pragma once
#include <bit>
#include <cstdint>

#include "kernels/gpu/runtime/runtime.hpp"

/// What the lanes of a warp do together; all lanes must take part. `warp_width` differs between GPUs: it may size
/// arrays inside a kernel but never shape what the host sees of it, because on AMD the host's pass of the compiler
/// believes another width than the device's. Blocks are multiples of 64 threads, whole warps everywhere.
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
/// One bit per lane: whose predicate is true.
__device__ inline std::uint64_t ballot(bool predicate) { return __ballot_sync(0xffffffffu, predicate); }
#endif

/// Whether it is true for all lanes.
__device__ inline bool all_lanes(bool predicate) {
#if defined(__CUDA_ARCH__)
  return __all_sync(0xffffffffu, predicate) != 0;
#else
  return ballot(predicate) == ~std::uint64_t{0} >> (64 - warp_width);
#endif
}

/// What is the same in all lanes, so that the compiler knows it.
__device__ inline std::uint32_t same_in_all_lanes(std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  return __shfl_sync(0xffffffffu, value, 0);
#else
  return value;
#endif
}

/// How many bits are set.
__device__ inline unsigned count_bits(std::uint64_t bits) {
#if defined(SKEIN_GPU_EMULATOR)
  return static_cast<unsigned>(std::popcount(bits));
#else
  return static_cast<unsigned>(__popcll(bits));
#endif
}

/// The sum over the lanes: the same bits in each of them.
__device__ inline float warp_sum(float value) {
  for (unsigned mask = warp_width / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}

}  // namespace skein::kernels::gpu
