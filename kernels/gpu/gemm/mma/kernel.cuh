// The GEMM on the tensor cores of sm_75 and newer, by mma.sync. Weights are on the 16-row side of the instruction, the
// rows of the batch on the other, so that one row uses an eighth of the instruction and not a sixteenth.
//
// Second products (`turn`) are the last blocks of a launch of up to 64 rows: they load their weights and then wait for
// the first ones, which saves a launch.
//
// A block has a tile of outputs by rows. Its threads copy stages of weights and inputs, 64 inputs deep, to a ring in
// shared memory (cp.async), from which ldmatrix reads them without bank conflicts, and
// multiply the stages that have arrived. Weights do not depend on the preceding kernel: with PDL the first ring of them
// is requested before that kernel has ended.
//
// Floor: decode reads every weight once, so time >= bytes of weights / bandwidth, then 2 * rows * weights / FLOP rate.
//
// Up to 64 rows: tiles of 64 outputs by 8, 16, 32 or 64 rows in rings of 48 KB, so that two blocks of any card (one on
// sm_75) have about 70 KB of weights in flight; bandwidth times latency is 20 KB for an SM of an H100 and 6 KB for one
// of an RTX 4090. Without PDL, the block of an SM that gets only one, of up to 32 rows, has a ring of up to 72 KB. A
// matrix is cut into enough segments (split-K) to give every SM two blocks. With more rows, tiles of 128 outputs by 128
// or 256 rows. All shapes give the same bits: a sum is one chain of instructions per segment, and the segments are
// added in order; to an output of destination::add_f32 each segment is added by itself, so that a wide tile need not
// keep two sets of sums in registers.
#pragma once
#include <algorithm>
#include <array>
#include <span>

#include "base/check.hpp"
#include "kernels/gpu/gemm/mma/even_share.hpp"
#include "kernels/gpu/gemm/mma/few_rows.cuh"
#include "kernels/gpu/gemm/mma/low_rank.cuh"
#include "kernels/gpu/gemm/mma/shapes.cuh"
#include "kernels/gpu/gemm/mma/store.cuh"
#include "kernels/gpu/gemm/streamed_weights.hpp"

