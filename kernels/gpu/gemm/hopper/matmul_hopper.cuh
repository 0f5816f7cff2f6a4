#pragma once
// The GEMM on the tensor cores of sm_90a for more rows than matmul_few_rows takes. Weights are on the 64-row side of
// the instruction, the rows of the batch on the other.
//
// A block has a producer and two warpgroups of consumers. One thread of the producer fills a ring of stages by TMA,
// each with a tile of weights and one of inputs, 64 inputs deep. The consumers multiply the stages that have arrived
// and release them. Weights do not depend on the preceding kernel, so the first ring of them is requested before that
// kernel has ended. PDL: a kernel lets its successor start when it has requested its last tiles, or at once if the
// successor reads nothing before its wait that is still being written (pdl_early_launch). Low-rank pairs can run beside
// other products (launch_role).
//
// Floor: decode reads every weight once, so time >= bytes of weights / bandwidth up to about 180 rows, then 2 * rows *
// weights / FLOP rate.
//
// With up to 64 rows, each block computes 128 outputs of one segment, and a matrix is cut into enough segments
// (split-K) to give every SM a block. With more rows there are as many blocks as SMs. Each takes tiles of 128 outputs
// by 128 to 256 rows in turn, and adds up the segments itself if the rows alone give enough tiles. If there are at most
// half as many wide tiles as SMs, two blocks share one and exchange the sums of their segments (split_k_sums.cuh). All
// variants give the same bits. With more than 64 rows, TMA stores the results (gemm_results.cuh).
//
// Wide tiles need less shared memory bandwidth: for 64 inputs, a tile of 128 by 128 accesses shared memory for 640
// cycles and multiplies for 512, one of 128 by 256 for 1024 and 1024.
#include <algorithm>

#include "base/check.hpp"
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/device/tile_copy.cuh"
#include "kernels/gpu/device/wgmma.cuh"
#include "kernels/gpu/gemm/epilogue.cuh"
#include "kernels/gpu/gemm/gemm_results.cuh"
#include "kernels/gpu/gemm/gemm_tiles.cuh"
#include "kernels/gpu/gemm/scaled_sums.cuh"
#include "kernels/gpu/gemm/split_k_sums.cuh"
#include "kernels/gpu/gemm/tensor_map.hpp"

