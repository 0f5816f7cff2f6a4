#pragma once
#include <cstdint>

#include "kernels/gpu/device/done_count.cuh"
#include "kernels/gpu/device/tile_copy.cuh"
#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/gpu/gemm/scaled_sums.cuh"

/// How the products of a launch are cut into tiles and assigned to blocks; see matmul_hopper.cu. CUDA and the emulator.
namespace skein::kernels::gpu {

inline constexpr std::uint32_t group_outputs = 64;  // per warpgroup
inline constexpr unsigned warpgroup = 128;
inline constexpr std::uint32_t row_bytes = matrix_tile * 2;  // of a tile, in any type
/// Row tiles whose inputs stay in the L2 cache while all weights pass: 21 MB for the FFN key of 7.2B with the widest
/// tiles.
inline constexpr std::uint32_t band_tiles = 8;

/// The work of a block.
enum class takes {
  a_part,          ///< one segment of one tile
  parts,           ///< several of those in turn
  added_up_parts,  ///< tiles in turn, each with the sum of all its segments
  halves  ///< half of a tile's four segments, then half of its rows: a pair of blocks per tile (block_pair.cuh)
};

/// The shape of a block's work: two warpgroups of 64 outputs each, by `columns_` rows of the batch.
template <int columns_, int stages_, takes work_>
struct tiling {
  static constexpr int groups = 2, columns = columns_, stages = stages_;
  static constexpr bool in_pairs = work_ == takes::halves;
  static constexpr unsigned blocks_each = in_pairs ? 2 : 1;
  static constexpr bool in_turn = work_ != takes::a_part, adds_up = work_ == takes::added_up_parts || in_pairs;
  static constexpr std::uint32_t outputs = groups * group_outputs;
  /// Per instruction and per copy, which are limited to 256.
  static constexpr int columns_at_once = columns > 256 ? columns / 2 : columns;
  static constexpr std::uint32_t weight_bytes = outputs * row_bytes, input_bytes = columns * row_bytes;
  static constexpr std::uint32_t stage_bytes = weight_bytes + input_bytes;
  /// Results leave through shared memory (see send_pieces), which has space for a whole tile as elements (half of the
  /// widest), or for half of one as floats. A piece is `piece_columns` columns of a warpgroup, a multiple of 16, or
  /// half as many as floats.
  static constexpr int pieces = columns == 240 ? 3 : 2, piece_columns = columns == 320 ? 80 : columns / pieces;
  static constexpr std::uint32_t piece_bytes = piece_columns * row_bytes;
  static constexpr std::uint32_t result_bytes = in_turn ? groups * pieces * piece_bytes : 0;
  /// Sums of earlier segments that do not fit in a thread's registers and use the space of results.
  static constexpr int laid_down = !adds_up ? 0 : columns == 240 ? 40 : columns == 256 ? 48 : 0;
  static_assert(laid_down * warpgroup * sizeof(float) <= pieces * piece_bytes);
  static constexpr std::size_t shared_bytes =
      1024 + std::size_t{stages} * (stage_bytes + 2 * sizeof(phase_barrier)) + result_bytes;
  /// Wide tiles need more registers than an equal share: the producers' warpgroup gives most of its own to the others.
  static constexpr bool moves_registers = columns > 128;
  static constexpr unsigned consumers = groups * warpgroup, threads = consumers + (moves_registers ? warpgroup : 32);
};

/// The part of a tile that one block of a pair stores.
template <typename t>
struct half_tile : t {
  static constexpr int columns = t::columns / 2;
};

/// How a launch depends on launches that run at the same time (multiply_beside of matmul_hopper.hpp).
enum class launch_role : std::uint8_t {
  alone,
  first,   ///< Lets the next launch start when its own inputs are complete. Each block is counted when it has written.
  middle,  ///< Lets the next launch start at once. Its inputs are complete when it starts, so it waits only to write.
  second,  ///< Waits for the count of the first one. Only its last block waits for the launches before.
};

/// The place of a launch among those.
struct launch_place {
  launch_role role = launch_role::alone;
  std::uint32_t sms_kept = 0;     ///< of the middle one: SMs that it leaves to the first one
  std::uint32_t* done = nullptr;  ///< of the first and the second one: as gemm::done
  std::uint32_t writers = 0;      ///< of the second one: blocks of the first one
};

/// A product as blocks read it.
struct placed_gemm {
  CUtensorMap weights, inputs;
  void* out;
  std::size_t part_stride;
  bool is_sent;  // by TMA, whose map describes `out` (for blocks that take tiles in turn)
  std::uint32_t outputs, out_stride;
  std::uint32_t depth, segment_depth;  // in tiles of 128 bytes
  std::uint32_t tiles;                 // of outputs, per segment that has blocks of its own
  std::uint32_t first_item;            // in the launch
  epilogue how;
  sum_scales scales;  // of operands of e4m3
};

struct placed_gemms {
  placed_gemm of[gemms_max_of_turn];
  std::uint32_t count, items, row_tiles, rows;  // items: tiles of outputs, times segments that have blocks of their own
  bool pdl_early_launch;
  launch_role role;
  done_count done;  // of the first and the second launch
};

/// The outputs as TMA sees them: [segment, row, output].
template <typename t>
struct ways_out {
  CUtensorMap of[t::in_turn ? gemms_max_of_turn : 1];
};

/// A tile: its product, first output, first row, and range of input tiles.
struct work_item {
  const placed_gemm* gemm;
  std::uint32_t which, output, row, segment, first, count;
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
  const std::uint32_t inside = item - p.first_item, segment = inside / p.tiles;
  const std::uint32_t half = 2 * p.segment_depth, rank = blockIdx.x % t::blocks_each;
  const std::uint32_t first = t::in_pairs ? rank * half : segment * p.segment_depth;
  return {&p,
          which,
          inside % p.tiles * t::outputs,
          row_tile * t::columns,
          segment,
          first,
          t::in_pairs  ? min(half, p.depth - first)
          : t::adds_up ? p.depth
                       : min(p.segment_depth, p.depth - first)};
}

}  // namespace skein::kernels::gpu
