#pragma once
#include "kernels/gpu/runtime/runtime.hpp"

/// Kernels that are launched with launch_shape::overlaps may begin while the kernel before them still runs
/// (programmatic dependent launch of sm_90). Elsewhere these do nothing and kernels run one after another.
namespace skein::kernels::gpu {

/// Waits until the kernels before are over and what they wrote can be read. Called before the first access to anything
/// that is not a weight.
__device__ inline void wait_for_kernels_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the next kernel begin once every block has said so or has ended. It need not be the last thing that a block
/// does.
__device__ inline void let_next_kernel_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace skein::kernels::gpu
