#pragma once
#include <cstdint>

#include "kernels/gpu/runtime/runtime.hpp"

/// Products of one launch that follow each other (see `turn`): who writes counts itself done, who reads what they wrote
/// by the copy engine waits for the count. Blocks begin in the order of their numbers, so those that are waited for
/// have. Of CUDA; the emulator runs one block after the other.
namespace skein::kernels::gpu {

/// Between accesses of threads to global memory and those of copy engines (PTX ISA, "proxies"): both who wrote and who
/// lets an engine read have to ask for it.
__device__ inline void fence_between_proxies() {
#if !defined(SKEIN_GPU_EMULATOR)
  asm volatile("fence.proxy.async.global;" ::: "memory");
#endif
}

struct done_count {
  std::uint32_t* at;               ///< two numbers: how many are done, how many have seen it; 0 between launches
  std::uint32_t writers, readers;  ///< that will count

  /// By one thread, when a barrier has told that all have written.
  __device__ void count_writer() const {
    fence_between_proxies();
#if defined(SKEIN_GPU_EMULATOR)
    atomicAdd(at, 1u);
#else
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(at) : "memory");
#endif
  }
  /// Until all writers are done; what they wrote may then be fetched by this thread.
  __device__ void await_writers() const {
#if defined(SKEIN_GPU_EMULATOR)
    emulator::block_runner::of_this_thread().wait_until([this] { return at[0] >= writers; },
                                                        std::source_location::current());
#else
    std::uint32_t done;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(done) : "l"(at) : "memory");
    while (done < writers);
#endif
    fence_between_proxies();
  }
  /// By each reader once, after that: the last leaves zeros.
  __device__ void count_reader() const {
    if (atomicAdd(at + 1, 1u) + 1 == readers) at[0] = at[1] = 0;
  }
};

}  // namespace skein::kernels::gpu
