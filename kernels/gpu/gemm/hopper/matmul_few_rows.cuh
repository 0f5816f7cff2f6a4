#pragma once
// The GEMM of decode ticks of up to 32 rows, on the tensor cores of sm_90a. Its goal is to read weights once, at memory
// bandwidth. A block sums one segment of 64 outputs, and a matrix is cut into enough segments (split-K) to give every
// SM two blocks. If blocks are few and long, they are narrow, with 32 outputs, and half of each instruction is unused:
// with half the bytes, and stages twice as deep, a block takes half as long.
//
// Weights are on the 64-row side of the instruction and rows of the batch on the narrow side. A thread of one warp
// loads weights by TMA into a ring, 16 KB per stage (a stage costs its producer some 200 ns, so it should not be
// smaller). A thread of another warp loads the inputs, and four warps multiply the stages that have arrived. Rings use
// all available shared memory: in space that they left, the next kernels would begin to fetch weights and compete with
// the loads that are needed now.
//
// Weights do not depend on the preceding kernel and are requested while it still runs, but only one stage of a block at
// a time: loads in flight fill the memory's queues, and the few bytes that the preceding kernels wait for would queue
// behind them (a kernel's first load took 3 us instead of 0.7). When those kernels have ended, enough stages are
// requested to keep the memory busy.
//
// Second products (`turn`) are blocks at the end of the launch, each with 64 outputs of all of them. They load their
// weights and then wait for the first ones, which use as much memory bandwidth as their rings allow. So both are done
// while the large products of the launch still stream.
//
// PDL: a kernel lets its successor start when all kernels before it have ended, or at once if the successor reads
// nothing that they write (gemm::pdl_early_launch).
//
// Floor: bytes of weights / bandwidth.
#include <algorithm>

#include "base/check.hpp"
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/convert.cuh"
#include "kernels/gpu/device/done_count.cuh"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/device/tile_copy.cuh"
#include "kernels/gpu/device/wgmma.cuh"
#include "kernels/gpu/gemm/epilogue.cuh"
#include "kernels/gpu/gemm/hopper/matmul_few_rows.hpp"
#include "kernels/gpu/gemm/scaled_sums.cuh"
#include "kernels/gpu/gemm/tensor_map.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr std::uint32_t instruction_outputs = 64;
constexpr unsigned consumers = 128, threads = consumers + 2 * 32;

/// `outputs`: per block.
template <int columns_, int stages_, std::uint32_t outputs_ = instruction_outputs>
struct tiling {
  static constexpr int columns = columns_, stages = stages_;
  static constexpr std::uint32_t outputs = outputs_;
  static constexpr std::uint32_t stage_tiles = 128 / outputs;  // of 128 bytes of inputs
  static constexpr std::uint32_t weight_tile = outputs * matrix_tile * 2, input_tile = columns * matrix_tile * 2;
  static constexpr std::uint32_t stage_bytes = stage_tiles * (weight_tile + input_tile);
  static constexpr std::size_t shared_bytes =
      1024 + std::size_t{stages} * stage_bytes + input_tile + (3 * std::size_t{stages} + 1) * sizeof(phase_barrier);
  static_assert(2 * (shared_bytes + 1024) <= 228 * 1024);
};

constexpr std::uint32_t narrow_outputs = 32;
/// Narrow blocks, with as much shared memory as the other blocks of a launch.
template <typename t>
using narrow =
    tiling<t::columns, t::stages * t::stage_bytes / tiling<t::columns, 1, narrow_outputs>::stage_bytes, narrow_outputs>;

/// Bytes of weights in flight per SM with wide blocks, and twice that with narrow ones. Measured: enough for full
/// bandwidth.
constexpr std::uint32_t bytes_on_their_way = 48 * 1024;

/// A product as blocks read it.
struct placed_gemm {
  CUtensorMap weights, inputs;
  void* out;
  std::size_t part_stride;
  std::uint32_t outputs, out_stride;
  std::uint32_t depth, item_depth;  // in tiles of 128 bytes: of the product, and of a block's item
  // The stages of a block that may be in flight until the preceding kernels have ended, and after that.
  std::uint32_t stages_before, stages_after;
  std::uint32_t groups;      // of outputs, one per block
  std::uint32_t first_item;  // in the launch; the same for all second products
  epilogue how;
  sum_scales scales;  // of operands of e4m3
  bool is_narrow;
};

