#pragma once
#include "kernels/gpu/device/tile_copy.cuh"
#include "kernels/gpu/device/wgmma.cuh"
#include "kernels/gpu/gemm/mma/kernel.cuh"

/// Products with quantised weights for more rows on sm_90a: as in kernel.cuh, but the two warpgroups of a block
/// multiply by wgmma. Each warp decodes its weights to registers, 16 inputs at a time; wgmma reads the inputs of the
/// batch from shared memory. A sum is the same chain of instructions as in matmul_hopper.cu.
///
/// ptxas lets each wgmma wait for the one before (its warning C7513), because it cannot see that registers are only
/// written again when no instruction reads them. Decoding to a tile in shared memory instead took 10 % longer.
///
/// Floor: 2 * rows * weights / FLOP rate. For 16 inputs by 64 outputs, wgmma takes columns / 2 cycles, and decoding
/// some 13 (int4) to 30 (bf16 from int8) of the cycles in which the four schedulers of an SM issue instructions.
namespace skein::kernels::gpu::mma {

/// As coded_tiling, for wgmma: inputs come first in a stage, because their rows begin at multiples of 1024 bytes.
template <int columns_, takes segments_, weight_element code_>
struct hopper_tiling : tiling<128, columns_, 8, 1, 4, segments_> {
  using t = tiling<128, columns_, 8, 1, 4, segments_>;
  static constexpr bool coded = true;
  static constexpr weight_element code = code_;
  static constexpr std::uint32_t largest_block = block_bytes({code, 32});
  static constexpr std::uint32_t weight_bytes = (t::warps * largest_block + 1023) / 1024 * 1024;
  static constexpr std::uint32_t stage_bytes = t::input_bytes + weight_bytes;
  static constexpr int stages = t::stages;
  /// Of stages: a stage is free when the instructions that read the one after it have begun.
  static constexpr unsigned ahead = stages - 2;
  static constexpr std::size_t shared_bytes = stages * stage_bytes + 1024;
};

/// As multiply() of multiply.cuh.
template <typename Element, typename t, typename End>
__device__ void multiply_by_warpgroups(const placed_gemms& all, const work_item& work, tile_sums<t>& tile,
                                       End end_segment) {
#if defined(SKEIN_HAS_WGMMA)
  auto& sums = reinterpret_cast<float(&)[t::columns / 2]>(tile);
  const place<t> at;
  const placed_gemm& p = *work.gemm;
  std::byte* const memory = dynamic_shared<std::byte>();
  std::byte* const stages = memory + (1024 - shared_address(memory) % 1024) % 1024;
  const weight_copier<t> of_weights(work);
  const stage_copier<t, t::columns, false> of_inputs(p.inputs, p.in_stride, work.row, all.rows, work.first);
  const std::uint32_t count = work.count, segment_depth = p.segment_depth;
  const auto copy_part = [&](unsigned stage, std::uint32_t which, unsigned part, bool weights, bool inputs) {
    std::byte* const to = stages + stage * t::stage_bytes;
    if (inputs) of_inputs.copy(to, which, part);
    if (weights) of_weights.copy(to + t::input_bytes, which, part);
  };
  const auto copy = [&](unsigned stage, bool weights, bool inputs) {
#pragma unroll
    for (unsigned part = 0; part < t::steps - 1; ++part) copy_part(stage, stage, part, weights, inputs);
  };
  if (all.pdl) {
    for (unsigned i = 0; i < t::ahead; ++i)
      if (i < count) copy(i, true, false);
    if (all.pdl_early_launch) pdl_launch_dependents();
    pdl_wait();
  }
  for (unsigned i = 0; i < t::ahead; ++i) {
    if (i < count) copy(i, !all.pdl, true);
    end_packets();
  }
  if (count <= t::ahead) pdl_launch_dependents();
  fragment_a a[t::steps];
  unsigned stage = 0, free_stage = t::ahead;
  for (std::uint32_t i = 0;;) {
    const std::uint32_t end = t::adds_up ? min(i + segment_depth, count) : count;
    for (; i < end; ++i) {
      await_packets<t::ahead - 1>();
      publish_writes();
      __syncthreads();  // the stage has arrived, and the one that lies where the next copies go has been read
      const bool copies = i + t::ahead < count;
      const std::byte* const inputs = stages + stage * t::stage_bytes;
      const descriptor of_rows = tile_descriptor(inputs);
      weight_operands<Element, t> weights[2];
      weights[0].load(inputs + t::input_bytes, p, at, 0);
#pragma unroll
      for (unsigned k = 0; k < t::steps; ++k) {
        if (k + 1 < t::steps) weights[(k + 1) % 2].load(inputs + t::input_bytes, p, at, k + 1);
        wgmma_wait<t::steps - 1>();  // the instruction that read these registers
        weights[k % 2].get(0, a[k]);
        wgmma_begin();
        wgmma_registers<Element, t::columns>(sums, a[k], of_rows + 2 * k);
        wgmma_commit();
        if (k < t::steps - 1 && copies) copy_part(free_stage, i + t::ahead, k, true, true);
      }
      end_packets();
      if (i + t::ahead + 1 == count) pdl_launch_dependents();
      stage = stage + 1 == t::stages ? 0 : stage + 1, free_stage = free_stage + 1 == t::stages ? 0 : free_stage + 1;
    }
    wgmma_wait<0>();
    if (i == count) break;
    end_segment(i);
  }
#endif
}

template <typename Element, typename t>
__global__ void __launch_bounds__(t::threads, 1) matmul_coded_hopper_kernel(const __grid_constant__ placed_gemms all) {
#if defined(SKEIN_HAS_WGMMA)
  run_tile<Element, t>(all, find_work<t>(all, blockIdx.x), [&](const work_item& work, tile_sums<t>& sums, auto end) {
    multiply_by_warpgroups<Element, t>(all, work, sums, end);
  });
#endif
}

/// A launch of products that are all quantised with one kind of code, of more than few_columns rows.
template <weight_element code>
result<void> launch_hopper(std::uint32_t columns, takes work, const tile_launch& what) {
  const auto start = [&]<typename t>() {
    return launch_tiles<t>(what, matmul_coded_hopper_kernel<half, t>, matmul_coded_hopper_kernel<bf16, t>);
  };
  const auto of_width = [&]<takes how>() {
    if (columns == 128) return start.template operator()<hopper_tiling<128, how, code>>();
    if (columns == 192) return start.template operator()<hopper_tiling<192, how, code>>();
    return start.template operator()<hopper_tiling<256, how, code>>();
  };
  switch (work) {
    case takes::sum_of_all: return start.template operator()<hopper_tiling<128, takes::sum_of_all, code>>();
    case takes::adds_each: return of_width.template operator()<takes::adds_each>();
    case takes::one: break;
  }
  return of_width.template operator()<takes::one>();
}

}  // namespace skein::kernels::gpu::mma