namespace skein::kernels::gpu::mma {

/// Called by one thread of a block of a first product when all have written, and as launch_low_rank says.
__device__ inline void count_done(const placed_gemms& all) { all.done.count_writer(); }

/// Computes a tile and stores it. multiply(work, sums, end_segment) as in multiply.cuh.
template <typename Element, typename t, typename Gemms, typename Multiply>
__device__ void run_tile(const Gemms& all, const work_item& work, Multiply multiply) {
  const place<t> at;
  tile_sums<t> sums = {};
  if constexpr (t::segments == takes::adds_each) {
    multiply(work, sums, [&](std::uint32_t) {
      add_to_output<t>(work, all.rows, at, sums);
      clear<t>(sums);
    });
  } else if constexpr (t::segments == takes::sum_of_all) {
    tile_sums<t> before;
    const std::uint32_t segment_depth = work.gemm->segment_depth * t::stages_of_tile;
    multiply(work, sums, [&](std::uint32_t i) { end_segment<t>(before, sums, i == segment_depth); });
    if (work.count > segment_depth) end_segment<t>(before, sums, false), copy_sums<t>(before, sums);
  } else {
    multiply(work, sums, [](std::uint32_t) {});
  }
  if (all.pdl) pdl_wait();  // already complete; but every thread that writes must call this
  store<Element, t>(work, all.rows, at, sums);
  if (work.gemm->when == turn::first) {
    __syncthreads();
    if (threadIdx.x == 0) count_done(all);
  }
}
/// `weights`: `t`, or the same with quantised weights.
template <typename Element, typename t, typename weights, typename Gemms>
__device__ void run_tile_of(const Gemms& all, const work_item& work) {
  run_tile<Element, t>(all, work, [&](const work_item& of, tile_sums<t>& sums, auto end) {
    multiply<Element, weights>(all, of, sums, end);
  });
}

/// With 16-bit weights.
template <typename Element, typename t, typename Gemms>
__device__ void run_plain_tile_of(const Gemms& all, const work_item& work) {
  if constexpr (has_low_rank_tiles<t>)
    if (work.gemm->tile_outputs < t::outputs) {
      using narrow = low_rank_tiling<t::columns>;
      return run_tile<Element, narrow>(all, work, [&](const work_item& of, tile_sums<narrow>& sums, auto) {
        multiply_low_rank<Element, narrow>(all, of, sums);
      });
    }
  run_tile_of<Element, t, t>(all, work);
}

/// For few rows, where the product may have quantised weights with that kind of code.
template <typename Element, typename t, weight_element code, typename Gemms>
__device__ void run_coded_tile_of(const Gemms& all, const work_item& work) {
  using coded = few_rows_tiling<t, code>;
  if (work.gemm->block_bytes == 0) return run_plain_tile_of<Element, t>(all, work);
  run_tile<Element, coded>(all, work, [&](const work_item& of, tile_sums<coded>& sums, auto) {
    multiply_few_rows<Element, coded>(all, of, sums);
  });
}

template <typename Element, typename t>
__global__ void __launch_bounds__(t::threads) matmul_mma_kernel(const __grid_constant__ placed_gemms all) {
#if defined(SKEIN_GPU_EMULATOR) || __CUDA_ARCH__ >= 750
  run_plain_tile_of<Element, t>(all, find_work<t>(all, blockIdx.x));
#endif
}

/// The weights of some products are quantised, all with one kind of code. With tiles of many rows, of all products.
template <typename Element, typename t, weight_element code>
__global__ void __launch_bounds__(t::threads) matmul_coded_kernel(const __grid_constant__ placed_gemms all) {
#if defined(SKEIN_GPU_EMULATOR) || __CUDA_ARCH__ >= 750
  const work_item work = find_work<t>(all, blockIdx.x);
  if constexpr (t::columns <= few_columns && t::segments == takes::one) {
    run_coded_tile_of<Element, t, code>(all, work);
  } else {
    run_tile_of<Element, t, coded_tiling<t, code>>(all, work);
  }
#endif
}

inline bool fits_packets(const gemm& p) {
  const std::size_t bytes = is_f32(p.how.to) ? 4 : 2;
  return reinterpret_cast<std::uintptr_t>(p.out) % 16 == 0 && p.out_stride * bytes % 16 == 0 &&
         p.part_stride * bytes % 16 == 0;
}

/// Cuts the products of a launch into tiles. `ringed_outputs`: for ringed_rows.cuh, the outputs of a block of quantised
/// products; otherwise 0.
template <typename t>
void place_gemms(const tile_launch& what, placed_gemms& all, std::uint32_t ringed_outputs = 0) {
  const auto& [in, type, gemms, rows, profile, work, beside, first_blocks] = what;
  all.takes_all = work != takes::one;
  all.rows = rows, all.row_tiles = (rows + t::columns - 1) / t::columns;
  all.pdl = profile.has_pdl, all.pdl_early_launch = gemms.front().pdl_early_launch;
  // Behind short products the second ones would end last; before long ones they would take the places of those.
  const bool second_early = ringed_outputs > 0 && gemms.front().matrix.inputs < 4096;
  const auto place = [&](const gemm& p) {
    placed_gemm& to = all.of[all.count++];
    const device_matrix& m = p.matrix;
    to.weights = static_cast<const std::byte*>(m.data), to.inputs = static_cast<const std::byte*>(p.in);
    to.weight_stride = std::size_t{padded(m.inputs)} * 2;
    if (m.format.quantised()) {
      to.block_bytes = block_bytes(m.format);
      to.weight_stride = std::size_t{padded(m.inputs)} / block_inputs * to.block_bytes;
      to.scale_step = scale_groups_of_block(m.format) == 1 ? 0 : scale_bytes_of_group;
    }
    to.in_stride = std::size_t{p.in_stride} * 2;
    to.out = p.out, to.part_stride = p.part_stride;
    to.weight_rows = padded(m.outputs), to.outputs = m.outputs, to.out_stride = p.out_stride;
    to.depth = padded(m.inputs) / matrix_tile, to.segment_depth = segment_tiles(p);
    to.tile_outputs = t::outputs;
    if (m.format.quantised()) {
      if (ringed_outputs > 0)
        to.tile_outputs = ringed_outputs;
      else if (is_turned(m.format.element, t::columns))
        to.tile_outputs = turned_outputs;
    } else if (has_low_rank_tiles<t> && p.when == turn::first && p.segments == 1 && m.outputs < m.inputs) {
      to.tile_outputs = low_rank_outputs;
    }
    to.tiles = (m.outputs + to.tile_outputs - 1) / to.tile_outputs;
    to.first_item = all.items;
    to.how = p.how, to.when = has_turns(gemms) ? p.when : turn::any, to.in_packets = fits_packets(p);
    if (to.when == turn::first) all.done.writers += to.tiles;
    if (to.when == turn::second) all.done.at = p.done, all.done.readers += to.tiles;
    all.items += to.tiles * (all.takes_all ? 1 : p.segments);
  };
  for (const gemm& p : gemms)
    if (!second_early || p.when == turn::first) place(p);
  for (const turn when : {turn::second, turn::any})
    for (const gemm& p : gemms)
      if (second_early && p.when == when) place(p);
  all.first_beside = first_blocks > 0;
  if (all.first_beside) all.done.writers = 1 + first_blocks, all.done.readers = all.items;
}

/// Dynamic shared memory of a launch.
template <typename t>
std::size_t shared_bytes_for(const placed_gemms& all) {
  constexpr bool few = t::columns <= few_columns && t::segments == takes::one;
  std::size_t bytes = 0;
  for (const placed_gemm& p : std::span(all.of).first(all.count)) {
    std::size_t own = t::shared_bytes;
    if constexpr (few)
      if (p.block_bytes > 0) own = input_chunk_bytes<t>;
    if constexpr (has_low_rank_tiles<t>)
      if (p.tile_outputs == low_rank_outputs) own = low_rank_tiling<t::columns>::shared_bytes;
    bytes = std::max(bytes, own);
  }
  return bytes;
}

/// Launches one of two kernels, of fp16 and bf16.
template <typename t>
result<void> launch_tiles(const tile_launch& what, void (*of_halves)(placed_gemms), void (*of_bf16)(placed_gemms)) {
  placed_gemms all{};
  place_gemms<t>(what, all);
  const auto kernel = what.type == element::f16 ? of_halves : of_bf16;
  const std::size_t shared_bytes =
      share_of_sm(shared_bytes_for<t>(all), all.items, what.rows <= few_columns, what.profile);
  if (const auto r = allow_shared_bytes(kernel, shared_bytes); !r) return r;
  launch_shape shape{"matmul", {all.items * all.row_tiles}, {t::threads}, shared_bytes, what.in, true};
  shape.streamed = streamed_weights(what.gemms, what.rows, what.profile);
  return launch(shape, kernel, all);
}

}  // namespace skein::kernels::gpu::mma