/// `has_second`: there are second products (`turn`), at the end.
template <bool has_second>
struct placed_gemms {
  placed_gemm of[has_second ? gemms_max : gemms_max_of_turn];
  std::uint32_t count, rows;
  bool pdl_early_launch;
  std::uint32_t firsts;         // number of first products, at the beginning
  std::uint32_t before_second;  // index of the first of the second products
  done_count done;              // counts the blocks of first products that are done
};

/// The work of a block: 64 or 32 outputs, some tiles of inputs.
struct work_item {
  const placed_gemm* gemm;
  std::uint32_t output, segment, first, end;
};

[[maybe_unused]] __device__ work_item item_of(const placed_gemm& p) {
  const std::uint32_t inside = blockIdx.x - p.first_item, segment = inside / p.groups, first = segment * p.item_depth;
  const std::uint32_t outputs = p.is_narrow ? narrow_outputs : instruction_outputs;
  return {&p, inside % p.groups * outputs, segment, first, min(first + p.item_depth, p.depth)};
}

/// The work of this block: an item of one product, or 64 outputs of all second products. Constructed before a wait,
/// because it takes some time.
template <bool has_second>
class block_work {
 public:
  __device__ explicit block_work(const placed_gemms<has_second>& all) : all_(all) {
    which_ = has_second ? all.before_second : all.count - 1;
    while (blockIdx.x < all.of[which_].first_item) --which_;
    first_ = item_of(all.of[which_]);
  }
  [[nodiscard]] __device__ const work_item& first() const { return first_; }
  [[nodiscard]] __device__ bool is_awaited() const { return has_second && which_ < all_.firsts; }
  [[nodiscard]] __device__ bool is_second() const { return has_second && which_ == all_.before_second; }
  template <typename Visit>
  __device__ void for_each(Visit visit) const {
    visit(first_);
    if (!is_second()) return;
    for (std::uint32_t which = which_ + 1; which < all_.count; ++which) visit(item_of(all_.of[which]));
  }

 private:
  const placed_gemms<has_second>& all_;
  std::uint32_t which_;
  work_item first_;
};

template <typename t>
struct block_memory {
  std::byte *stages, *zeros;  // zeros: a tile of inputs
  phase_barrier *weights_there, *inputs_there, *empty;
  phase_barrier* released;  // over when the preceding kernels have ended

  __device__ block_memory() {
    std::byte* const memory_of_launch = dynamic_shared<std::byte>();
    stages = memory_of_launch + (1024 - shared_address(memory_of_launch) % 1024) % 1024;
    zeros = stages + t::stages * t::stage_bytes;
    weights_there = reinterpret_cast<phase_barrier*>(zeros + t::input_tile);
    inputs_there = weights_there + t::stages, empty = inputs_there + t::stages;
    released = empty + t::stages;
  }
  [[nodiscard]] __device__ std::byte* weights(unsigned stage) const { return stages + stage * t::stage_bytes; }
  [[nodiscard]] __device__ std::byte* inputs(unsigned stage) const {
    return weights(stage) + t::stage_tiles * t::weight_tile;
  }
  /// For a warp as a whole: whether a stage has arrived.
  [[nodiscard]] __device__ bool is_there(const stage_turn<t>& turn) const {
    const bool have_weights = weights_there[turn.stage].is_over(turn.phase);
    const bool have_inputs = inputs_there[turn.stage].is_over(turn.phase);
    return all_lanes(have_weights & have_inputs);
  }
  __device__ void wait_for(const stage_turn<t>& turn) const {
    weights_there[turn.stage].wait(turn.phase);
    inputs_there[turn.stage].wait(turn.phase);
  }
};

template <typename t, bool has_second>
__device__ void produce_weights(const placed_gemms<has_second>& all, const block_work<has_second>& work_of_block,
                                const block_memory<t>& memory) {
  if (all.pdl_early_launch) pdl_launch_dependents();
  stage_turn<t> turn, arrived;
  std::uint32_t on_their_way = 0;
  work_of_block.for_each([&](const work_item& work) {
    for (std::uint32_t tile = work.first; tile < work.end; tile += t::stage_tiles, turn.next()) {
      if (turn.phase > 0) memory.empty[turn.stage].wait(turn.phase - 1);
      while (on_their_way >= (memory.released->is_over(0) ? work.gemm->stages_after : work.gemm->stages_before)) {
        memory.weights_there[arrived.stage].wait(arrived.phase);
        arrived.next(), --on_their_way;
      }
      phase_barrier& there = memory.weights_there[turn.stage];
      there.arrive_expecting(t::stage_tiles * t::weight_tile);
      copy_tiles(memory.weights(turn.stage), work.gemm->weights, work.output, tile, there, cache_use::streamed);
      ++on_their_way;
    }
  });
}

