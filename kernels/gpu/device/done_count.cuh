#pragma once
#include <cstdint>

#include "kernels/gpu/runtime/runtime.hpp"

/// Products of one launch that follow each other (see `turn`): who writes counts itself done, who reads what they wrote
/// by the copy engine waits for the count. Blocks begin in the order of their numbers, so those that are waited for
/// have. CUDA only.
namespace skein::kernels::gpu {

/// Between accesses of threads to global memory and those of copy engines (PTX ISA, "proxies"): both who wrote and who
/// lets an engine read have to ask for it.
__device__ inline void fence_between_proxies() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

struct done_count {
  std::uint32_t* at;               ///< two numbers: how many are done, how many have seen it; 0 between launches
  std::uint32_t writers, readers;  ///< that will count

  /// By one thread, when a barrier has told that all have written.
  __device__ void count_writer() const {
    fence_between_proxies();
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(at) : "memory");
  }
  /// Until all writers are done; what they wrote may then be fetched by this thread.
  __device__ void await_writers() const {
    std::uint32_t done;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(done) : "l"(at) : "memory");
    while (done < writers);
    fence_between_proxies();
  }
  /// By each reader once, after that: the last leaves zeros.
  __device__ void count_reader() const {
    if (atomicAdd(at + 1, 1u) + 1 == readers) at[0] = at[1] = 0;
  }
};

}  // namespace skein::kernels::gpu
