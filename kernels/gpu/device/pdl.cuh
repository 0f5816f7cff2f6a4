#pragma once
#include "kernels/gpu/runtime/runtime.hpp"
#if defined(SKEIN_GPU_EMULATOR)
#include "kernels/gpu/runtime/emulator/early_reads.hpp"
#endif

/// Programmatic dependent launch (PDL) of sm_90: kernels that are launched with launch_shape::overlaps may start while
/// the preceding kernel still runs. On other targets these functions do nothing and kernels run one after another.
namespace skein::kernels::gpu {

/// Waits until the preceding kernels are complete and their writes are visible. Must precede the first access to
/// anything but weights, and inputs that were complete when the kernel was started (launch_role) or of which a counter
/// says that they are (done_count.cuh).
__device__ inline void pdl_wait() {
#if defined(SKEIN_GPU_EMULATOR)
  if (auto* const reads = emulator::early_reads::current()) reads->wait();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the next kernel start once every block has called this or has ended. A block may continue to work afterwards.
__device__ inline void pdl_launch_dependents() {
#if defined(SKEIN_GPU_EMULATOR)
  if (auto* const reads = emulator::early_reads::current()) reads->start_next();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace skein::kernels::gpu