template <typename t, bool has_second>
__device__ void produce_inputs(const placed_gemms<has_second>& all, const block_work<has_second>& work_of_block,
                               const block_memory<t>& memory) {
  bring_map(work_of_block.first().gemm->inputs);
  pdl_wait();
  memory.released->arrive();
  pdl_launch_dependents();
  if (work_of_block.is_second()) all.done.await_writers();
  stage_turn<t> turn;
  work_of_block.for_each([&](const work_item& work) {
    for (std::uint32_t tile = work.first; tile < work.end; tile += t::stage_tiles, turn.next()) {
      if (turn.phase > 0) memory.empty[turn.stage].wait(turn.phase - 1);
      phase_barrier& there = memory.inputs_there[turn.stage];
      there.arrive_expecting(t::stage_tiles * t::input_tile);
      copy_tiles(memory.inputs(turn.stage), work.gemm->inputs, 0, tile, there, cache_use::shared);
    }
  });
  if (work_of_block.is_second()) all.done.count_reader();
}

/// sums = sum over an item's inputs. A stage is released when its instructions are complete: after those of the next
/// stage have been issued, which need not wait for it, or at once if the next stage has not arrived yet.
/// `gives_all_back`: releases the item's last stage too, because another item of the block may need it.
///
/// If all stages have arrived, a block is as fast as the loop of one warp, so other instructions are hidden behind the
/// matrix instructions: the arrival of the next stage is tested while they run. Stage counters are uniform in the warp,
/// because descriptors computed in vector registers take as long as the instructions that they are for.
template <typename Operand, typename t, bool gives_all_back>
__device__ void multiply(const work_item& work, const block_memory<t>& memory, stage_turn<t>& turn,
                         float (&sums)[t::columns / 2]) {
  const std::uint32_t tiles = same_in_all_lanes(work.end - work.first);
  const std::uint32_t count = (tiles + t::stage_tiles - 1) / t::stage_tiles;
  const descriptor stages = tile_descriptor(memory.stages), zeros = tile_descriptor(memory.zeros);
  unsigned before = 0;
  const auto give_back = [&] {
    if (threadIdx.x % 32 == 0) memory.empty[before].arrive();
  };
  bool is_there = memory.is_there(turn);
  for (std::uint32_t i = 0; i < count; ++i) {
    bool gives_back = i > 0;
    if (!is_there) {
      wgmma_wait<0>();
      if (gives_back) give_back();
      gives_back = false;
      memory.wait_for(turn);
    }
    const descriptor weights = stages + turn.stage * (t::stage_bytes / 16);
    const descriptor inputs = weights + t::stage_tiles * t::weight_tile / 16;
    // A missing tile is replaced by zeros. A branch here would make each instruction wait for the one before.
    descriptor of_tile[t::stage_tiles];
#pragma unroll
    for (unsigned j = 0; j < t::stage_tiles; ++j)
      of_tile[j] = j == 0 || t::stage_tiles * i + j < tiles ? inputs + j * (t::input_tile / 16) : zeros;
    wgmma_begin();
#pragma unroll
    for (int k = 0; k < 4 * static_cast<int>(t::stage_tiles); ++k)
      wgmma<Operand, t::columns>(sums, weights + k / 4 * (t::weight_tile / 16) + k % 4 * 2, of_tile[k / 4] + k % 4 * 2,
                                 k > 0 || i > 0);
    wgmma_commit();
    const unsigned now = turn.stage;
    turn.next();
    is_there = memory.is_there(turn);
    if (gives_back) {
      wgmma_wait<1>();
      give_back();
    }
    before = now;
  }
  wgmma_wait<0>();
  if (gives_all_back) give_back();
}

/// for_each_sum by adding to a pointer, which takes less arithmetic: a thread has outputs `output` and `output` + 8, of
/// two neighbouring rows in every eight.
template <typename t, typename Stored, typename Take>
__device__ void put_each(const work_item& work, std::uint32_t rows, Stored* out, Take take) {
  const placed_gemm& p = *work.gemm;
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp >= t::outputs / 16) return;
  const std::uint32_t output = work.output + warp * 16 + lane / 4;
  const std::size_t stride = p.out_stride;
  const bool has_output = output < p.outputs, has_eighth = output + 8 < p.outputs;
  std::uint32_t row = lane % 4 * 2;
  out += row * stride + output;
