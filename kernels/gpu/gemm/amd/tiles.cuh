#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/gpu/device/matrix_core.cuh"
#include "kernels/gpu/gemm/matmul.hpp"

/// How the products of a launch are cut into tiles for matmul_amd.cu. HIP and the emulator.
namespace skein::kernels::gpu::amd {

/// Row tiles whose inputs stay in the L2 cache while all weights pass.
inline constexpr std::uint32_t band_tiles = 8;

/// The shape of a block's tile: `outputs_` by `columns_` rows of the batch. A stage is `depth_` inputs deep. Nothing
/// here depends on the width of a warp, which the host does not know.
template <unsigned outputs_, unsigned columns_, unsigned threads_, unsigned depth_>
struct tiling {
  static constexpr unsigned outputs = outputs_, columns = columns_, threads = threads_, depth = depth_;
  static constexpr std::uint32_t row_bytes = depth * 2;  ///< of a stage, in either type
  static constexpr unsigned packets_of_row = row_bytes / 16;
  static constexpr std::uint32_t stage_bytes = (outputs + columns) * row_bytes;
  static constexpr std::size_t shared_bytes = 2 * stage_bytes;
  /// Of a stage, that a thread copies.
  static constexpr unsigned packets_of_thread = stage_bytes / 16 / threads;
  static_assert(packets_of_thread * threads * 16 == stage_bytes && matrix_tile % depth == 0);

  /// Where 16 bytes of a row of a stage are: moved within lines of 128 bytes so that lanes that load the same inputs of
  /// eight rows use different banks.
  __device__ static unsigned place(unsigned row, unsigned packet) {
    const unsigned moved = depth == 64 ? row % 8 : row / 2 % 4;
    return row * row_bytes + ((packet ^ moved) << 4);
  }
};

using few_tiles = tiling<64, 16, 128, 64>;
using small_tiles = tiling<64, 64, 128, 64>;
using wide_tiles = tiling<128, 128, 256, 32>;

/// How the 16 x 16 products of a tile are divided among the warps of a block.
template <typename t>
struct division {
  static constexpr unsigned warps = t::threads / warp_width;
  static constexpr unsigned warps_n = t::columns < 64 ? 1 : 2, warps_m = warps / warps_n;
  static constexpr unsigned outputs = t::outputs / warps_m, columns = t::columns / warps_n;  // of a warp
  static constexpr unsigned tiles_m = outputs / 16, tiles_n = columns / 16;
  static_assert(warps_m * tiles_m * 16 == t::outputs && warps_n * tiles_n * 16 == t::columns);
};

/// A lane's place in its warp, and its warp's in the tile.
template <typename t>
struct place {
  unsigned lane = threadIdx.x % warp_width;
  unsigned first_output = threadIdx.x / warp_width % division<t>::warps_m * division<t>::outputs;
  unsigned first_column = threadIdx.x / warp_width / division<t>::warps_m * division<t>::columns;
};

struct placed_gemms {
  gemm of[gemms_max_of_turn];
  std::uint32_t first_item[gemms_max_of_turn];
  std::uint32_t count, items, row_tiles;  // items: tiles of outputs, times segments that have blocks of their own
};

/// A tile: its product, first output, first row, segment, and range of tiles of 64 inputs.
struct work_item {
  const gemm* of;
  std::uint32_t output, row, segment, first, count;
};

/// `adds_up`: the block has all segments of its product.
template <typename t, bool adds_up>
__device__ work_item find_work(const placed_gemms& all, std::uint32_t item) {
  std::uint32_t row_tile = 0;
  if (all.row_tiles > 1) {  // bands of rows, one after another; within a band, neighbours share weights
    const std::uint32_t band = item / (all.items * band_tiles), inside = item % (all.items * band_tiles);
    const std::uint32_t left = all.row_tiles - band * band_tiles, tiles = left < band_tiles ? left : band_tiles;
    item = inside / tiles;
    row_tile = band * band_tiles + inside % tiles;
  }
  std::uint32_t which = all.count - 1;
  while (item < all.first_item[which]) --which;
  const gemm& p = all.of[which];
  const std::uint32_t tiles = (p.matrix.outputs + t::outputs - 1) / t::outputs, inside = item - all.first_item[which];
  const std::uint32_t segment = inside / tiles, output = inside % tiles * t::outputs, row = row_tile * t::columns;
  const std::uint32_t depth = padded(p.matrix.inputs) / matrix_tile;
  if (adds_up || p.segments == 1) return {&p, output, row, 0, 0, depth};
  const std::uint32_t each = segment_tiles(p), first = segment * each, left = depth - first;
  return {&p, output, row, segment, first, each < left ? each : left};
}

}  // namespace skein::kernels::gpu::amd
