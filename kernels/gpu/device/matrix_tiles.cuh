#pragma once
#include "kernels/gpu/device/mma.cuh"

/// Matrices of 64 x 64 for the tensor cores of warps: in shared memory, where tiles of them are loaded as operands, and
/// in global memory, where one kernel leaves tiles as the next one wants them.
namespace skein::kernels::gpu {

inline constexpr unsigned matrix_side = 64;
inline constexpr unsigned tiles = matrix_side / 8, strips = matrix_side / 16;
inline constexpr std::size_t matrix_floats = matrix_side * matrix_side;

/// Where a lane stands in a tile; see mma.cuh.
struct lane_place {
  unsigned warp = threadIdx.x / warp_width, lane = threadIdx.x % warp_width, g = lane / 4, t = lane % 4;
};

/// In shared memory. Rows lie 72 floats apart: neither pairs along a row, for g and t, nor single floats
/// along a column, for t and g, meet in a bank.
inline constexpr unsigned matrix_pitch = 72;
using matrix = float[matrix_side][matrix_pitch];

/// 16 rows of a matrix as paired left operands.
using operand_rows = tile_a[tiles];
__device__ inline void load_paired(const matrix& from, unsigned first_row, const lane_place& at, operand_rows& a) {
#pragma unroll
  for (unsigned tile = 0; tile < tiles; ++tile)
    for (unsigned i = 0; i < 2; ++i) {
      const float* const pair = &from[first_row + at.g + 8 * i][8 * tile + 2 * at.t];
      a[tile][i] = pair[0], a[tile][2 + i] = pair[1];
    }
}
/// Rows `row` .. row + 8 and columns from `column` on as a paired right operand: its columns are the rows.
__device__ inline void load_paired(const matrix& from, unsigned row, unsigned column, const lane_place& at, tile_b& b) {
  load_floats(&from[row + at.g][column + 2 * at.t], b);
}
/// The transpose of 8 rows and 16 columns as a left operand, not paired.
__device__ inline void load_transposed(const matrix& from, unsigned row, unsigned column, const lane_place& at,
                                       tile_a& a) {
  for (unsigned i = 0; i < 4; ++i) a[i] = from[row + at.t + i / 2 * 4][column + at.g + i % 2 * 8];
}
/// 8 rows and 8 columns as a right operand, not paired.
__device__ inline void load_plain(const matrix& from, unsigned row, unsigned column, const lane_place& at, tile_b& b) {
  b[0] = from[row + at.t][column + at.g], b[1] = from[row + at.t + 4][column + at.g];
}

/// 16 channels by all tokens: c[0 .. 1] of tile i are channel g of tokens 8i + 2t and its successor, c[2 .. 3] channel
/// g + 8.
using token_columns = tile_c[tiles];

__device__ inline void load_columns(const matrix& from, unsigned first, const lane_place& at, token_columns& x) {
#pragma unroll
  for (unsigned tile = 0; tile < tiles; ++tile)
    for (unsigned i = 0; i < 4; ++i) x[tile][i] = from[8 * tile + 2 * at.t + i % 2][first + at.g + i / 2 * 8];
}
__device__ inline void store_columns(matrix& to, unsigned first, const lane_place& at, const token_columns& x) {
#pragma unroll
  for (unsigned tile = 0; tile < tiles; ++tile)
    for (unsigned i = 0; i < 4; ++i) to[8 * tile + 2 * at.t + i % 2][first + at.g + i / 2 * 8] = as_tf32(x[tile][i]);
}

/// How tiles lie in global memory. Right operands in 16 bits, the tiles n of 8 columns one after another; of each in
/// two pieces 4 tiles along k, which a lane reads at once. fp32 results by strips of 16 rows, then tiles of 8 columns.
__device__ inline std::size_t right_operand_at(unsigned n, unsigned piece, unsigned lane) {
  return ((n * 2 + piece) * 32 + lane) * 8;
}
__device__ inline std::size_t result_at(unsigned strip, unsigned tile, unsigned lane) {
  return ((strip * tiles + tile) * 32 + lane) * 4;
}

/// 16 rows of a right operand's transpose: rows g and g + 8 are columns of two tiles of it.
__device__ inline void store_right_operand(half* to, unsigned strip, const lane_place& at, const tile_c (&c)[tiles]) {
#pragma unroll
  for (unsigned row = 0; row < 2; ++row)
#pragma unroll
    for (unsigned piece = 0; piece < 2; ++piece) {
      packet<half> together;
      for (unsigned i = 0; i < 8; ++i) together.values[i] = from_float<half>(c[4 * piece + i / 2][2 * row + i % 2]);
      store_packet(to + right_operand_at(2 * strip + row, piece, at.lane), together);
    }
}
__device__ inline void store_result(float* to, unsigned strip, const lane_place& at, const tile_c (&c)[tiles]) {
#pragma unroll
  for (unsigned tile = 0; tile < tiles; ++tile) store_floats(to + result_at(strip, tile, at.lane), c[tile]);
}

/// c += a times `count` tiles of a right operand, of which the first has the number `first`.
template <unsigned count>
__device__ void multiply_right(tile_c (&c)[count], const operand_rows& a, const half* right, unsigned first,
                               unsigned lane) {
#pragma unroll
  for (unsigned piece = 0; piece < 2; ++piece) {
    packet<half> together[count];
    for (unsigned n = 0; n < count; ++n) together[n] = load_packet(right + right_operand_at(first + n, piece, lane));
#pragma unroll
    for (unsigned tile = 0; tile < tiles / 2; ++tile)
#pragma unroll
      for (unsigned n = 0; n < count; ++n) {
        const tile_b b = {to_float(together[n].values[2 * tile]), to_float(together[n].values[2 * tile + 1])};
        multiply_tiles(c[n], a[tiles / 2 * piece + tile], b);
      }
  }
}

}  // namespace skein::kernels::gpu