#pragma unroll
  for (int j = 0; j < t::columns / 2; j += 4, row += 8, out += 8 * stride) {
    const bool has_row = row < rows, has_next = row + 1 < rows;
    if (has_row && has_output) take(out, j);
    if (has_next && has_output) take(out + stride, j + 1);
    if (has_row && has_eighth) take(out + 8, j + 2);
    if (has_next && has_eighth) take(out + stride + 8, j + 3);
  }
}

template <typename Stored, typename t>
__device__ void store_rounded(const work_item& work, std::uint32_t rows, const float (&sums)[t::columns / 2]) {
  Stored rounded[t::columns / 2];
  from_floats(sums, rounded);
  put_each<t>(work, rows, static_cast<Stored*>(work.gemm->out), [&](Stored* to, int j) { *to = rounded[j]; });
}

template <typename Element, typename t>
__device__ void store(const work_item& work, std::uint32_t rows, float (&sums)[t::columns / 2]) {
  const placed_gemm& p = *work.gemm;
  apply_activation_fast(p.how.function, sums);
  auto* const floats = static_cast<float*>(p.out) + work.segment * p.part_stride;
  switch (p.how.to) {
    case destination::add_f32:
      return put_each<t>(work, rows, floats, [&](float* to, int j) { atomicAdd(to, sums[j]); });
    case destination::f32:
    case destination::parts: return put_each<t>(work, rows, floats, [&](float* to, int j) { *to = sums[j]; });
    case destination::f16: return store_rounded<half, t>(work, rows, sums);
    default: return store_rounded<Element, t>(work, rows, sums);
  }
}

/// An item's products and its epilogue. Operands of e4m3 get their scales.
template <typename Operand, typename Result, typename t, bool gives_all_back>
__device__ void run_item(const work_item& work, std::uint32_t rows, const block_memory<t>& memory,
                         stage_turn<t>& turn) {
  float sums[t::columns / 2];
  multiply<Operand, t, gives_all_back>(work, memory, turn, sums);
  pdl_wait();  // already complete; but every thread that writes must call this
  if constexpr (std::is_same_v<Operand, e4m3>) scale_sums<t::columns>(work.gemm->scales, work.output, 0, sums);
  store<Result, t>(work, rows, sums);
}

template <typename Operand, typename t, bool has_second>
__device__ void run_block(const placed_gemms<has_second>& all, const block_work<has_second>& work_of_block) {
  const block_memory<t> memory;
  if (threadIdx.x == consumers) {
    for (int stage = 0; stage < t::stages; ++stage) {
      memory.weights_there[stage].init(1), memory.inputs_there[stage].init(1);
      memory.empty[stage].init(consumers / 32);
    }
    memory.released->init(1);
    publish_barriers();
  }
  for (unsigned i = threadIdx.x; i < t::input_tile / 16; i += threads) reinterpret_cast<uint4*>(memory.zeros)[i] = {};
  publish_writes();
  __syncthreads();
  if (threadIdx.x >= consumers) {
    if (threadIdx.x == consumers) produce_weights(all, work_of_block, memory);
    if (threadIdx.x == consumers + 32) produce_inputs(all, work_of_block, memory);
    return;
  }
  stage_turn<t> turn;
  work_of_block.for_each([&](const work_item& work) {
    using result = result_of<Operand>;
    if constexpr (!operand_traits<Operand>::are_mixed)
      run_item<Operand, result, t, has_second>(work, all.rows, memory, turn);
    else if (work.gemm->scales.of_outputs)
      run_item<e4m3, result, t, has_second>(work, all.rows, memory, turn);
    else
      run_item<result, result, t, has_second>(work, all.rows, memory, turn);
  });
  if (work_of_block.is_awaited()) {
    barrier_of<consumers>(1);
    if (threadIdx.x == 0) all.done.count_writer();
  }
}

template <typename Operand, typename t, bool has_second>
__global__ void __launch_bounds__(threads, 2)
    matmul_few_rows_kernel(const __grid_constant__ placed_gemms<has_second> all) {
#if defined(SKEIN_HAS_WGMMA)
  const block_work work(all);
  if (work.first().gemm->is_narrow)
    run_block<Operand, narrow<t>>(all, work);
  else
    run_block<Operand, t>(all, work);
#endif
}

/// Always for products that others wait for, which are not split. Otherwise if a product is alone in its launch and its
/// blocks would be few and long: at most one per SM, with more than 4 stages (docs/decisions, 62).
bool is_narrow(const gemm& p, std::span<const gemm> launch, std::uint32_t sm_count) {
  if (p.when == turn::first) return true;
  const std::uint32_t blocks = padded(p.matrix.outputs) / instruction_outputs * p.segments;
  return launch.size() == 1 && blocks <= sm_count && segment_tiles(p) > 8;
}

