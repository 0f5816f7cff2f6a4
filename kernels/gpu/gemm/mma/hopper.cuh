#pragma once
#include <algorithm>

#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/device/tile_copy.cuh"
#include "kernels/gpu/device/wgmma.cuh"
#include "kernels/gpu/gemm/epilogue.cuh"
#include "kernels/gpu/gemm/gemm_results.cuh"
#include "kernels/gpu/gemm/mma/multiply.cuh"
#include "kernels/gpu/gemm/mma/shapes.cuh"
#include "kernels/gpu/gemm/split_k_sums.cuh"
#include "kernels/gpu/gemm/tensor_map.hpp"

/// Products with quantised weights for more rows on sm_90a. Blocks, stages and the way out of results are those of
/// matmul_hopper.cu, but a stage has the blocks of eight panels in place of a tile of weights, and the weights of wgmma
/// are in registers. A warp decodes those of the next stage while the instructions of this one and the one before it
/// are on their way. There are two sets of such registers, each written only when no instruction that reads it is left,
/// which ptxas can see; otherwise it lets every instruction wait for the one before (its warning C7513). A sum is the
/// same chain of instructions as in matmul_hopper.cu; segments are added as in the other kernels of this folder.
///
/// Floor: 2 * rows * weights / FLOP rate. For 16 inputs by 64 outputs, wgmma takes columns / 2 cycles, and decoding
/// some 14 (int8) to 30 (NF4) of the cycles in which the four schedulers of an SM issue instructions, by their count
/// here.
namespace skein::kernels::gpu::mma {

/// A stage has inputs first, because their rows begin at multiples of 1024 bytes.
template <int columns_, takes segments_, weight_element code_>
struct hopper_tiling
    : gpu::tiling<columns_, 1, segments_ == takes::one ? gpu::takes::parts : gpu::takes::added_up_parts> {
  using base = gpu::tiling<columns_, 1, segments_ == takes::one ? gpu::takes::parts : gpu::takes::added_up_parts>;
  static constexpr bool coded = true, adds_each = segments_ == takes::adds_each;
  static constexpr weight_element code = code_;
  static constexpr unsigned panels = base::outputs / panel_outputs, steps = 4;
  static constexpr int warps_m = panels, warps_n = 1, tiles_m = 1;
  static constexpr int pieces = 2, piece_columns = columns_ == 256 ? 64 : columns_ / 2;
  static constexpr std::uint32_t piece_bytes = piece_columns * gpu::row_bytes;
  static constexpr std::uint32_t result_bytes = base::groups * pieces * piece_bytes;
  static constexpr int laid_down = segments_ == takes::sum_of_all && columns_ > 128 ? 48 : 0;
  static_assert(laid_down * warpgroup * sizeof(float) <= pieces * piece_bytes);
  static constexpr std::uint32_t stage_bytes =
      (base::input_bytes + panels * block_bytes({code, 32}) + 1023) / 1024 * 1024;
  static constexpr int stages = ((226 << 10) - 1024 - result_bytes) / (stage_bytes + 2 * sizeof(phase_barrier));
  static_assert(stages >= 3);
  static constexpr std::size_t shared_bytes = 1024 + stages * (stage_bytes + 2 * sizeof(phase_barrier)) + result_bytes;
  static constexpr unsigned threads = base::consumers + warpgroup;
};

struct coded_matrix {
  std::uint32_t block_bytes, scale_step;
};
/// The weights of products are maps of describe_blocks.
struct coded_gemms : gpu::placed_gemms {
  coded_matrix matrices[gemms_max_of_turn];
};

template <typename t>
struct hopper_memory {
  std::byte *stages, *result;
  phase_barrier *full, *empty;

