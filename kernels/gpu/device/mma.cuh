#pragma once
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/device/warp.cuh"
#if defined(SKEIN_GPU_EMULATOR)
#include "kernels/gpu/runtime/emulator/tensor_core.hpp"
#endif

/// Matrix instructions of a warp's tensor cores, and asynchronous copies to shared memory (cp.async; on sm_75 they are
/// complete at once). CUDA from sm_75 on; the emulator has the same at a warp width of 32, so that tests cover the
/// kernels that use them. On other targets this code compiles but never runs.
///
/// Operands are fp16, in pairs; sums are fp32. A lane's place in a tile is g = lane / 4 and t = lane % 4:
///   A, 16 x 16 : a[0] = A[g, 2t ..]   a[1] = A[g + 8, 2t ..]   a[2] = A[g, 2t + 8 ..]   a[3] = A[g + 8, 2t + 8 ..]
///   B, 16 x 8  : b[0] = B[2t .., g]   b[1] = B[2t + 8 .., g]
///   C, 16 x 8  : c[0] = C[g, 2t]   c[1] = C[g, 2t + 1]   c[2] = C[g + 8, 2t]   c[3] = C[g + 8, 2t + 1]
/// ("2t .." means 2t and 2t + 1.) So two C side by side have the register layout of an A.
namespace skein::kernels::gpu {

/// Two adjacent operands. In the emulator they are fp32, rounded unless a test checks an algorithm without rounding.
struct operand_pair {
#if defined(SKEIN_GPU_EMULATOR)
  float first, second;
#else
  std::uint32_t bits;
#endif
};
using tile_a = operand_pair[4];
using tile_b = operand_pair[2];
using tile_c = float[4];

/// Rounds to nearest; values beyond the range of fp16 become its largest value.
__device__ inline operand_pair to_operands(float first, float second) {
#if defined(SKEIN_GPU_EMULATOR)
  return {emulator::as_operand(first), emulator::as_operand(second)};
#elif defined(__CUDA_ARCH__)
  return {rounded_pair<half>(first, second)};
#else
  return {};
#endif
}
__device__ inline void to_floats(const operand_pair& pair, float& first, float& second) {
#if defined(SKEIN_GPU_EMULATOR)
  first = pair.first, second = pair.second;
#elif defined(__CUDA_ARCH__)
  const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&pair.bits));
  first = both.x, second = both.y;
#endif
}
/// a * b elementwise, rounded.
__device__ inline operand_pair multiply_pairs(const operand_pair& a, const operand_pair& b) {
#if defined(SKEIN_GPU_EMULATOR)
  return to_operands(a.first * b.first, a.second * b.second);
#elif defined(__CUDA_ARCH__)
  operand_pair gemm;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(gemm.bits) : "r"(a.bits), "r"(b.bits));
  return gemm;
#else
  return {};
#endif
}

/// c += a b
__device__ inline void multiply_tiles(tile_c& c, const tile_a& a, const tile_b& b) {
#if defined(SKEIN_GPU_EMULATOR)
  const float as[4][2] = {
      {a[0].first, a[0].second}, {a[1].first, a[1].second}, {a[2].first, a[2].second}, {a[3].first, a[3].second}};
  emulator::multiply_tiles(c, as, {{b[0].first, b[0].second}, {b[1].first, b[1].second}});
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  for (int i = 0; i < 2; ++i)
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[2 * i].bits), "r"(a[2 * i + 1].bits), "r"(b[i].bits));
#elif defined(__CUDA_ARCH__)
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0].bits), "r"(a[1].bits), "r"(a[2].bits), "r"(a[3].bits), "r"(b[0].bits), "r"(b[1].bits));
#endif
}

/// Two adjacent tiles of results as the left operand of another multiplication.
__device__ inline void left_operand(const tile_c& left, const tile_c& right, tile_a& a) {
  a[0] = to_operands(left[0], left[1]), a[1] = to_operands(left[2], left[3]);
  a[2] = to_operands(right[0], right[1]), a[3] = to_operands(right[2], right[3]);
}

