#pragma once
#include "kernels/gpu/device/block_pair.cuh"
#include "kernels/gpu/gemm/gemm_results.cuh"
#include "kernels/gpu/gemm/gemm_tiles.cuh"

/// How a block, or a pair of blocks, adds the partial sums of a tile's segments, always in order. CUDA and the
/// emulator.
namespace skein::kernels::gpu {

/// One thread's sums of the earlier segments. Those that do not fit in registers are in shared memory, in the space
/// through which results leave later.
template <typename t>
class sums_before {
 public:
  __device__ explicit sums_before(std::byte* result)
      : laid_down_(reinterpret_cast<float4*>(result + threadIdx.x / warpgroup * (t::result_bytes / t::groups)) +
                   threadIdx.x % warpgroup) {}

  __device__ void add(const float (&sums)[t::columns / 2], bool is_first) {
    if (t::laid_down > 0 && is_first) {  // the results of the previous tile must have left
      if (speaks()) wait_until_sent<0>();
      wait_for_warpgroup();
    }
#pragma unroll
    for (int j = 0; j < kept; ++j) kept_[j] = is_first ? sums[j] : kept_[j] + sums[j];
#pragma unroll
    for (int j = kept; j < t::columns / 2; j += 4) {
      const float4 before = at(j);
      at(j) = {is_first ? sums[j] : before.x + sums[j], is_first ? sums[j + 1] : before.y + sums[j + 1],
               is_first ? sums[j + 2] : before.z + sums[j + 2], is_first ? sums[j + 3] : before.w + sums[j + 3]};
    }
  }
  __device__ void add_to(float (&sums)[t::columns / 2]) const {
#pragma unroll
    for (int j = 0; j < kept; ++j) sums[j] = kept_[j] + sums[j];
#pragma unroll
    for (int j = kept; j < t::columns / 2; j += 4) {
      const float4 before = at(j);
      sums[j] = before.x + sums[j], sums[j + 1] = before.y + sums[j + 1];
      sums[j + 2] = before.z + sums[j + 2], sums[j + 3] = before.w + sums[j + 3];
    }
  }
  /// Those that belong to sums[j] and the next three.
  __device__ float4 four(int j) const {
    if (j >= kept) return at(j);
    return {kept_[j], kept_[j + 1], kept_[j + 2], kept_[j + 3]};
  }

 private:
  static constexpr int kept = t::columns / 2 - t::laid_down;
  __device__ float4& at(int j) const { return laid_down_[(j - kept) / 4 * warpgroup]; }

  float kept_[kept];
  float4* laid_down_;
};

__device__ inline float4 sum_of(const float4& a, const float4& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

/// The first block of a pair has segments 0 and 1 (`before` and `sums`), the second 2 and 3. Each gets the complete
/// sums of half of the tile's columns, in the first half of its `sums`. They exchange partial sums through the memory
/// of the stages, which must no longer be in use: each thread with its counterpart, four floats at a time. Therefore a
/// pair processes only one tile.
template <typename t>
__device__ void add_up_in_pair(const sums_before<t>& before, std::byte* stages, float (&sums)[t::columns / 2]) {
  constexpr int half = t::columns / 4;  // of a thread's sums
  static_assert(half % 4 == 0 && 2 * half * t::consumers * sizeof(float) <= t::stages * t::stage_bytes);
  auto* const mine = reinterpret_cast<float4*>(stages) + threadIdx.x;
  const auto place = [](int which, int j) { return (which * half + j) / 4 * t::consumers; };
  const auto four = [&](int j) { return float4{sums[j], sums[j + 1], sums[j + 2], sums[j + 3]}; };
  const auto keep = [&](int j, const float4& whole) {
    sums[j] = whole.x, sums[j + 1] = whole.y, sums[j + 2] = whole.z, sums[j + 3] = whole.w;
  };
  if (rank_in_pair() == 0) {
    before.add_to(sums);
    wait_for_pair();
#pragma unroll
    for (int j = 0; j < half; j += 4) put_beside(mine + place(0, j), four(half + j));
    wait_for_pair();
#pragma unroll
    for (int j = 0; j < half; j += 4) keep(j, sum_of(sum_of(four(j), mine[place(0, j)]), mine[place(1, j)]));
  } else {
    wait_for_pair();
#pragma unroll
    for (int j = 0; j < half; j += 4)
      put_beside(mine + place(0, j), before.four(j)), put_beside(mine + place(1, j), four(j));
    wait_for_pair();
#pragma unroll
    for (int j = 0; j < half; j += 4) keep(j, sum_of(sum_of(mine[place(0, j)], before.four(half + j)), four(half + j)));
  }
}

}  // namespace skein::kernels::gpu
