// The GEMM on the tensor cores of sm_90a for more rows than matmul_few_rows takes. Weights are on the 64-row side of
// the instruction, the rows of the batch on the other.
//
// A block has a producer and two warpgroups of consumers. One thread of the producer fills a ring of stages by TMA,
// each with a tile of weights and one of inputs, 64 inputs deep. The consumers multiply the stages that have arrived
// and release them. Weights do not depend on the preceding kernel, so the first ring of them is requested before that
// kernel has ended. PDL: a kernel lets its successor start when it has requested its last tiles, or at once if the
// successor reads nothing before its wait that is still being written (pdl_early_launch).
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
#include <array>

#include "base/check.hpp"
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/device/tile_copy.cuh"
#include "kernels/gpu/device/wgmma.cuh"
#include "kernels/gpu/gemm/epilogue.cuh"
#include "kernels/gpu/gemm/gemm_results.cuh"
#include "kernels/gpu/gemm/gemm_tiles.cuh"
#include "kernels/gpu/gemm/matmul_few_rows.hpp"
#include "kernels/gpu/gemm/matmul_hopper.hpp"
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
  if (all.pdl_early_launch) pdl_launch_dependents();
  pdl_wait();
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

/// sums = (keep_sums ? sums : 0) + 16 inputs of a tile; asynchronous.
template <typename Element, typename t>
__device__ void begin_gemms(float (&sums)[t::columns / 2], descriptor weights, descriptor inputs, int keep_sums) {
  if constexpr (t::columns == t::columns_at_once) {
    wgmma<Element, t::columns>(sums, weights, inputs, keep_sums);
  } else {
    constexpr int half_columns = t::columns_at_once;
    wgmma<Element, half_columns>(reinterpret_cast<float(&)[half_columns / 2]>(sums[0]), weights, inputs, keep_sums);
    wgmma<Element, half_columns>(reinterpret_cast<float(&)[half_columns / 2]>(sums[half_columns / 2]), weights,
                                 inputs + half_columns * row_bytes / 16, keep_sums);
  }
}

/// sums = sum over the tile's inputs, segment by segment; for a pair, the result of add_up_in_pair.
template <typename Element, typename t>
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
    for (int k = 0; k < 4; ++k) begin_gemms<Element, t>(sums, weights + 2 * k, inputs + 2 * k, k > 0 || in_segment > 0);
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

template <typename Element, typename t>
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
    float sums[t::columns / 2];
    multiply<Element, t>(work, memory, turn, sums);
    pdl_wait();  // already complete; but every thread that reads or writes must call this
    if constexpr (t::in_pairs) {
      store_half<t>(work, all.rows, out.of[work.which], memory.result, sums);
    } else {
      apply_activation_fast(work.gemm->how.function, sums);
      store<Element, t>(work, all.rows, out.of[t::in_turn ? work.which : 0], memory.result, sums);
    }
  }
  if (t::in_turn && speaks()) wait_until_written();
#endif
}

/// A matrix of `depth` tiles of 64 inputs by `rows` rows as a tensor map, with boxes of 64 inputs by `box_rows` rows.
CUtensorMap describe_in(element type, const void* data, std::uint32_t depth, std::size_t stride, std::uint32_t rows,
                        std::uint32_t box_rows) {
  return make_map(type, data, {2, {depth * matrix_tile, rows, 1}, {stride, 0}, {matrix_tile, box_rows, 1}});
}

