#pragma once
#include "kernels/gpu/runtime/runtime.hpp"

/// Memory whose contents are no longer needed. The L2 cache of an H200 holds some 30 MB of dirty lines and writes back
/// further ones, even if they are never read again.
namespace skein::kernels::gpu {

inline constexpr std::uint32_t line_bytes = 128;

/// Marks the line at `at`, aligned to its size, as not needed until it is written again, so that it need not be written
/// back (PTX ISA, "discard"). Call it only after a barrier behind the last read by any thread. Does nothing on other
/// targets; the emulator fills the line with NaNs.
__device__ inline void discard_line([[maybe_unused]] const void* at) {
#if defined(SKEIN_GPU_EMULATOR)
  std::memset(const_cast<void*>(at), 0xff, line_bytes);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("discard.global.L2 [%0], 128;" ::"l"(at) : "memory");
#endif
}

}  // namespace skein::kernels::gpu
