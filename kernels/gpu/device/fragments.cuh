#pragma once
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/convert.cuh"
#if defined(SKEIN_GPU_EMULATOR)
#include "kernels/gpu/runtime/emulator/tensor_core.hpp"
#endif

/// Matrix instructions of a warp over 16-bit elements as they are in memory (mma.sync, ldmatrix), and asynchronous
/// copies to shared memory (cp.async). CUDA from sm_75 on; the emulator has the same at a warp width of 32. Layouts as
/// in mma.cuh. On sm_75, which has no cp.async and no bf16 instructions, copies are complete at once and only fp16 is
/// multiplied.
namespace skein::kernels::gpu {

/// Two adjacent elements in each register.
using fragment_a = std::uint32_t[4];
using fragment_b = std::uint32_t[2];

/// Loads four 8 x 8 matrices (ldmatrix): lane 8 i + r gives the address of row r of matrix i; a lane gets row lane / 4,
/// columns 2 (lane % 4) and the next, of each.
__device__ inline void load_fragments(const std::byte* row, std::uint32_t (&to)[4]) {
#if defined(SKEIN_GPU_EMULATOR)
  emulator::load_fragments(row, to);
#elif defined(__CUDA_ARCH__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row))));
#endif
}

/// c += a [16, 16] * b [16, 8]
template <typename Element>
__device__ void multiply_fragments(float (&c)[4], const fragment_a& a, const fragment_b& b) {
#if defined(SKEIN_GPU_EMULATOR)
  emulator::multiply_fragments<Element>(c, a, b);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<Element, half>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
  if constexpr (std::is_same_v<Element, half>)
    for (int i = 0; i < 2; ++i)
      asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a[2 * i]), "r"(a[2 * i + 1]), "r"(b[i]));
#endif
}

/// Copies 16 bytes to shared memory, or zeros if not `valid`. They are there after await_packets and a barrier.
/// `ahead`: brings the 256 bytes around them into the L2 cache, for data that is read in ascending order.
template <bool ahead = false>
__device__ void copy_packet(std::byte* shared, const std::byte* from, bool valid) {
#if defined(SKEIN_GPU_EMULATOR)
  if (const auto* const reads = emulator::early_reads::current(); reads && valid) reads->check(from, 16);
  emulator::async_copies::of_this_thread().begin(shared, valid ? from : nullptr);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const unsigned bytes = valid ? 16 : 0;
  if constexpr (ahead)
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
  else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
#elif defined(__CUDA_ARCH__)
  *reinterpret_cast<uint4*>(shared) = valid ? *reinterpret_cast<const uint4*>(from) : uint4{};
#endif
}
/// Ends a group of this thread's copies.
__device__ inline void end_packets() {
#if defined(SKEIN_GPU_EMULATOR)
  emulator::async_copies::of_this_thread().end_group();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits for all groups of this thread except the last `in_flight`.
template <unsigned in_flight>
__device__ void await_packets() {
#if defined(SKEIN_GPU_EMULATOR)
  emulator::async_copies::of_this_thread().wait(in_flight);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(in_flight) : "memory");
#endif
}

}  // namespace skein::kernels::gpu