template <typename t>
result<void> launch_tiles(stream_handle in, element type, std::span<const gemm> gemms, std::uint32_t rows) {
  const auto sm_count = count_sms();
  if (!sm_count) return sm_count.error();
  placed_gemms all{};
  all.rows = rows;
  all.pdl_early_launch = gemms.front().pdl_early_launch;
  all.row_tiles = (rows + t::columns - 1) / t::columns;
  ways_out<t> out{};
  for (const gemm& p : gemms) {
    if (t::in_turn && can_be_sent(p))
      all.of[all.count].is_sent = true, out.of[all.count] = describe_out<t>(type, p, rows);
    placed_gemm& to = all.of[all.count++];
    to.depth = padded(p.matrix.inputs) / matrix_tile;
    to.segment_depth = segment_tiles(p);
    to.tiles = (p.matrix.outputs + t::outputs - 1) / t::outputs;
    to.weights =
        describe_in(type, p.matrix.data, to.depth, padded(p.matrix.inputs), padded(p.matrix.outputs), t::outputs);
    to.inputs = describe_in(type, p.in, to.depth, p.in_stride, rows, t::columns_at_once);
    to.out = p.out, to.part_stride = p.part_stride;
    to.outputs = p.matrix.outputs, to.out_stride = p.out_stride, to.how = p.how;
    to.first_item = all.items;
    all.items += to.tiles * (t::adds_up ? 1 : p.segments);
  }
  const auto start = [&](auto kernel) -> result<void> {
    if (const auto r = allow_shared_bytes(kernel, t::shared_bytes); !r) return r;
    const std::uint32_t tiles = all.items * all.row_tiles;
    const std::uint32_t blocks = t::in_turn && !t::in_pairs ? std::min(tiles, *sm_count) : tiles * t::blocks_each;
    return launch({"matmul", {blocks}, {t::threads}, t::shared_bytes, in, true, t::blocks_each}, kernel, all, out);
  };
  return type == element::f16 ? start(matmul_hopper_kernel<half, t>) : start(matmul_hopper_kernel<bf16, t>);
}

constexpr std::uint32_t tile_columns[] = {128, 160, 192, 240, 256, 320};  // the last: not with added segments

/// The time of a tile of 128 outputs for 64 inputs, in units of some 0.21 ns: the FFN key of 7.2B at 4,096 rows took
/// 0.50, 0.59, 0.66, 0.80 and 0.88 us.
constexpr std::uint64_t tile_time(std::uint32_t columns) { return 550 + 14 * columns; }

/// An estimate of the time of a launch, in that unit. `in_parts`: each segment has tiles of its own.
std::uint64_t launch_time(std::span<const gemm> gemms, std::uint32_t rows, bool in_parts, std::uint32_t columns,
                          std::uint32_t sm_count) {
  std::uint64_t tiles = 0, depth_of_all = 0, deepest = 0;
  for (const gemm& p : gemms) {
    const std::uint64_t depth = in_parts ? segment_tiles(p) : padded(p.matrix.inputs) / matrix_tile;
    const std::uint64_t own =
        std::uint64_t{(p.matrix.outputs + 127) / 128} * (in_parts ? p.segments : 1) * ((rows + columns - 1) / columns);
    tiles += own, depth_of_all += own * depth, deepest = std::max(deepest, depth);
  }
  const std::uint64_t in_turn = (tiles + sm_count - 1) / sm_count;
  return std::max(deepest, in_turn * depth_of_all / tiles) * tile_time(columns);
}

struct width_choice {
  std::uint32_t columns;
  std::uint64_t time;  ///< of the launch
};
width_choice fastest_width(std::span<const gemm> gemms, std::uint32_t rows, bool in_parts, std::uint32_t sm_count) {
  width_choice best{};
  for (const std::uint32_t columns : std::span(tile_columns).first(in_parts ? 6 : 5)) {
    const std::uint64_t time = launch_time(gemms, rows, in_parts, columns, sm_count);
    if (best.columns == 0 || time < best.time) best = {columns, time};
  }
  return best;
}

/// Of pairs: the rows of their tiles, which cut 960 rows into four; and, in the unit of tile_time, an estimated 4 us to
/// exchange 61 KB one way and 123 KB the other between two SMs and to synchronise twice.
constexpr std::uint32_t pair_columns = 240, exchange_time = 19'000;
constexpr std::uint64_t time_in_pairs(const gemm& p) {
  return padded(p.matrix.inputs) / matrix_tile * tile_time(pair_columns) / 2 + exchange_time;
}
/// Whether pairs of blocks would be faster than single ones, if the epilogue permits them.
bool are_pairs_faster(std::span<const gemm> gemms, std::uint32_t rows, std::uint32_t sm_count) {
  const gemm& p = gemms.front();
  if (gemms.size() != 1 || rows <= 128 || p.segments != 4) return false;
  const std::uint32_t tiles = (p.matrix.outputs + 127) / 128;
  if (2 * tiles * ((rows + pair_columns - 1) / pair_columns) > sm_count) return false;
  return time_in_pairs(p) < fastest_width(gemms, rows, false, sm_count).time;
}

/// The time to write and read 1,000 partial sums, in that unit: some of them stay in the L2 cache.
constexpr std::uint64_t part_time = 9;

