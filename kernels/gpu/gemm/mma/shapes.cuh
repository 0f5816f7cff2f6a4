#pragma once
#include <cstdint>
#include <span>

#include "kernels/gpu/gemm/mma/matmul_mma.hpp"
#include "kernels/gpu/gemm/mma/tiles.cuh"
#include "kernels/gpu/types/device_profile.hpp"

/// The shapes of tiles that the kernel of kernel.cuh is compiled for.
namespace skein::kernels::gpu::mma {

using rows_8_tiles = tiling<64, 8, 4, 1, 5, takes::one>;
using rows_16_tiles = tiling<64, 16, 4, 1, 4, takes::one>;
using rows_32_tiles = tiling<64, 32, 4, 1, 4, takes::one>;
/// The same with rings of up to 72 KB, for an SM that has one block of a launch.
using rows_8_deep_tiles = tiling<64, 8, 4, 1, 8, takes::one>;
using rows_16_deep_tiles = tiling<64, 16, 4, 1, 7, takes::one>;
using rows_32_deep_tiles = tiling<64, 32, 4, 1, 6, takes::one>;
template <takes work>
using small_tiles = tiling<64, 64, 2, 2, 3, work>;
template <takes work>
using flat_tiles = tiling<64, 128, 2, 2, 3, work>;
template <takes work>
using square_tiles = tiling<128, 128, 2, 4, 3, work>;
template <takes work>
using broad_tiles = tiling<128, 192, 2, 4, 3, work>;
template <takes work>
using wide_tiles = tiling<128, 256, 2, 4, 3, work>;
/// For at most 99 KB of shared memory.
template <takes work>
using broad_shallow_tiles = tiling<128, 192, 2, 4, 4, work, 32>;
template <takes work>
using wide_shallow_tiles = tiling<128, 256, 2, 4, 4, work, 32>;

/// One launch.
struct tile_launch {
  stream_handle in;
  element type;
  std::span<const gemm> gemms;
  std::uint32_t rows;
  const device_profile& profile;
  takes work = takes::one;
  /// SMs that blocks of the kernel before keep while this launch runs beside them. If there are any, this is the middle
  /// one of three launches (multiply_beside).
  std::uint32_t beside = 0;
  /// Blocks of launch_low_rank for the first products that the second ones of this launch wait for. If there are any,
  /// that is the launch before and runs beside this one: all blocks wait for the count of one of them, which says that
  /// their inputs are complete, and those of second products for the others.
  std::uint32_t first_blocks = 0;
};

/// start.operator()<t>() with the tiles of a shape that is neither broad nor wide.
template <typename Start>
result<void> start_tiles(mma_shape shape, takes work, Start start) {
  const auto start_many = [&]<takes how>() {
    if (shape == mma_shape::square) return start.template operator()<square_tiles<how>>();
    if (shape == mma_shape::flat) return start.template operator()<flat_tiles<how>>();
    return start.template operator()<small_tiles<how>>();
  };
  if (work == takes::sum_of_all) return start_many.template operator()<takes::sum_of_all>();
  if (work == takes::one) {
    if (shape == mma_shape::rows_8) return start.template operator()<rows_8_tiles>();
    if (shape == mma_shape::rows_16) return start.template operator()<rows_16_tiles>();
    if (shape == mma_shape::rows_32) return start.template operator()<rows_32_tiles>();
    if (shape == mma_shape::small) return start.template operator()<small_tiles<takes::one>>();
  }
  return start_many.template operator()<takes::adds_each>();
}

/// Launches a kernel for products of which some have quantised weights, all with one kind of code. Shapes are any but
/// broad; above few_columns rows, all products are quantised.
template <weight_element code>
result<void> launch_coded(mma_shape shape, const tile_launch& what);

/// The same on sm_90a, in tiles of 128 outputs by `columns` (128, 192 or, except for sum_of_all, 256) rows, for
/// products that are all quantised with that kind of code.
template <weight_element code>
result<void> launch_hopper(std::uint32_t columns, const tile_launch& what);

/// First products of low-rank pairs on sm_90a, which are not quantised and have one segment, for up to few_columns
/// rows. The next launch runs beside this one (tile_launch::first_blocks) and waits by the counters at `done`.
result<void> launch_low_rank(mma_shape shape, const tile_launch& what, std::uint32_t* done);
[[nodiscard]] constexpr std::uint32_t low_rank_blocks(std::span<const gemm> gemms) {
  std::uint32_t blocks = 0;
  for (const gemm& p : gemms) blocks += (p.matrix.outputs + low_rank_ring_outputs - 1) / low_rank_ring_outputs;
  return blocks;
}

/// The same on sm_90a, for up to few_columns rows (ringed_rows.cuh).
template <weight_element code>
result<void> launch_ringed(mma_shape shape, const tile_launch& what);

}  // namespace skein::kernels::gpu::mma
