#pragma once
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/device/warp.cuh"
#if defined(SKEIN_GPU_EMULATOR)
#include "kernels/gpu/runtime/emulator/tensor_core.hpp"
#endif

/// Products of small matrices by the tensor cores of a warp, and copies into shared memory that a thread does not wait
/// for. Of CUDA from sm_80 on; the emulator has the same at a width of 32, so that kernels made of them are tested like
/// others. What they are on other targets is never run.
///
/// A lane's place in a tile is g = lane / 4 and t = lane % 4:
///   A, 16 x 8 : a[0] = A[g, t]   a[1] = A[g + 8, t]   a[2] = A[g, t + 4]   a[3] = A[g + 8, t + 4]
///   B, 8 x 8  : b[0] = B[t, g]   b[1] = B[t + 4, g]
///   C, 16 x 8 : c[0] = C[g, 2t]  c[1] = C[g, 2t + 1]  c[2] = C[g + 8, 2t]  c[3] = C[g + 8, 2t + 1]
/// A sum over k may take its terms in any order, as long as A and B agree. "Paired" says that slots t and t + 4 of k
/// stand for 2t and 2t + 1: then a C is an A of the next product as it lies in the registers (see paired_operand).
namespace skein::kernels::gpu {

using tile_a = float[4];
using tile_b = float[2];
using tile_c = float[4];

/// Rounded to what a tensor core keeps of an fp32: 11 bits, and the whole range.
__device__ inline float as_tf32(float value) {
#if defined(SKEIN_GPU_EMULATOR)
  return emulator::as_tf32(value);
#elif defined(__CUDA_ARCH__)
  std::uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
  return bits_to_float(rounded);
#else
  return value;
#endif
}

/// c += a b, with operands that went through as_tf32; sums are fp32.
__device__ inline void multiply_tiles(tile_c& c, const tile_a& a, const tile_b& b) {
#if defined(SKEIN_GPU_EMULATOR)
  emulator::multiply_tiles(c, a, b);
#elif defined(__CUDA_ARCH__)
  const auto bits = [](float value) { return __float_as_uint(value); };
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(bits(a[0])), "r"(bits(a[1])), "r"(bits(a[2])), "r"(bits(a[3])), "r"(bits(b[0])), "r"(bits(b[1])));
#endif
}

/// What lanes wrote to shared memory before it, other lanes of the warp see after it.
__device__ inline void warp_barrier() {
#if defined(__CUDA_ARCH__)
  __syncwarp();
#else
  static_cast<void>(ballot(true));
#endif
}

/// The result of one product as the paired left operand of another.
__device__ inline void paired_operand(const tile_c& c, tile_a& a) {
  a[0] = as_tf32(c[0]), a[1] = as_tf32(c[2]), a[2] = as_tf32(c[1]), a[3] = as_tf32(c[3]);
}

/// Copies 16 bytes to shared memory; they are there after await_copies and a barrier.
__device__ inline void copy_async(void* shared, const void* from) {
#if defined(__CUDA_ARCH__)
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))),
      "l"(from)
      : "memory");
#else
  store_packet(static_cast<std::uint32_t*>(shared), load_packet(static_cast<const std::uint32_t*>(from)));
#endif
}
/// Ends a group of a thread's copies.
__device__ inline void end_copies() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits for all groups of this thread but the last `in_flight`.
template <unsigned in_flight>
__device__ void await_copies() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.wait_group %0;" ::"n"(in_flight) : "memory");
#endif
}

}  // namespace skein::kernels::gpu