template <typename t, bool has_second, template <typename> typename Operand>
result<void> launch_as(stream_handle in, element type, std::span<const gemm> gemms, std::uint32_t rows) {
  const auto found = count_sms();
  if (!found) return found.error();
  const std::uint32_t sm_count = *found;
  placed_gemms<has_second> all{};
  check(gemms.size() <= std::size(all.of));
  all.rows = rows;
  all.pdl_early_launch = gemms.front().pdl_early_launch;
  all.before_second = static_cast<std::uint32_t>(before_second(gemms));
  std::uint32_t items = 0, tiles = 0;
  for (const gemm& p : gemms) {
    placed_gemm& to = all.of[all.count++];
    const operands_in_memory of(p);
    to.depth = p.matrix.depth();
    const bool in_parts = p.how.to == destination::parts;
    check(in_parts || p.segments == 1);
    to.item_depth = in_parts ? segment_tiles(p) : to.depth;
    to.is_narrow = is_narrow(p, gemms, sm_count);
    const std::uint32_t outputs = to.is_narrow ? narrow_outputs : instruction_outputs;
    const std::uint32_t stage_tiles = to.is_narrow ? narrow<t>::stage_tiles : t::stage_tiles;
    to.groups = (p.matrix.outputs + outputs - 1) / outputs;
    const std::uint32_t width = to.depth * matrix_tile;
    to.weights = describe_tiles(type, of.weights, width, of.depth, padded(p.matrix.outputs), outputs, stage_tiles);
    to.inputs = describe_tiles(type, of.inputs, width, of.stride, rows, t::columns, stage_tiles);
    to.scales = of.scales;
    to.out = p.out, to.part_stride = p.part_stride;
    to.outputs = p.matrix.outputs, to.out_stride = p.out_stride, to.how = p.how;
    to.first_item = items;
    tiles += padded(p.matrix.outputs) / matrix_tile * to.depth;
    if (has_second && p.when == turn::first) {
      ++all.firsts, all.done.writers += to.groups;
    }
    if (has_second && p.when == turn::second) {
      all.done.at = p.done, all.done.readers = to.groups;
    } else {
      items += to.groups * (in_parts ? p.segments : 1);
    }
  }
  items += all.done.readers;
  // A narrow block has as much in flight as a wide one of its depth would have, although it needs half.
  const double share = double{bytes_on_their_way} * sm_count / (static_cast<double>(tiles) * t::weight_tile);
  for (std::uint32_t i = 0; i < all.count; ++i) {
    placed_gemm& p = all.of[i];
    const std::uint32_t stages = p.is_narrow ? narrow<t>::stages : t::stages;
    p.stages_before = items <= sm_count && t::columns <= 16 ? 2 : 1;  // 2: if a block is alone on its SM
    p.stages_after = std::clamp(static_cast<std::uint32_t>(p.item_depth * share / t::stage_tiles + 0.5), 2u, stages);
    if (i < all.firsts) p.stages_before = p.stages_after = stages;  // others wait for them
  }
  const auto start = [&](auto kernel) -> result<void> {
    if (const auto r = allow_shared_bytes(kernel, t::shared_bytes); !r) return r;
    return launch({"matmul", {items}, {threads}, t::shared_bytes, in, true}, kernel, all);
  };
  return type == element::f16 ? start(matmul_few_rows_kernel<Operand<half>, t, has_second>)
                              : start(matmul_few_rows_kernel<Operand<bf16>, t, has_second>);
}

template <typename t, template <typename> typename Operand>
result<void> launch_tiles(stream_handle in, element type, std::span<const gemm> gemms, std::uint32_t rows) {
  return has_turns(gemms) ? launch_as<t, true, Operand>(in, type, gemms, rows)
                          : launch_as<t, false, Operand>(in, type, gemms, rows);
}

/// For up to few_rows_max rows.
template <template <typename> typename Operand>
result<void> launch_few_rows(stream_handle in, element type, std::span<const gemm> gemms, std::uint32_t rows) {
  check(rows <= few_rows_max);
  if (rows <= 8) return launch_tiles<tiling<8, 6>, Operand>(in, type, gemms, rows);
  if (rows <= 16) return launch_tiles<tiling<16, 5>, Operand>(in, type, gemms, rows);
  return launch_tiles<tiling<32, 4>, Operand>(in, type, gemms, rows);
}

}  // namespace

}  // namespace skein::kernels::gpu
