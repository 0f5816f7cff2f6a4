#pragma once
#include "kernels/gpu/device/mma.cuh"

/// 64 x 64 matrices for warp-level tensor core instructions: in shared memory, from which tiles are loaded as operands,
/// and in global memory, where one kernel stores tiles in the layout that the next one loads.
namespace skein::kernels::gpu {

inline constexpr unsigned matrix_side = 64;
/// Tiles of 8 columns, and blocks of 16 rows or columns.
inline constexpr unsigned tiles = matrix_side / 8, blocks = matrix_side / 16;
inline constexpr std::size_t matrix_pairs = matrix_side * matrix_side / 2;

/// The place of a lane in a tile; see mma.cuh.
struct lane_place {
  unsigned warp = threadIdx.x / warp_width, lane = threadIdx.x % warp_width, g = lane / 4, t = lane % 4;
};

/// In shared memory. Rows are 72 numbers apart, so eight rows that are loaded together have no bank conflicts.
struct alignas(16) matrix {
  operand_pair pairs[matrix_side][36];

  __device__ const operand_pair* at(unsigned row, unsigned column) const { return &pairs[row][column / 2]; }
  __device__ operand_pair* at(unsigned row, unsigned column) { return &pairs[row][column / 2]; }
};

/// 16 x 16 in shared memory. The halves of rows 4 .. 7 and 12 .. 15 are swapped, to avoid bank conflicts.
struct alignas(16) matrix_block {
  operand_pair pairs[16][8];

  __device__ static unsigned place(unsigned row, unsigned column) {
    return (column / 8 ^ row / 4 % 2) * 4 + column % 8 / 2;
  }
  __device__ const operand_pair* at(unsigned row, unsigned column) const { return &pairs[row][place(row, column)]; }
  __device__ operand_pair* at(unsigned row, unsigned column) { return &pairs[row][place(row, column)]; }
};
/// The blocks of a matrix on its diagonal and below.
struct lower_blocks {
  matrix_block diagonal[blocks], below[blocks * (blocks - 1) / 2];

  __device__ static constexpr unsigned place_below(unsigned row, unsigned column) {
    return row * (row - 1) / 2 + column;
  }
  __device__ const matrix_block& of(unsigned row, unsigned column) const {
    return row == column ? diagonal[row] : below[place_below(row, column)];
  }
};

/// 16 rows as results, and as left operands.
using result_rows = tile_c[tiles];
using operand_rows = tile_a[blocks];

/// The layout of tiles that warps exchange through memory, 16 bytes of a lane together: left operands by blocks of 16
/// rows, then of 16 columns; right operands by blocks of 16 columns, then of 16 rows.
__device__ inline std::size_t tile_at(unsigned major, unsigned minor, unsigned lane) {
  return ((major * blocks + minor) * 32 + lane) * 4;
}
__device__ inline void load_tile(const operand_pair* from, operand_pair (&to)[4]) {
  const auto loaded = load_side_by_side<4>(from);
  for (unsigned i = 0; i < 4; ++i) to[i] = loaded.values[i];
}
__device__ inline void store_tile(operand_pair* to, const operand_pair (&from)[4]) {
  *reinterpret_cast<side_by_side<operand_pair, 4>*>(to) = {{from[0], from[1], from[2], from[3]}};
}

/// Stores 16 rows and 16 columns of results as two right operands of 8 columns.
__device__ inline void store_right(operand_pair* to, unsigned row_block, unsigned column_block, unsigned lane,
                                   const tile_c& left, const tile_c& right) {
  const operand_pair b[4] = {transpose(to_operands(left[0], left[1])), transpose(to_operands(left[2], left[3])),
                             transpose(to_operands(right[0], right[1])), transpose(to_operands(right[2], right[3]))};
  store_tile(to + tile_at(column_block, row_block, lane), b);
}
/// c += a times 16 columns of a right operand.
__device__ inline void multiply_right(tile_c& left, tile_c& right, const operand_rows& a, const operand_pair* from,
                                      unsigned column_block, unsigned lane) {
#pragma unroll
  for (unsigned i = 0; i < blocks; ++i) {
    operand_pair b[4];
    load_tile(from + tile_at(column_block, i, lane), b);
    multiply_tiles(left, a[i], {b[0], b[1]});
    multiply_tiles(right, a[i], {b[2], b[3]});
  }
}

/// 16 columns of results += a times the transpose of a block.
__device__ inline void multiply_block(tile_c& left, tile_c& right, const tile_a& a, const matrix_block& block,
                                      unsigned lane) {
  tile_b b[2];
  load_right_transposed(block, 0, 0, lane, b);
  multiply_tiles(left, a, b[0]);
  multiply_tiles(right, a, b[1]);
}

/// sum += a times rows 16 block .. + 16 of a matrix, columns from `first` on.
template <unsigned count>
__device__ void add_rows(tile_c (&sum)[count], const tile_a& a, const matrix& m, unsigned block, const lane_place& at,
                         unsigned first = 0) {
#pragma unroll
  for (unsigned n = 0; n < count; n += 2) {
    tile_b b[2];
    load_right(m, 16 * block, first + 8 * n, at.lane, b);
    for (unsigned i = 0; i < 2; ++i) multiply_tiles(sum[n + i], a, b[i]);
  }
}
/// Scales the columns of 16 rows of results.
template <unsigned count>
__device__ void scale_columns(tile_c (&sum)[count], const float* scale, const lane_place& at) {
#pragma unroll
  for (unsigned n = 0; n < count; ++n) {
    float by[2];
    load_floats(scale + 8 * n + 2 * at.t, by);
    for (unsigned i = 0; i < 4; ++i) sum[n][i] *= by[i % 2];
  }
}

}  // namespace skein::kernels::gpu
