#pragma once
#include "kernels/gpu/runtime/runtime.hpp"

/// Memory whose contents nobody needs any more. The L2 cache of an H200 holds some 30 MB that differ from the device's
/// memory and writes back what is more, read for the last time or not.
namespace skein::kernels::gpu {

inline constexpr std::uint32_t line_bytes = 128;

/// The line at `at`, a multiple of its size, is not read before it is written again: it need not be written back (PTX
/// ISA, "discard"). Not before a barrier has told that all threads have what they read of it. Elsewhere this does
/// nothing; the emulator leaves no numbers there.
__device__ inline void forget_line([[maybe_unused]] const void* at) {
#if defined(SKEIN_GPU_EMULATOR)
  std::memset(const_cast<void*>(at), 0xff, line_bytes);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("discard.global.L2 [%0], 128;" ::"l"(at) : "memory");
#endif
}

}  // namespace skein::kernels::gpu
