#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/gpu/device/done_count.cuh"
#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/gpu/types/coded_layout.hpp"

/// How the products of a launch are cut into tiles for kernel.cuh. CUDA and the emulator.
namespace skein::kernels::gpu::mma {

/// Row tiles whose inputs stay in the L2 cache while all weights pass.
inline constexpr std::uint32_t band_tiles = 8;

/// Launches of up to this number of rows may mix products with quantised weights and others.
inline constexpr int few_columns = 64;

/// Whether products of up to `columns` rows have their quantised weights on the narrow side of the instruction, so that
/// twice as many warps share the work of decoding (few_rows.cuh).
constexpr bool is_turned(weight_element code, int columns) { return code != weight_element::int4 && columns <= 16; }
/// Outputs of a block in such products.
inline constexpr int turned_outputs = 32;

/// Outputs of a block of ringed_low_rank.cu.
inline constexpr int low_rank_ring_outputs = 32;

/// What a block does with the segments of a product (split-K).
enum class takes {
  one,         ///< one segment per block
  sum_of_all,  ///< all, whose sums it adds in registers
  adds_each    ///< all, and adds the sum of each to the output, which is fp32 (destination::add_f32)
};

/// The shape of a block's tile: `outputs_` by `columns_` rows of the batch, divided among warps_m_ x warps_n_ warps. A
/// stage is `depth_` inputs deep: 64, or 32 where two wide stages of 64 would take all shared memory. A kernel for
/// takes::adds_each does takes::one as well, as the launch says; it needs a few registers more, which the widest tiles
/// do not have.
template <int outputs_, int columns_, int warps_m_, int warps_n_, int stages_, takes segments_, int depth_ = 64>
struct tiling {
  static constexpr int outputs = outputs_, columns = columns_, warps_m = warps_m_, warps_n = warps_n_;
  static constexpr int stages = stages_;
  static constexpr takes segments = segments_;
  static constexpr bool adds_up = segments != takes::one;
  static constexpr bool coded = false;   ///< whether its weights are quantised
  static constexpr bool turned = false;  ///< see is_turned
  static constexpr int warps = warps_m * warps_n;
  static constexpr unsigned threads = 32 * warps;
  static constexpr int tiles_m = outputs / warps_m / 16, tiles_n = columns / warps_n / 8;  // of a warp
  static_assert(tiles_m > 0 && (tiles_n == 1 || tiles_n % 2 == 0));
  static constexpr unsigned steps = depth_ / 16;  ///< of 16 inputs, in a stage
  static constexpr std::uint32_t stages_of_tile = matrix_tile / depth_;
  static constexpr std::uint32_t row_bytes = depth_ * 2;  ///< of a stage, in either type
  static constexpr unsigned packets_of_row = row_bytes / 16;
  static constexpr std::uint32_t weight_bytes = outputs * row_bytes, input_bytes = columns * row_bytes;
  static constexpr std::uint32_t stage_bytes = weight_bytes + input_bytes;
  /// Results leave a warp through shared memory if they have many rows: as many rows at once as the ring has space for.
  static constexpr bool lays_down = columns >= 64;
  static constexpr std::uint32_t laid_floats = tiles_m * 16 + 4;  // of a row; 4: no bank conflicts
  static constexpr std::size_t shared_bytes = std::size_t{stages} * stage_bytes;
  static constexpr int rows_at_once = [] {
    int tiles = tiles_n;
    while (tiles_n % tiles != 0 || warps * tiles * 8 * laid_floats * sizeof(float) > shared_bytes) --tiles;
    return tiles * 8;
  }();

  /// Where 16 bytes of a row of a stage are: moved within lines of 128 bytes so that eight rows that are loaded
  /// together have no bank conflicts.
  __device__ static unsigned place(unsigned row, unsigned packet) {
    const unsigned moved = depth_ == 64 ? row % 8 : row / 2 % 4;
    return row * row_bytes + ((packet ^ moved) << 4);
  }
};

/// The same for quantised weights (types/coded_layout.hpp), with as many stages as fit in the same shared memory. Each
/// warp copies the blocks of one panel.
template <typename t, weight_element code_>
struct coded_tiling : t {
  static_assert(t::stages_of_tile == 1 && t::outputs == t::warps * static_cast<int>(panel_outputs));
  static constexpr bool coded = true;
  static constexpr weight_element code = code_;
  static constexpr std::uint32_t largest_block = block_bytes({code, 32});
  static constexpr std::uint32_t weight_bytes = t::warps * largest_block;
  static constexpr std::uint32_t stage_bytes = weight_bytes + t::input_bytes;
  static constexpr int stages = std::max(t::stages, static_cast<int>(t::shared_bytes / stage_bytes));
  static_assert(stages * stage_bytes <= t::shared_bytes);
};

/// A product as blocks read it.
struct placed_gemm {
  const std::byte *weights, *inputs;
  void* out;
  std::size_t weight_stride, in_stride;  // bytes; of quantised weights from panel to panel
  std::uint32_t block_bytes;             // of quantised weights; otherwise 0
  std::uint32_t scale_step;              // bytes from the scales of 32 inputs to the next; 0: a block has one group
  std::size_t part_stride;
  std::uint32_t weight_rows, outputs, out_stride;
  std::uint32_t depth, segment_depth;  // in tiles of 64 inputs
  std::uint32_t tile_outputs;          // of a block
  std::uint32_t tiles;                 // of outputs, per segment that has blocks of its own
  std::uint32_t first_item;            // in the launch
  epilogue how;
  turn when;
  bool in_packets;  // rows of the output can be written 16 bytes at a time
};

struct placed_gemms {
  placed_gemm of[gemms_max];
  std::uint32_t count, items, row_tiles, rows;  // items: tiles of outputs, times segments that have blocks of their own
  bool takes_all;                               // a block takes all segments
  bool pdl, pdl_early_launch;
  bool first_beside;  // first products are in a launch beside this one (tile_launch::first_blocks)
  done_count done;    // of products that others wait for
};

/// A tile: its product, first output, first row, and range of stages.
struct work_item {
  const placed_gemm* gemm;
  std::uint32_t output, row, segment, first, count;
};

template <typename t>
__device__ work_item find_work(const placed_gemms& all, std::uint32_t item) {
  std::uint32_t row_tile = 0;
  if (all.row_tiles > 1) {  // bands of rows, one after another; within a band, neighbours share weights
    const std::uint32_t band = item / (all.items * band_tiles), inside = item % (all.items * band_tiles);
    const std::uint32_t tiles_of_band = min(band_tiles, all.row_tiles - band * band_tiles);
    item = inside / tiles_of_band;
    row_tile = band * band_tiles + inside % tiles_of_band;
  }
  std::uint32_t which = all.count - 1;
  while (item < all.of[which].first_item) --which;
  const placed_gemm& p = all.of[which];
  const std::uint32_t inside = item - p.first_item, segment = inside / p.tiles, first = segment * p.segment_depth;
  const std::uint32_t tiles = t::adds_up && all.takes_all ? p.depth : min(p.segment_depth, p.depth - first);
  return {&p,      inside % p.tiles * p.tile_outputs, row_tile * t::columns,
          segment, first * t::stages_of_tile,         tiles * t::stages_of_tile};
}

}  // namespace skein::kernels::gpu::mma
