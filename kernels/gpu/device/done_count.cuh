#pragma once
#include <cstdint>

#include "kernels/gpu/runtime/runtime.hpp"
#if defined(SKEIN_GPU_EMULATOR)
#include "kernels/gpu/runtime/emulator/early_reads.hpp"
#endif

/// Synchronisation between products of one launch that depend on each other (see `turn`), or of launches that run at
/// the same time: blocks that write an output count themselves as done, blocks that read it wait for the count. The
/// blocks that are waited for have begun: those of a launch begin in the order of their numbers, and a launch begins
/// when all blocks of the one before have. CUDA; the emulator runs one block after another.
namespace skein::kernels::gpu {

/// Orders a thread's accesses to global memory against those of TMA (PTX ISA, "proxies"): needed by the thread that
/// wrote and by the thread that issues the TMA read.
__device__ inline void fence_between_proxies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.global;" ::: "memory");
#endif
}

struct done_count {
  /// Counters of writers that are done and of readers that have seen it; 0 before and after (gemm::done).
  std::uint32_t* at;
  std::uint32_t writers, readers;  ///< how many will count themselves

  /// Called by one thread after a barrier, when all threads of the block have written.
  __device__ void count_writer() const {
    fence_between_proxies();
#if defined(SKEIN_GPU_EMULATOR)
    atomicAdd(at, 1u);
#else
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(at) : "memory");
#endif
  }
  /// Waits until all writers are done; then this thread may fetch their output.
  __device__ void await_writers() const { await_count(writers); }
  /// Waits until `count` writers are done.
  __device__ void await_count(std::uint32_t count) const {
#if defined(SKEIN_GPU_EMULATOR)
    emulator::block_runner::of_this_thread().wait_until([=, this] { return at[0] >= count; },
                                                        std::source_location::current());
    if (auto* const reads = emulator::early_reads::current()) reads->wait_for_count();
#else
    std::uint32_t done;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(done) : "l"(at) : "memory");
    while (done < count);
#endif
    fence_between_proxies();
  }
  /// Called once by each reader afterwards; the last one resets the counters.
  __device__ void count_reader() const {
    if (atomicAdd(at + 1, 1u) + 1 == readers) at[0] = at[1] = 0;
  }
};

}  // namespace skein::kernels::gpu
