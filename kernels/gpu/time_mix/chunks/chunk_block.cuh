#pragma once
#include "kernels/gpu/device/matrix_tiles.cuh"
#include "kernels/gpu/time_mix/chunks/chunk_plan.hpp"

/// The block of threads that processes a chunk of a head (wkv_chunks.cu, wkv6_chunks.cu).
namespace skein::kernels::gpu {

static_assert(head_size == 64 && chunk_tokens == 64);
inline constexpr unsigned side = matrix_side;  // of all matrices here: tokens or channels

inline constexpr unsigned threads = 256, warps = threads / warp_width;
inline constexpr unsigned half_tokens = chunk_tokens / warps;  ///< of a warp: half a block
inline constexpr unsigned pairs_of_blocks = blocks * (blocks - 1) / 2;
inline constexpr float value_scale = 1.0f / 16;  ///< of values and states as operands
inline constexpr float log2_e = 1.44269504f;

/// The first of two blocks of tokens of which a pair consists; `pair` numbers both as lower_blocks::place_below does.
__device__ constexpr unsigned row_of_pair(unsigned pair) { return pair < 1 ? 1 : pair < 3 ? 2 : 3; }

/// Copies the rows of a chunk and head to shared memory, [token, channel]; called by the threads of the first warps.
template <typename T>
__device__ void copy_rows(T* to, const run_chunk& chunk, const gemm_rows& rows) {
  constexpr unsigned wide = 16 / sizeof(T), packets = side / wide;
  const auto* const from = static_cast<const T*>(rows.data) + blockIdx.x * head_size;
  for (unsigned i = threadIdx.x; i < chunk.rows * packets; i += threads / 2)
    copy_async(to + i * wide,
               from + static_cast<std::size_t>(chunk.first_row + i / packets) * rows.stride + i % packets * wide);
  end_copies();
}

}  // namespace skein::kernels::gpu