template <takes work>
result<void> launch_columns(std::uint32_t columns, stream_handle in, element type, std::span<const gemm> gemms,
                            std::uint32_t rows) {
  switch (columns) {
    case 128: return launch_tiles<tiling<128, 6, work>>(in, type, gemms, rows);
    case 160: return launch_tiles<tiling<160, 5, work>>(in, type, gemms, rows);
    case 192: return launch_tiles<tiling<192, 4, work>>(in, type, gemms, rows);
    case 240: return launch_tiles<tiling<240, 3, work>>(in, type, gemms, rows);
    case 256: return launch_tiles<tiling<256, 3, work>>(in, type, gemms, rows);
    default: break;
  }
  check(columns == 320 && work == takes::parts);
  if constexpr (work == takes::parts) return launch_tiles<tiling<320, 3, work>>(in, type, gemms, rows);
  return {};
}

/// Whether second products are done sooner in one launch with the first ones than in their own. The first take some 0.3
/// us for 128 inputs and the second ones 3 us more, so the others of the launch must take longer than both: a tick of
/// 7.2B with 1, 8 and 32 rows is 2.5, 2.0 and 1.6 % shorter, one of 1.5B 5 to 10 % longer (docs/decisions, 58). With
/// more rows, in tiles, it gained nothing.
constexpr bool is_worth_turns(std::span<const gemm> gemms, std::uint32_t rows) {
  return rows <= few_rows_max && gemms.front().matrix.inputs >= 4096;
}

}  // namespace

bool hopper_splits(std::span<const gemm> gemms, std::uint32_t rows) {
  if (rows <= 128 || rows > split_rows_max) return rows <= 128;
  const auto sm_count = count_sms();
  if (!sm_count) return false;
  const auto launch = independent(gemms);
  std::uint64_t in_parts = fastest_width(launch, rows, true, *sm_count).time;
  for (const gemm& p : launch)
    if (p.segments > 1) in_parts += std::uint64_t{p.segments} * p.matrix.outputs * rows * part_time / 1000;
  // The destination may be one that pairs do not have; it is not compared, so that it does not affect the answer.
  const std::uint64_t whole = are_pairs_faster(launch, rows, *sm_count)
                                  ? time_in_pairs(launch.front())
                                  : fastest_width(launch, rows, false, *sm_count).time;
  return in_parts < whole;
}

bool hopper_pairs(std::span<const gemm> gemms, std::uint32_t rows, std::uint32_t sm_count) {
  const epilogue& how = gemms.front().how;
  return (how == epilogue{.to = destination::add_f32} || how == epilogue{.to = destination::f32}) &&
         are_pairs_faster(gemms, rows, sm_count);
}

result<void> matmul_hopper(stream_handle in, element type, std::span<const gemm> gemms, const std::uint32_t*,
                           std::uint32_t rows_room) {
  check_gemms(type, gemms);
  check(type != element::f32);
  check(std::ranges::none_of(gemms, is_quantised));
  if (has_turns(gemms) && !is_worth_turns(gemms, rows_room))
    return in_two_launches(gemms, [&](auto some) { return matmul_hopper(in, type, some, nullptr, rows_room); });
  bool segments = false, parts = false;
  for (const gemm& p : independent(gemms)) {
    segments |= p.segments > 1;
    parts |= p.how.to == destination::parts;
  }
  check(!segments || parts == hopper_splits(gemms, rows_room));
  if (rows_room <= few_rows_max) return matmul_few_rows(in, type, gemms, rows_room);
  if (rows_room <= 64) return launch_tiles<tiling<64, 8, takes::a_part>>(in, type, gemms, rows_room);
  if (rows_room <= 128) return launch_columns<takes::parts>(128, in, type, gemms, rows_room);
  const auto sm_count = count_sms();
  if (!sm_count) return sm_count.error();
  if (hopper_pairs(gemms, rows_room, *sm_count))
    return launch_tiles<tiling<pair_columns, 3, takes::halves>>(in, type, gemms, rows_room);
  const bool adds_up = segments && !parts;
  const std::uint32_t fastest = fastest_width(gemms, rows_room, !adds_up, *sm_count).columns;
  return adds_up ? launch_columns<takes::added_up_parts>(fastest, in, type, gemms, rows_room)
                 : launch_columns<takes::parts>(fastest, in, type, gemms, rows_room);
}

bool hopper_is_built() {
#if defined(SKEIN_SM90A) || defined(SKEIN_GPU_EMULATOR)
  return true;
#else
  return false;
#endif
}

}  // namespace skein::kernels::gpu