namespace skein::kernels::gpu {

namespace {

struct block_memory {
  std::byte *stages, *result;
  phase_barrier *full, *empty;
};

template <typename t>
__device__ block_memory lay_out_memory() {
  std::byte* const memory_of_launch = dynamic_shared<std::byte>();
  std::byte* const stages = memory_of_launch + (1024 - shared_address(memory_of_launch) % 1024) % 1024;
  std::byte* const result = stages + t::stages * t::stage_bytes;
  auto* const barriers = reinterpret_cast<phase_barrier*>(result + t::result_bytes);
  return {stages, result, barriers, barriers + t::stages};
}

template <typename t>
__device__ void produce(const placed_gemms& all, const block_memory& memory) {
  const std::uint32_t tiles = all.items * all.row_tiles;
  // Neighbouring row tiles read the same weights at about the same time.
  const auto copy_weights = [&](const work_item& work, std::uint32_t i, unsigned stage) {
    memory.full[stage].arrive_expecting(t::stage_bytes);
    copy_tile(memory.stages + stage * t::stage_bytes, work.gemm->weights, (work.first + i) * matrix_tile, work.output,
              memory.full[stage], cache_use::streamed);
  };
  const auto copy_inputs = [&](const work_item& work, std::uint32_t i, unsigned stage) {
#pragma unroll
    for (std::uint32_t row = 0; row < t::columns; row += t::columns_at_once)
      copy_tile(memory.stages + stage * t::stage_bytes + t::weight_bytes + row * row_bytes, work.gemm->inputs,
                (work.first + i) * matrix_tile, work.row + row, memory.full[stage], cache_use::shared);
  };
  work_item work = find_work<t>(all, blockIdx.x / t::blocks_each);
  const std::uint32_t early = min(work.count, static_cast<std::uint32_t>(t::stages));
  for (std::uint32_t i = 0; i < early; ++i) copy_weights(work, i, i);
  if (all.pdl_early_launch || all.role == launch_role::middle) pdl_launch_dependents();
  if (all.role == launch_role::second)
    all.done.await_writers(), all.done.count_reader();
  else if (all.role != launch_role::middle)
    pdl_wait();
  if (all.role == launch_role::first) pdl_launch_dependents();
  for (std::uint32_t i = 0; i < early; ++i) copy_inputs(work, i, i);
  stage_turn<t> turn;
  std::uint32_t i = early;
  if (early == t::stages)
    turn.phase = 1;
  else
    turn.stage = early;
  for (std::uint32_t tile = blockIdx.x / t::blocks_each;;) {
    for (; i < work.count; ++i, turn.next()) {
      if (turn.phase > 0) memory.empty[turn.stage].wait(turn.phase - 1);
      copy_weights(work, i, turn.stage);
      copy_inputs(work, i, turn.stage);
    }
    tile += gridDim.x / t::blocks_each;
    if (!t::in_turn || tile >= tiles) break;
    work = find_work<t>(all, tile);
    i = 0;
  }
  pdl_launch_dependents();
}

/// sums = (keep_sums ? sums : 0) + 32 bytes of inputs of a tile; asynchronous.
template <typename Operand, typename t>
__device__ void begin_gemms(float (&sums)[t::columns / 2], descriptor weights, descriptor inputs, int keep_sums) {
  if constexpr (t::columns == t::columns_at_once) {
    wgmma<Operand, t::columns>(sums, weights, inputs, keep_sums);
  } else {
    constexpr int half_columns = t::columns_at_once;
    wgmma<Operand, half_columns>(reinterpret_cast<float(&)[half_columns / 2]>(sums[0]), weights, inputs, keep_sums);
    wgmma<Operand, half_columns>(reinterpret_cast<float(&)[half_columns / 2]>(sums[half_columns / 2]), weights,
                                 inputs + half_columns * row_bytes / 16, keep_sums);
  }
}

/// sums = sum over the tile's inputs, segment by segment; for a pair, the result of add_up_in_pair.
template <typename Operand, typename t>
__device__ void multiply(const work_item& work, const block_memory& memory, stage_turn<t>& turn,
                         float (&sums)[t::columns / 2]) {
  [[maybe_unused]] sums_before<t> before_these(memory.result);
  const unsigned group = threadIdx.x / warpgroup;
  const std::uint32_t segment_depth = work.gemm->segment_depth;
  std::uint32_t in_segment = 0;
  unsigned before = 0;
  for (std::uint32_t i = 0; i < work.count; ++i, turn.next()) {
    if constexpr (t::adds_up)
      if (in_segment == segment_depth) {
        wgmma_wait<0>();
        before_these.add(sums, i == segment_depth);
        in_segment = 0;
      }
    memory.full[turn.stage].wait(turn.phase);
    const std::byte* const tiles = memory.stages + turn.stage * t::stage_bytes;
    const descriptor weights = tile_descriptor(tiles + group * group_outputs * row_bytes);
    const descriptor inputs = tile_descriptor(tiles + t::weight_bytes);
    wgmma_begin();
#pragma unroll
    for (int k = 0; k < 4; ++k) begin_gemms<Operand, t>(sums, weights + 2 * k, inputs + 2 * k, k > 0 || in_segment > 0);
    wgmma_commit();
    wgmma_wait<1>();  // the previous tile has been consumed
    if (i > 0 && threadIdx.x % 32 == 0) memory.empty[before].arrive();
    before = turn.stage;
    ++in_segment;
  }
  wgmma_wait<0>();
  if (threadIdx.x % 32 == 0) memory.empty[before].arrive();
  if constexpr (t::in_pairs)
    add_up_in_pair<t>(before_these, memory.stages, sums);
  else if constexpr (t::adds_up)
    if (work.count > segment_depth) before_these.add_to(sums);
}

/// A tile's products and its epilogue. Operands of e4m3 get their scales.
template <typename Operand, typename Result, typename t>
__device__ void run_tile(const placed_gemms& all, const work_item& work, const CUtensorMap& out,
                         const block_memory& memory, stage_turn<t>& turn) {
  float sums[t::columns / 2];
  multiply<Operand, t>(work, memory, turn, sums);
  // Usually already complete; but every thread that reads or writes must call this.
  if (all.role != launch_role::second) pdl_wait();
  if constexpr (std::is_same_v<Operand, e4m3>) {
    constexpr int columns = t::in_pairs ? half_tile<t>::columns : t::columns;
    const std::uint32_t first_row = work.row + (t::in_pairs ? rank_in_pair() * columns : 0);
    scale_sums<columns>(work.gemm->scales, work.output + threadIdx.x / warpgroup * group_outputs, first_row, sums);
  }
  if constexpr (t::in_pairs) {
    store_half<t>(work, all.rows, out, memory.result, sums);
  } else {
    apply_activation_fast(work.gemm->how.function, sums);
    store<Result, t>(work, all.rows, out, memory.result, sums);
  }
}

template <typename Operand, typename t>
__global__ void __launch_bounds__(t::threads, 1)
    matmul_hopper_kernel(const __grid_constant__ placed_gemms all, const __grid_constant__ ways_out<t> out) {
#if defined(SKEIN_HAS_WGMMA)
  const block_memory memory = lay_out_memory<t>();
  if (threadIdx.x == t::consumers) {
    for (int stage = 0; stage < t::stages; ++stage) memory.full[stage].init(1), memory.empty[stage].init(4 * t::groups);
    publish_barriers();
  }
  __syncthreads();
  if (threadIdx.x >= t::consumers) {
    if constexpr (t::moves_registers) keep_registers<24>();
    if (threadIdx.x == t::consumers) produce<t>(all, memory);
    return;
  }
  if constexpr (t::moves_registers) take_registers<240>();
  const std::uint32_t tiles = all.items * all.row_tiles;
  stage_turn<t> turn;
  for (std::uint32_t tile = blockIdx.x / t::blocks_each; tile < tiles; tile += gridDim.x / t::blocks_each) {
    const work_item work = find_work<t>(all, tile);
    const CUtensorMap& to = out.of[t::in_turn ? work.which : 0];
    using result = result_of<Operand>;
    // Whole tiles apart: sums that two ways have in common would make ptxas serialise the instructions.
    if constexpr (!operand_traits<Operand>::are_mixed)
      run_tile<Operand, result, t>(all, work, to, memory, turn);
    else if (work.gemm->scales.of_outputs)
      run_tile<e4m3, result, t>(all, work, to, memory, turn);
    else
      run_tile<result, result, t>(all, work, to, memory, turn);
  }
  if (t::in_turn && speaks()) wait_until_written();
  if (all.role == launch_role::first) {
    barrier_of<t::consumers>(1 + t::groups);  // those before it are of warpgroups
    if (threadIdx.x == 0) all.done.count_writer();
  }
  // A launch has to end after those before it (docs/gpu.md, "Programmatic dependent launch"); one block is enough.
  if (all.role == launch_role::second && blockIdx.x == gridDim.x - 1) pdl_wait();
#endif
}

/// A matrix of `depth` tiles of 128 bytes of inputs by `rows` rows as a tensor map, with boxes of such a tile by
/// `box_rows` rows.
inline CUtensorMap describe_in(element type, const void* data, std::uint32_t depth, std::size_t stride,
                               std::uint32_t rows, std::uint32_t box_rows) {
  return make_map(type, data, {2, {depth * matrix_tile, rows, 1}, {stride, 0}, {matrix_tile, box_rows, 1}});
}

/// `Operand` is the type of operands for each type of results.
template <typename t, template <typename> typename Operand>
result<void> launch_tiles(stream_handle in, element type, std::span<const gemm> gemms, std::uint32_t rows,
                          const launch_place& place) {
  const auto sm_count = count_sms();
  if (!sm_count) return sm_count.error();
  placed_gemms all{};
  all.rows = rows;
  // The launch beside the first one reads the same inputs, without a wait.
  all.pdl_early_launch = gemms.front().pdl_early_launch && place.role != launch_role::first;
  all.role = place.role;
  all.row_tiles = (rows + t::columns - 1) / t::columns;
  ways_out<t> out{};
  for (const gemm& p : gemms) {
    if (t::in_turn && can_be_sent(p))
      all.of[all.count].is_sent = true, out.of[all.count] = describe_out<t>(type, p, rows);
    placed_gemm& to = all.of[all.count++];
    const operands_in_memory of(p);
    to.depth = p.matrix.depth();
    to.segment_depth = segment_tiles(p);
    to.tiles = (p.matrix.outputs + t::outputs - 1) / t::outputs;
    to.weights = describe_in(type, of.weights, to.depth, of.depth, padded(p.matrix.outputs), t::outputs);
    to.inputs = describe_in(type, of.inputs, to.depth, of.stride, rows, t::columns_at_once);
    to.scales = of.scales;
    to.out = p.out, to.part_stride = p.part_stride;
    to.outputs = p.matrix.outputs, to.out_stride = p.out_stride, to.how = p.how;
    to.first_item = all.items;
    all.items += to.tiles * (t::adds_up ? 1 : p.segments);
  }
  const auto start = [&](auto kernel) -> result<void> {
    if (const auto r = allow_shared_bytes(kernel, t::shared_bytes); !r) return r;
    const std::uint32_t tiles = all.items * all.row_tiles;
    // The second launch of three has a block for each tile, so that each SM gets one as soon as it has space.
    const bool in_turn = t::in_turn && !t::in_pairs && place.role != launch_role::second;
    const std::uint32_t blocks = in_turn ? std::min(tiles, *sm_count - place.sms_kept) : tiles * t::blocks_each;
    all.done = {place.done, place.writers, blocks};
    return launch({"matmul", {blocks}, {t::threads}, t::shared_bytes, in, true, t::blocks_each}, kernel, all, out);
  };
  return type == element::f16 ? start(matmul_hopper_kernel<Operand<half>, t>)
                              : start(matmul_hopper_kernel<Operand<bf16>, t>);
}

/// The rows of the tiles of pairs, which cut 960 rows into four.
constexpr std::uint32_t pair_columns = 240;

template <takes work, template <typename> typename Operand>
result<void> launch_columns(std::uint32_t columns, stream_handle in, element type, std::span<const gemm> gemms,
                            std::uint32_t rows, const launch_place& place) {
  switch (columns) {
    case 128: return launch_tiles<tiling<128, 6, work>, Operand>(in, type, gemms, rows, place);
    case 160: return launch_tiles<tiling<160, 5, work>, Operand>(in, type, gemms, rows, place);
    case 192: return launch_tiles<tiling<192, 4, work>, Operand>(in, type, gemms, rows, place);
    case 240: return launch_tiles<tiling<240, 3, work>, Operand>(in, type, gemms, rows, place);
    case 256: return launch_tiles<tiling<256, 3, work>, Operand>(in, type, gemms, rows, place);
    default: break;
  }
  check(columns == row_tile_max && work == takes::parts);
  if constexpr (work == takes::parts) return launch_tiles<tiling<320, 3, work>, Operand>(in, type, gemms, rows, place);
  return {};
}

/// The widths of tiles: a_part 64; halves pair_columns; the others as in launch_columns.
template <template <typename> typename Operand>
result<void> launch_hopper_tiles(takes work, std::uint32_t columns, stream_handle in, element type,
                                 std::span<const gemm> gemms, std::uint32_t rows, const launch_place& place = {}) {
  switch (work) {
    case takes::a_part: return launch_tiles<tiling<64, 8, takes::a_part>, Operand>(in, type, gemms, rows, place);
    case takes::halves:
      return launch_tiles<tiling<pair_columns, 3, takes::halves>, Operand>(in, type, gemms, rows, place);
    case takes::parts: return launch_columns<takes::parts, Operand>(columns, in, type, gemms, rows, place);
    case takes::added_up_parts:
      return launch_columns<takes::added_up_parts, Operand>(columns, in, type, gemms, rows, place);
  }
  return {};
}

}  // namespace

}  // namespace skein::kernels::gpu
