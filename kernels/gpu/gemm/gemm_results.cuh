#pragma once
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/block_pair.cuh"
#include "kernels/gpu/device/convert.cuh"
#include "kernels/gpu/device/mma.cuh"
#include "kernels/gpu/device/tile_copy.cuh"
#include "kernels/gpu/device/wgmma.cuh"
#include "kernels/gpu/gemm/gemm_tiles.cuh"
#include "kernels/gpu/gemm/tensor_map.hpp"

/// The epilogue of a tile: see `epilogue`. CUDA and the emulator.
namespace skein::kernels::gpu {

__device__ inline void wait_for_warpgroup() { barrier_of<warpgroup>(1 + threadIdx.x / warpgroup); }
/// One thread of a warpgroup issues the TMA operations.
__device__ inline bool speaks() { return threadIdx.x % warpgroup == 0; }

/// Stores the sums directly to global memory, eight neighbouring outputs at a time.
template <typename t, typename Put>
__device__ void put_each(const work_item& work, std::uint32_t rows, const float (&sums)[t::columns / 2], Put put) {
  const std::uint32_t first_output = work.output + threadIdx.x / warpgroup * group_outputs;
  for_each_sum<t::columns>(sums, [&](unsigned output, unsigned column, float sum) {
    output += first_output;
    const std::uint32_t row = work.row + column;
    if (output < work.gemm->outputs && row < rows) put(std::size_t{row} * work.gemm->out_stride + output, sum);
  });
}

/// Where a byte of a piece is: in lines of 128 bytes, whose 16-byte pieces are XORed with the line modulo eight,
/// as TMA expects.
__device__ inline std::byte* in_piece(std::byte* piece, unsigned line, unsigned byte) {
  return piece + line * row_bytes + ((byte / 16 ^ line % 8) * 16) + byte % 16;
}

/// Stores a piece of `columns` rows of the batch as TMA would, for outputs that it cannot write. A loop and not a copy
/// of the code for each sum: those would be half of the kernel.
template <typename Stored, int columns>
__device__ void store_piece(const work_item& work, std::uint32_t rows, std::byte* piece, std::uint32_t first_output,
                            std::uint32_t first_row) {
  constexpr unsigned width = row_bytes / sizeof(Stored);  // outputs in a line
  const placed_gemm& p = *work.gemm;
  Stored* const out = static_cast<Stored*>(p.out) + work.segment * p.part_stride;
#pragma unroll 1
  for (unsigned i = threadIdx.x % warpgroup; i < columns * group_outputs; i += warpgroup) {
    const unsigned output = i % group_outputs, column = i / group_outputs;
    if (first_output + output >= p.outputs || first_row + column >= rows) continue;
    const Stored value = *reinterpret_cast<const Stored*>(
        in_piece(piece, output / width * columns + column, output % width * sizeof(Stored)));
    Stored* const to = out + std::size_t{first_row + column} * p.out_stride + first_output + output;
    if constexpr (std::is_same_v<Stored, float>)
      if (p.how.to == destination::add_f32) {
        atomicAdd(to, value);  // added by the L2 cache; here each addition would wait for a load
        continue;
      }
    *to = value;
  }
}

/// A warpgroup stores a tile piece by piece: it writes a piece to shared memory, in the layout of in_piece, from which
/// TMA sends it while the next ones are written. The last pieces are sent during the next tile. Without TMA, the
/// warpgroup stores the piece itself.
template <typename Stored, typename t, int columns_each, typename Lay>
__device__ void send_pieces(const work_item& work, std::uint32_t rows, const CUtensorMap& out, std::byte* result,
                            Lay lay) {
  constexpr std::uint32_t width = group_outputs * columns_each / t::piece_columns;  // outputs in a row of 128 bytes
  const unsigned group = threadIdx.x / warpgroup;
  const std::uint32_t first_output = work.output + group * group_outputs;
  const bool is_sent = work.gemm->is_sent, adds = work.gemm->how.to == destination::add_f32;
  result += group * (t::result_bytes / t::groups);
#pragma unroll
  for (int first = 0; first < t::columns; first += columns_each) {
    const int number = first / columns_each;
    std::byte* const piece = result + number % t::pieces * t::piece_bytes;
    if (number == 0 || number >= t::pieces) {  // otherwise its space is known to be free
      if (speaks()) number == 0 ? wait_until_sent<0>() : wait_until_sent<t::pieces - 1>();
      wait_for_warpgroup();
    }
    lay(piece, first);
    publish_writes();
    wait_for_warpgroup();
    if (!is_sent) store_piece<Stored, columns_each>(work, rows, piece, first_output, work.row + first);
    if (!is_sent || !speaks()) continue;
#pragma unroll
    for (std::uint32_t o = 0; o < group_outputs; o += width)
      send_tile(piece + o * columns_each * row_bytes / width, out, first_output + o, work.row + first, work.segment,
                adds);
    end_of_sending();
  }
}

template <typename Element, typename t>
__device__ void send_elements(const work_item& work, std::uint32_t rows, const CUtensorMap& out, std::byte* result,
                              const float (&sums)[t::columns / 2]) {
  const unsigned warp = threadIdx.x % warpgroup / 32, lane = threadIdx.x % 32;
  send_pieces<Element, t, t::piece_columns>(work, rows, out, result, [&](std::byte* piece, int first) {
    // Four 8 x 8 matrices, transposed by the store: outputs 0-7 and 8-15 of the warp, for eight rows and the next
    // eight.
    const unsigned row = lane % 8 + lane / 16 * 8;
    std::byte* const to = in_piece(piece, row, (warp * 2 + lane / 8 % 2) * 16);
#pragma unroll
    for (int column = 0; column < t::piece_columns; column += 16) {
      const int j = (first + column) / 2;
      store_turned(to, column * row_bytes,
                   {rounded_pair<Element>(sums[j], sums[j + 1]), rounded_pair<Element>(sums[j + 2], sums[j + 3]),
                    rounded_pair<Element>(sums[j + 4], sums[j + 5]), rounded_pair<Element>(sums[j + 6], sums[j + 7])});
    }
  });
}

/// Sends two boxes of 32 outputs side by side.
template <typename t>
__device__ void send_floats(const work_item& work, std::uint32_t rows, const CUtensorMap& out, std::byte* result,
                            const float (&sums)[t::columns / 2]) {
  constexpr int columns_each = t::piece_columns / 2;
  const unsigned warp = threadIdx.x % warpgroup / 32, lane = threadIdx.x % 32;
  send_pieces<float, t, columns_each>(work, rows, out, result, [&](std::byte* piece, int first) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned output = warp % 2 * 16 + lane / 4 + i / 2 * 8, row = lane % 4 * 2 + i % 2;
      std::byte* const to = piece + warp / 2 * columns_each * row_bytes + row * row_bytes + (output / 4 ^ row) * 16;
#pragma unroll
      for (int column = 0; column < columns_each; column += 8)
        reinterpret_cast<float*>(to + column * row_bytes)[output % 4] = sums[(first + column) / 2 + i];
    }
  });
}

