#pragma once
#include "kernels/gpu/device/vec.cuh"
#if defined(__CUDACC__) || defined(SKEIN_GPU_EMULATOR)
#include "kernels/gpu/device/tile_copy.cuh"
#endif

/// Bulk copies of bytes between global and shared memory, in both directions: by TMA on sm_90, elsewhere immediately by
/// the calling thread. Addresses and sizes are multiples of 16.
namespace skein::kernels::gpu {

#if (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900) || defined(SKEIN_GPU_EMULATOR)
#define SKEIN_COPY_ENGINE 1
#endif

/// An mbarrier in shared memory that waits for fetched bytes. Its phases are numbered from 0.
class bulk_arrival {
 public:
  /// Called by one thread before any other use.
  __device__ void init() {
#if defined(SKEIN_COPY_ENGINE)
    state_.init(1);
    publish_barriers();
#endif
  }
  /// Begins a phase that ends when `bytes` bytes have been fetched.
  __device__ void expect([[maybe_unused]] unsigned bytes) {
#if defined(SKEIN_COPY_ENGINE)
    state_.arrive_expecting(bytes);
#endif
  }
  __device__ void wait([[maybe_unused]] unsigned phase) {
#if defined(SKEIN_COPY_ENGINE)
    state_.wait(phase);
#endif
  }

  __device__ void fetch(void* shared, const void* from, unsigned bytes) {
#if defined(SKEIN_GPU_EMULATOR)
    emulator::fetch_bytes(shared, from, bytes, state_.state);
#elif defined(SKEIN_COPY_ENGINE)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(shared)),
                 "l"(from), "r"(bytes), "r"(shared_address(&state_.state))
                 : "memory");
#else
    copy_now(shared, from, bytes);
#endif
  }

  __device__ static void copy_now(void* to, const void* from, unsigned bytes) {
    for (unsigned i = 0; i < bytes / sizeof(packet<float>); ++i)
      static_cast<packet<float>*>(to)[i] = static_cast<const packet<float>*>(from)[i];
  }

 private:
#if defined(__CUDACC__) || defined(SKEIN_GPU_EMULATOR)
  phase_barrier state_;
#else
  [[maybe_unused]] std::uint64_t state_;
#endif
};

/// Makes this thread's accesses to shared memory visible to TMA: once a barrier has informed another thread, it may
/// send what was written and may overwrite by a fetch what was read.
__device__ inline void publish_for_engine() {
#if defined(SKEIN_COPY_ENGINE)
  publish_writes();
#endif
}
__device__ inline void send_bytes(void* to, const void* shared, unsigned bytes) {
#if defined(SKEIN_GPU_EMULATOR)
  emulator::send_bytes(to, shared, bytes);
#elif defined(SKEIN_COPY_ENGINE)
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(shared)),
               "r"(bytes)
               : "memory");
#else
  bulk_arrival::copy_now(to, shared, bytes);
#endif
}
/// Ends a group of this thread's bulk stores.
__device__ inline void end_sent_bytes() {
#if defined(SKEIN_COPY_ENGINE)
  end_of_sending();
#endif
}
/// Waits until the shared memory of all bulk stores of this thread may be overwritten.
__device__ inline void await_sent_bytes() {
#if defined(SKEIN_COPY_ENGINE)
  wait_until_sent<0>();
#endif
}
/// Waits until all bulk stores of this thread are complete.
__device__ inline void await_written_bytes() {
#if defined(SKEIN_COPY_ENGINE)
  wait_until_written();
#endif
}

}  // namespace skein::kernels::gpu
