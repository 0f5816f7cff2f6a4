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
};

/// Launches a kernel for products of which some have quantised weights, all with one kind of code. Shapes are any but
/// broad; above few_columns rows, all products are quantised.
template <weight_element code>
result<void> launch_coded(mma_shape shape, takes work, const tile_launch& what);

/// The same on sm_90a, in tiles of 128 outputs by `columns` (128, 192 or, except for sum_of_all, 256) rows, for
/// products that are all quantised with that kind of code.
template <weight_element code>
result<void> launch_hopper(std::uint32_t columns, takes work, const tile_launch& what);

/// The same on sm_90a, for up to few_columns rows (ringed_rows.cuh).
template <weight_element code>
result<void> launch_ringed(mma_shape shape, const tile_launch& what);

}  // namespace skein::kernels::gpu::mma