  __device__ hopper_memory() {
    std::byte* const memory = dynamic_shared<std::byte>();
    stages = memory + (1024 - shared_address(memory) % 1024) % 1024;
    result = stages + t::stages * t::stage_bytes;
    full = reinterpret_cast<phase_barrier*>(result + t::result_bytes), empty = full + t::stages;
  }
  [[nodiscard]] __device__ std::byte* inputs(unsigned stage) const { return stages + stage * t::stage_bytes; }
  [[nodiscard]] __device__ std::byte* codes(unsigned stage) const { return inputs(stage) + t::input_bytes; }
};

/// Requests the stages of all tiles of a block; for one thread.
template <typename t>
__device__ void request_tiles(const coded_gemms& all, const hopper_memory<t>& memory) {
  const std::uint32_t tiles = all.items * all.row_tiles;
  const auto copy_codes = [&](const gpu::work_item& work, std::uint32_t i, unsigned stage) {
    memory.full[stage].arrive_expecting(t::panels * all.matrices[work.which].block_bytes + t::input_bytes);
    copy_tiles(memory.codes(stage), work.gemm->weights, work.first + i, work.output / panel_outputs, memory.full[stage],
               cache_use::streamed);
  };
  const auto copy_inputs = [&](const gpu::work_item& work, std::uint32_t i, unsigned stage) {
    copy_tile(memory.inputs(stage), work.gemm->inputs, (work.first + i) * matrix_tile, work.row, memory.full[stage],
              cache_use::shared);
  };
  gpu::work_item work = gpu::find_work<t>(all, blockIdx.x);
  const std::uint32_t early = min(work.count, static_cast<std::uint32_t>(t::stages));
  for (std::uint32_t i = 0; i < early; ++i) copy_codes(work, i, i);
  const bool is_middle = all.role == launch_role::middle;
  if (all.pdl_early_launch || is_middle) pdl_launch_dependents();
  if (!is_middle) pdl_wait();
  for (std::uint32_t i = 0; i < early; ++i) copy_inputs(work, i, i);
  stage_turn<t> turn;
  if (early == t::stages)
    turn.phase = 1;
  else
    turn.stage = early;
  std::uint32_t i = early;
  for (std::uint32_t tile = blockIdx.x;;) {
    for (; i < work.count; ++i, turn.next()) {
      if (turn.phase > 0) memory.empty[turn.stage].wait(turn.phase - 1);
      copy_codes(work, i, turn.stage), copy_inputs(work, i, turn.stage);
    }
    tile += gridDim.x;
    if (tile >= tiles) break;
    work = gpu::find_work<t>(all, tile);
    i = 0;
  }
  pdl_launch_dependents();
}

/// The products of a tile. At its last stage and before each later segment, no instruction is on its way.
/// end_segment(i) is called before stage i begins another segment, whose sums begin at 0.
template <typename Element, typename t, typename End>
__device__ void multiply_coded(const coded_matrix& matrix, const gpu::work_item& work, const hopper_memory<t>& memory,
                               stage_turn<t>& turn, float (&sums)[t::columns / 2], End end_segment) {
  const place<t> at;
  unsigned oldest = turn.stage;
  group_decoder<Element, t::code> of_group(0);
  const auto decode = [&](fragment_a(&to)[t::steps]) {
    memory.full[turn.stage].wait(turn.phase);
    const std::byte* const block =
        memory.codes(turn.stage) + at.first_output / panel_outputs * matrix.block_bytes + at.lane * 4;
    const std::byte* const scales = block + code_bytes_of_block(t::code) - at.lane * 4 + at.g * 4;
    static_assert(t::steps == 4);
    decode_operands<t::code, 2>(of_group, block, scales, matrix.scale_step, to);
  };
  const auto begin_stage = [&](const fragment_a(&weights)[t::steps]) {
    const descriptor inputs = tile_descriptor(memory.inputs(turn.stage));
    wgmma_begin();
#pragma unroll
    for (unsigned k = 0; k < t::steps; ++k) wgmma_registers<Element, t::columns>(sums, weights[k], inputs + 2 * k);
    wgmma_commit();
    turn.next();
  };
  const auto release_oldest = [&] {
    if (at.lane == 0) memory.empty[oldest].arrive();
    if (++oldest == t::stages) oldest = 0;
  };
  fragment_a even[t::steps], odd[t::steps];
  const auto follow = [&](fragment_a(&next)[t::steps]) {
    decode(next);
    begin_stage(next);
    wgmma_wait<1>();
    release_oldest();
  };
#pragma unroll
  for (int i = 0; i < t::columns / 2; ++i) sums[i] = 0;
  for (std::uint32_t i = 0;;) {
    const std::uint32_t end = t::adds_up ? min(i + work.gemm->segment_depth, work.count) : work.count;
    decode(even);
    begin_stage(even);
    for (++i; i + 1 < end; i += 2) follow(odd), follow(even);
    if (i < end) follow(odd), ++i;
    wgmma_wait<0>();
    release_oldest();
#pragma unroll
    for (int j = 0; j < t::columns / 2; ++j) sums[j] *= decltype(of_group)::sum_factor;
    if (i == work.count) break;
    end_segment(i);
#pragma unroll
    for (int j = 0; j < t::columns / 2; ++j) sums[j] = 0;
  }
}

template <typename Element, typename t>
__global__ void __launch_bounds__(t::threads, 1)
    matmul_coded_hopper_kernel(const __grid_constant__ coded_gemms all, const __grid_constant__ ways_out<t> out) {
#if defined(SKEIN_HAS_WGMMA)
  const hopper_memory<t> memory;
  if (threadIdx.x == t::consumers) {
    for (int i = 0; i < t::stages; ++i) memory.full[i].init(1), memory.empty[i].init(t::consumers / 32);
    publish_barriers();
  }
  __syncthreads();
  if (threadIdx.x >= t::consumers) {
    keep_registers<24>();
    if (threadIdx.x == t::consumers) request_tiles<t>(all, memory);
    return;
  }
  take_registers<240>();
  stage_turn<t> turn;
  for (std::uint32_t tile = blockIdx.x; tile < all.items * all.row_tiles; tile += gridDim.x) {
    const gpu::work_item work = gpu::find_work<t>(all, tile);
    const coded_matrix& matrix = all.matrices[work.which];
    float sums[t::columns / 2];
    if constexpr (t::adds_each) {
      // TMA adds segments in order only if one is written before the next one is sent.
      const auto add_segment = [&] {
        pdl_wait();  // already complete; but every thread that reads or writes must call this
        if (speaks()) wait_until_written();
        store_floats<t>(work, all.rows, out.of[work.which], memory.result, sums);
      };
      multiply_coded<Element, t>(matrix, work, memory, turn, sums, [&](std::uint32_t) { add_segment(); });
      add_segment();
    } else {
      [[maybe_unused]] sums_before<t> before(memory.result);
      const std::uint32_t segment_depth = work.gemm->segment_depth;
      multiply_coded<Element, t>(matrix, work, memory, turn, sums,
                                 [&](std::uint32_t i) { before.add(sums, i == segment_depth); });
      if (t::adds_up && work.count > segment_depth) before.add_to(sums);
      pdl_wait();
      apply_activation_fast(work.gemm->how.function, sums);
      gpu::store<Element, t>(work, all.rows, out.of[work.which], memory.result, sums);
    }
  }
  if (speaks()) wait_until_written();
#endif
}

template <typename t>
result<void> launch_hopper_tiles(const tile_launch& what, void (*of_halves)(coded_gemms, ways_out<t>),
                                 void (*of_bf16)(coded_gemms, ways_out<t>)) {
  coded_gemms all{};
  all.rows = what.rows, all.row_tiles = (what.rows + t::columns - 1) / t::columns;
  all.pdl_early_launch = what.gemms.front().pdl_early_launch;
  all.role = what.beside > 0 ? launch_role::middle : launch_role::alone;
  ways_out<t> out{};
  for (const gemm& p : what.gemms) {
    const device_matrix& m = p.matrix;
    const std::uint32_t width = padded(m.inputs);
    coded_matrix& codes = all.matrices[all.count];
    codes.block_bytes = block_bytes(m.format);
    codes.scale_step = scale_groups_of_block(m.format) == 1 ? 0 : scale_bytes_of_group;
    gpu::placed_gemm& to = all.of[all.count];
    if (can_be_sent(p)) to.is_sent = true, out.of[all.count] = describe_out<t>(what.type, p, what.rows);
    to.weights = describe_blocks(m.data, codes.block_bytes, width / block_inputs, padded(m.outputs) / panel_outputs, 1,
                                 t::panels);
    to.inputs = make_map(what.type, p.in,
                         {2, {width, what.rows, 1}, {p.in_stride, 0}, {matrix_tile, std::uint32_t{t::columns}, 1}});
    to.depth = width / matrix_tile, to.segment_depth = segment_tiles(p);
    to.tiles = (m.outputs + t::outputs - 1) / t::outputs, to.first_item = all.items;
    to.out = p.out, to.part_stride = p.part_stride;
    to.outputs = m.outputs, to.out_stride = p.out_stride, to.how = p.how;
    all.items += to.tiles * (t::adds_up ? 1 : p.segments);
    ++all.count;
  }
  const auto kernel = what.type == element::f16 ? of_halves : of_bf16;
  if (const auto done = allow_shared_bytes(kernel, t::shared_bytes); !done) return done;
  const std::uint32_t blocks = std::min(all.items * all.row_tiles, what.profile.sm_count - what.beside);
  return launch({"matmul", {blocks}, {t::threads}, t::shared_bytes, what.in, true}, kernel, all, out);
}

/// A launch of products that are all quantised with one kind of code, of more than few_columns rows.
template <weight_element code>
result<void> launch_hopper(std::uint32_t columns, const tile_launch& what) {
  const auto start = [&]<typename t>() {
    return launch_hopper_tiles<t>(what, matmul_coded_hopper_kernel<half, t>, matmul_coded_hopper_kernel<bf16, t>);
  };
  const auto of_width = [&]<takes how>() {
    if (columns == 128) return start.template operator()<hopper_tiling<128, how, code>>();
    if constexpr (how != takes::sum_of_all)
      if (columns == 256) return start.template operator()<hopper_tiling<256, how, code>>();
    return start.template operator()<hopper_tiling<192, how, code>>();
  };
  switch (what.work) {
    case takes::sum_of_all: return of_width.template operator()<takes::sum_of_all>();
    case takes::adds_each: return of_width.template operator()<takes::adds_each>();
    case takes::one: break;
  }
  return of_width.template operator()<takes::one>();
}

}  // namespace skein::kernels::gpu::mma