/// The transpose of 8 x 8 operands of which a lane has row g, columns 2t and 2t + 1.
__device__ inline operand_pair transpose(const operand_pair& pair) {
#if defined(SKEIN_GPU_EMULATOR)
  operand_pair turned;
  emulator::transpose(pair.first, pair.second, turned.first, turned.second);
  return turned;
#elif defined(__CUDA_ARCH__)
  operand_pair turned;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned.bits) : "r"(pair.bits));
  return turned;
#else
  return pair;
#endif
}

/// Loads four 8 x 8 tiles of operands from shared memory (ldmatrix), as they are or transposed. `from.at(row, column)`
/// is the address of a row of eight. Of the 16 x 16 operands at (row, column), the second tile is below the first
/// (`down_first`) or to its right; the other two tiles follow on the other side.
template <bool down_first, bool transposed, typename Matrix>
__device__ void load_tiles(const Matrix& from, unsigned row, unsigned column, unsigned lane, operand_pair (&to)[4]) {
#if defined(__CUDA_ARCH__)
  const unsigned low = lane / 8 % 2 * 8, high = lane / 16 * 8;
  const operand_pair* const own =
      from.at(row + lane % 8 + (down_first ? low : high), column + (down_first ? high : low));
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(own));
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0].bits), "=r"(to[1].bits), "=r"(to[2].bits), "=r"(to[3].bits)
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0].bits), "=r"(to[1].bits), "=r"(to[2].bits), "=r"(to[3].bits)
                 : "r"(address)
                 : "memory");
#elif defined(SKEIN_GPU_EMULATOR)
  const unsigned g = lane / 4, t = lane % 4;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned r = row + (down_first ? i % 2 : i / 2) * 8, c = column + (down_first ? i / 2 : i % 2) * 8;
    if constexpr (transposed) {
      const auto number = [&](unsigned down) {
        const operand_pair& pair = from.at(r + down, c)[g / 2];
        return g % 2 == 0 ? pair.first : pair.second;
      };
      to[i] = {number(2 * t), number(2 * t + 1)};
    } else {
      to[i] = from.at(r + g, c)[t];
    }
  }
#endif
}
/// Loads 16 x 16 operands as a left operand.
template <typename Matrix>
__device__ void load_left(const Matrix& from, unsigned row, unsigned column, unsigned lane, tile_a& a) {
  load_tiles<true, false>(from, row, column, lane, a);
}
/// Loads their transpose as a left operand.
template <typename Matrix>
__device__ void load_left_transposed(const Matrix& from, unsigned row, unsigned column, unsigned lane, tile_a& a) {
  load_tiles<false, true>(from, row, column, lane, a);
}
/// Loads 16 x 16 operands as two right operands of 8 columns each, the first columns first.
template <typename Matrix>
__device__ void load_right(const Matrix& from, unsigned row, unsigned column, unsigned lane, tile_b (&b)[2]) {
  operand_pair loaded[4];
  load_tiles<true, true>(from, row, column, lane, loaded);
  b[0][0] = loaded[0], b[0][1] = loaded[1], b[1][0] = loaded[2], b[1][1] = loaded[3];
}
/// Loads their transpose likewise.
template <typename Matrix>
__device__ void load_right_transposed(const Matrix& from, unsigned row, unsigned column, unsigned lane,
                                      tile_b (&b)[2]) {
  operand_pair loaded[4];
  load_tiles<false, false>(from, row, column, lane, loaded);
  b[0][0] = loaded[0], b[0][1] = loaded[1], b[1][0] = loaded[2], b[1][1] = loaded[3];
}

/// Stores four 8 x 8 matrices of 16-bit elements to shared memory (stmatrix). Of each, a lane has column g, rows 2t and
/// 2t + 1. Row r of matrix i goes to the address given by lane 8 i + r, plus `beyond` bytes. For sm_90.
__device__ inline void store_turned(std::byte* row, unsigned beyond, const std::uint32_t (&pairs)[4]) {
#if defined(SKEIN_GPU_EMULATOR)
  emulator::store_turned(row + beyond, pairs);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(row)) + beyond),
               "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
               : "memory");
#endif
}

/// Copies 16 bytes to shared memory; they are visible after await_copies and a barrier.
__device__ inline void copy_async(void* shared, const void* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
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
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits for all groups of this thread except the last `in_flight`.
template <unsigned in_flight>
__device__ void await_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(in_flight) : "memory");
#endif
}

}  // namespace skein::kernels::gpu
