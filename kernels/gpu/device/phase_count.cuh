#pragma once
#include <cstdint>

#include "kernels/gpu/runtime/runtime.hpp"

/// As done_count, in one counter and without TMA: it counts the blocks that have written, then those that have seen
/// that all have. The last one wraps it to 0, so that no block waits for the value of the counter after its own wait.
/// CUDA and the emulator.
namespace skein::kernels::gpu {

struct phase_count {
  std::uint32_t* at = nullptr;                  ///< 0 between launches
  std::uint32_t writers = 0, readers = 0;       ///< how many will count themselves
  static constexpr std::uint32_t spacing = 32;  ///< from one counter to the next: each has its own line

  /// Called by one thread after a barrier, when all threads of the block have written, and have read what the readers
  /// replace.
  __device__ void count_writer() const {
#if defined(SKEIN_GPU_EMULATOR)
    increment();
#elif defined(__CUDACC__)
    asm volatile("red.release.gpu.global.inc.u32 [%0], %1;" ::"l"(at), "r"(last()) : "memory");
#endif
  }
  /// Waits until all writers are done. After a barrier, all threads of the block may read what they wrote.
  __device__ void await_writers() const {
#if defined(SKEIN_GPU_EMULATOR)
    emulator::block_runner::of_this_thread().wait_until([this] { return *at >= writers; },
                                                        std::source_location::current());
#elif defined(__CUDACC__)
    std::uint32_t done;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(done) : "l"(at) : "memory");
    while (done < writers);
#endif
  }
  /// Called once by each reader afterwards. Until the last one has, the counter stays at or above `writers`.
  __device__ void count_reader() const {
#if defined(SKEIN_GPU_EMULATOR)
    increment();
#elif defined(__CUDACC__)
    asm volatile("red.relaxed.gpu.global.inc.u32 [%0], %1;" ::"l"(at), "r"(last()) : "memory");
#endif
  }

 private:
  [[nodiscard]] __device__ std::uint32_t last() const { return writers + readers - 1; }
#if defined(SKEIN_GPU_EMULATOR)
  void increment() const { *at = *at >= last() ? 0 : *at + 1; }
#endif
};

}  // namespace skein::kernels::gpu