template <typename Element, typename t>
__device__ void store_elements(const work_item& work, std::uint32_t rows, const CUtensorMap& out, std::byte* result,
                               const float (&sums)[t::columns / 2]) {
  if constexpr (t::in_turn)
    send_elements<Element, t>(work, rows, out, result, sums);
  else
    put_each<t>(work, rows, sums, [&](std::size_t at, float sum) {
      static_cast<Element*>(work.gemm->out)[at] = from_float<Element>(sum);
    });
}

template <typename t>
__device__ void store_floats(const work_item& work, std::uint32_t rows, const CUtensorMap& out, std::byte* result,
                             const float (&sums)[t::columns / 2]) {
  if constexpr (t::in_turn) {
    send_floats<t>(work, rows, out, result, sums);
  } else {
    auto* const to = static_cast<float*>(work.gemm->out) + work.segment * work.gemm->part_stride;
    if (work.gemm->how.to == destination::add_f32)  // added by the L2 cache; here each addition would wait for a load
      put_each<t>(work, rows, sums, [&](std::size_t at, float sum) { atomicAdd(to + at, sum); });
    else
      put_each<t>(work, rows, sums, [&](std::size_t at, float sum) { to[at] = sum; });
  }
}

/// Stores, as floats, the half of a pair's tile that add_up_in_pair left at the beginning of `sums`.
template <typename t>
__device__ void store_half(work_item work, std::uint32_t rows, const CUtensorMap& out, std::byte* result,
                           const float (&sums)[t::columns / 2]) {
  using half = half_tile<t>;
  work.row += rank_in_pair() * half::columns;
  store_floats<half>(work, rows, out, result, reinterpret_cast<const float(&)[half::columns / 2]>(sums));
}

template <typename Element, typename t>
__device__ void store(const work_item& work, std::uint32_t rows, const CUtensorMap& out, std::byte* result,
                      const float (&sums)[t::columns / 2]) {
  if (is_f32(work.gemm->how.to))
    store_floats<t>(work, rows, out, result, sums);
  else if (work.gemm->how.to == destination::f16)
    store_elements<half, t>(work, rows, out, result, sums);
  else
    store_elements<Element, t>(work, rows, out, result, sums);
}

/// Whether TMA, which needs units of 16 bytes, can write the output of a product.
inline bool can_be_sent(const gemm& p) {
  const std::size_t bytes = is_f32(p.how.to) ? 4 : 2;
  return reinterpret_cast<std::uintptr_t>(p.out) % 16 == 0 && p.out_stride * bytes % 16 == 0 &&
         p.part_stride * bytes % 16 == 0;
}

/// The outputs as a tensor map: boxes of 128 bytes of outputs by a piece's rows.
template <typename t>
CUtensorMap describe_out(element type, const gemm& p, std::uint32_t rows) {
  const std::uint32_t parts = p.how.to == destination::parts ? p.segments : 1;
  const std::size_t part_stride = parts > 1 ? p.part_stride : std::size_t{rows} * p.out_stride;
  const element stored = output_type(p.how, type);
  const std::uint32_t box_rows = is_f32(p.how.to) ? t::piece_columns / 2 : t::piece_columns;
  return make_map(stored, p.out,
                  {3,
                   {p.matrix.outputs, rows, parts},
                   {p.out_stride, part_stride},
                   {row_bytes / static_cast<std::uint32_t>(element_bytes(stored)), box_rows, 1}});
}

}  // namespace skein::kernels::gpu
