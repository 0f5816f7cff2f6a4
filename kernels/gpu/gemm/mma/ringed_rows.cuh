#pragma once
#include "kernels/gpu/device/nf4_pairs.cuh"
#include "kernels/gpu/device/tile_copy.cuh"
#include "kernels/gpu/device/wgmma.cuh"
#include "kernels/gpu/gemm/mma/even_share.hpp"
#include "kernels/gpu/gemm/mma/kernel.cuh"
#include "kernels/gpu/gemm/tensor_map.hpp"

/// Products of up to 64 rows with quantised weights on sm_90a. As in few_rows.cuh a block has 64 outputs of a segment
/// (128 with more than 32 rows, and in int8 with more than 16 and no low-rank pairs), and each of four warps (eight) a
/// panel; but weights and inputs go through a ring in shared memory, which the copy engine (TMA) fills. One
/// thread of a further warp requests the stages, so that the warps that decode and multiply spend no instructions on
/// addresses, and wait for stages and not for each other. With more than 16 rows they multiply by wgmma, which reads
/// the inputs of a stage once for 64 outputs. The sums are the same chains of products, with the same bits.
///
/// Whole stages are multiplied without a branch, so that the decoding of a step is between the instructions of the one
/// before it. Blocks are spread evenly over the SMs (even_share), because most launches have two for each SM.
///
/// Floor: bytes of codes and scales / bandwidth.
namespace skein::kernels::gpu::mma {

/// `t`: the tiling of the launch; `outputs_`: of a block of quantised products.
template <typename t, weight_element code_, int outputs_>
struct ring_tiling : tiling<outputs_, t::columns, outputs_ / 16, 1, 1, takes::one> {
  static constexpr bool coded = true;
  static constexpr weight_element code = code_;
  static constexpr bool lays_down = false;
  static constexpr unsigned panels = ring_tiling::outputs / panel_outputs;
  static constexpr unsigned consumers = 32 * panels, producers = 32;
  /// Of a stage, in blocks of 64 inputs: a panel has 2 KB of codes.
  static constexpr unsigned blocks = (2 << 10) / code_bytes_of_block(code);
  static constexpr unsigned panel_bytes = blocks * block_bytes({code, 32});  ///< at most
  static constexpr unsigned input_tile = t::columns * block_inputs * 2, input_bytes = blocks * input_tile;
  /// Whether the inputs are operands of wgmma, which reads them once for 64 outputs. It was slower with 1 and 8 rows,
  /// because decoding waits for the instructions of two blocks before.
  static constexpr bool by_warpgroup = t::columns >= 32;
  static_assert(blocks % 2 == 0);  // two sets of registers take turns in a stage
  static constexpr unsigned stage_bytes = (input_bytes + panels * panel_bytes + 1023) / 1024 * 1024;
  static_assert(input_tile % 1024 == 0);
  [[nodiscard]] static constexpr std::size_t ring_bytes(std::uint32_t stages) {
    return 1024 + stages * (stage_bytes + 2 * sizeof(phase_barrier));
  }
  /// Of weights, per SM. Measured: with more, the inputs that all blocks wait for come later.
  static constexpr std::uint32_t bytes_in_flight = [] {
    if (panels == 8) return t::columns == 32 ? 120u << 10 : 70u << 10;
    return code == weight_element::int8 && t::columns == 8 ? 90u << 10 : 60u << 10;
  }();
  static constexpr std::uint32_t stages_max = bytes_in_flight > (70 << 10) ? 8 : 4;
  static constexpr bool may_have_table = code == weight_element::nf4;
};

struct mapped_gemms : placed_gemms {
  std::uint32_t stages;                               ///< of the ring of a block
  std::uint32_t table_bytes;                          ///< before the ring: the table of nf4_pairs, or none
  CUtensorMap inputs[gemms_max], weights[gemms_max];  // of quantised products
};

static_assert(sizeof(mapped_gemms) <= 4096);  // the most for parameters of a kernel

/// The stages of a ring in turn.
struct ring_turn {
  unsigned stage = 0, phase = 0;
  __device__ void next(unsigned stages) {
    if (++stage == stages) stage = 0, ++phase;
  }
};

/// A stage: tiles of inputs, then the blocks of each panel.
template <typename t>
struct ring_memory {
  std::byte *table, *stages;
  phase_barrier *full, *empty;
  unsigned count;

  __device__ explicit ring_memory(const mapped_gemms& all) : count(all.stages) {
    std::byte* const memory = dynamic_shared<std::byte>();
    table = memory + (1024 - shared_address(memory) % 1024) % 1024, stages = table + all.table_bytes;
    full = reinterpret_cast<phase_barrier*>(stages + count * t::stage_bytes), empty = full + count;
  }
};

/// Requests the stages of an item; for one thread.
template <typename t>
class stage_requests {
 public:
  __device__ stage_requests(const mapped_gemms& all, const work_item& work, const ring_memory<t>& memory)
      : all_(all),
        work_(work),
        memory_(memory),
        weights_(all.weights[work.gemm - all.of]),
        inputs_(all.inputs[work.gemm - all.of]),
        count_((work.count + t::blocks - 1) / t::blocks) {}

  /// Makes the barriers and requests the first weights.
  __device__ void begin() const {
    bring_map(weights_), bring_map(inputs_);
    for (unsigned i = 0; i < memory_.count; ++i) memory_.full[i].init(1), memory_.empty[i].init(t::consumers / 32);
    publish_barriers();
    for (unsigned i = 0; i < min(count_, memory_.count); ++i) request_weights(i, i);
  }
  /// Requests the others when the stages before them have been read.
  __device__ void finish() const {
    if (all_.pdl_early_launch) pdl_launch_dependents();
    if (all_.first_beside)
      all_.done.await_count(1), all_.done.count_reader();
    else
      pdl_wait();
    pdl_launch_dependents();
    for (unsigned i = 0; i < min(count_, memory_.count); ++i) request_inputs(i, i);
    ring_turn turn;
    for (std::uint32_t i = memory_.count; i < count_; ++i, turn.next(memory_.count)) {
      memory_.empty[turn.stage].wait(turn.phase);
      request_weights(i, turn.stage), request_inputs(i, turn.stage);
    }
  }

 private:
  /// Blocks that follow the item's are copied, too, but not multiplied.
  __device__ void request_weights(std::uint32_t which, unsigned stage) const {
    phase_barrier& full = memory_.full[stage];
    full.arrive_expecting(t::panels * t::blocks * work_.gemm->block_bytes + t::input_bytes);
    copy_tiles(memory_.stages + stage * t::stage_bytes + t::input_bytes, weights_, work_.first + which * t::blocks,
               work_.output / panel_outputs, full, cache_use::streamed);
  }
  __device__ void request_inputs(std::uint32_t which, unsigned stage) const {
    copy_tiles(memory_.stages + stage * t::stage_bytes, inputs_, 0, work_.first + which * t::blocks,
               memory_.full[stage], cache_use::shared);
  }

  const mapped_gemms& all_;
  const work_item& work_;
  const ring_memory<t>& memory_;
  const CUtensorMap &weights_, &inputs_;
  std::uint32_t count_;
};

/// Where a lane loads the operands of inputs from, in a tile; others of the tile are at this offset xor a constant.
template <typename t>
__device__ unsigned place_of_operands(unsigned lane) {
  const unsigned row = t::tiles_n == 1 ? lane % 8 : lane / 16 * 8 + lane % 8;
  const unsigned packet = t::tiles_n == 1 ? lane / 8 : lane / 8 % 2;
  return row * 128 + ((packet ^ row % 8) << 4);
}

/// A warp's part of the stages of an item. `groups`: of a block. `Decoder`: see decode_step.
template <typename Element, typename t, unsigned groups, typename Decoder>
class stage_products {
  static constexpr weight_format format = {t::code, groups == 2 ? 32 : 64};
  static constexpr unsigned scale_step = groups == 2 ? scale_bytes_of_group : 0;

 public:
  static constexpr float sum_factor = Decoder::sum_factor;

  __device__ explicit stage_products(const Decoder& decode)
      : codes_at_(t::input_bytes + threadIdx.x / 32 * t::blocks * block_bytes(format) + threadIdx.x % 32 * 4),
        scales_at_(codes_at_ + code_bytes_of_block(t::code) - threadIdx.x % 32 * 4 + threadIdx.x % 32 / 4 * 4),
        inputs_at_(place_of_operands<t>(threadIdx.x % 32)),
        decode_(decode) {}

  /// Decodes a block to the operands of its four steps.
  __device__ void decode(const std::byte* stage, unsigned block, fragment_a (&to)[4]) {
    const std::byte* const codes = stage + codes_at_ + block * block_bytes(format);
    const std::byte* const scales = stage + scales_at_ + block * block_bytes(format);
    decode_operands<t::code, groups>(decode_, codes, scales, scale_step, to);
  }

  /// Adds the products of `count` blocks, from the first one at `stage` on.
  template <unsigned count>
  __device__ void add(const std::byte* stage, unsigned first, tile_sums<t>& sums) {
    const std::byte* const codes = stage + codes_at_ + first * block_bytes(format);
    const std::byte* const scales = stage + scales_at_ + first * block_bytes(format);
    const std::byte* const inputs = stage + first * t::input_tile;
#pragma unroll
    for (unsigned i = 0; i < count; ++i) {
      code_words<t::code> words[2][2];
      scale_pair pairs[groups];
#pragma unroll
      for (unsigned two = 0; two < 2; ++two)
#pragma unroll
        for (unsigned upper = 0; upper < 2; ++upper)
          words[two][upper] = load_words<t::code>(
              two, upper, 0, [&](unsigned bytes) { return load_word(codes + i * block_bytes(format) + bytes); });
#pragma unroll
      for (unsigned group = 0; group < groups; ++group)
        pairs[group] = load_word(scales + i * block_bytes(format) + group * scale_step);
#pragma unroll
      for (unsigned two = 0; two < 2; ++two) {
        if (two < groups) decode_.begin(pairs[two]);
        fragment_b b[2][t::tiles_n];
        load_inputs(inputs + i * t::input_tile, two, b);
#pragma unroll
        for (unsigned k = 0; k < 2; ++k) {
          fragment_a a;
          decode_step(decode_, words[two], k, a);
#pragma unroll
          for (int j = 0; j < t::tiles_n; ++j) multiply_fragments<Element>(sums[0][j], a, b[k][j]);
        }
      }
    }
  }

 private:
  /// Of 32 inputs of a tile.
  __device__ void load_inputs(const std::byte* tile, unsigned two, fragment_b (&to)[2][t::tiles_n]) const {
    if constexpr (t::tiles_n == 1) {
      fragment_a both;
      load_fragments(tile + (inputs_at_ ^ two * 64), both);
      to[0][0][0] = both[0], to[0][0][1] = both[1], to[1][0][0] = both[2], to[1][0][1] = both[3];
    } else {
#pragma unroll
      for (unsigned k = 0; k < 2; ++k)
#pragma unroll
        for (int j = 0; j < t::tiles_n; j += 2) {
          fragment_a both;
          load_fragments(tile + (inputs_at_ ^ (2 * two + k) * 32) + j * 8 * 128, both);
          to[k][j][0] = both[0], to[k][j][1] = both[1], to[k][j + 1][0] = both[2], to[k][j + 1][1] = both[3];
        }
    }
  }

  unsigned codes_at_, scales_at_, inputs_at_;
  Decoder decode_;
};

/// The sums of an item by wgmma, whose operands are the inputs in shared memory and two sets of registers with decoded
/// weights in turn (hopper.cuh).
template <typename Element, typename t, typename Products>
__device__ void multiply_by_warpgroup(const work_item& work, const ring_memory<t>& memory, Products& products,
                                      float (&sums)[t::columns / 2]) {
  fragment_a even[4], odd[4];
  ring_turn turn;
  unsigned before = 0;
  const auto begin = [&](const std::byte* stage, unsigned block, fragment_a(&weights)[4]) {
    products.decode(stage, block, weights);
    const descriptor inputs = tile_descriptor(stage + block * t::input_tile);
    wgmma_begin();
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) wgmma_registers<Element, t::columns>(sums, weights[k], inputs + 2 * k);
    wgmma_commit();
  };
  const auto release = [&](unsigned stage) {
    if (threadIdx.x % 32 == 0) memory.empty[stage].arrive();
  };
  const auto await_stage = [&] {
    memory.full[turn.stage].wait(turn.phase);
    return memory.stages + turn.stage * t::stage_bytes;
  };
  std::uint32_t first = 0;
  for (; first + t::blocks <= work.count; first += t::blocks, turn.next(memory.count)) {
    const std::byte* const stage = await_stage();
#pragma unroll
    for (unsigned i = 0; i < t::blocks; i += 2) {
      begin(stage, i, even);
      wgmma_wait<1>();
      if (i == 0 && first > 0) release(before);
      begin(stage, i + 1, odd);
      wgmma_wait<1>();
    }
    before = turn.stage;
  }
  wgmma_wait<0>();
  if (first > 0) release(before);
  if (first == work.count) return;
  const std::byte* const stage = await_stage();
#pragma unroll 1
  for (unsigned i = 0; first + i < work.count; ++i) {
    begin(stage, i, even);
    wgmma_wait<0>();
  }
}

/// The same by mma.sync.
template <typename t, typename Products>
__device__ void multiply_by_warps(const work_item& work, const ring_memory<t>& memory, Products& products,
                                  tile_sums<t>& sums) {
  ring_turn turn;
  for (std::uint32_t first = 0; first < work.count; first += t::blocks, turn.next(memory.count)) {
    memory.full[turn.stage].wait(turn.phase);
    const std::byte* const stage = memory.stages + turn.stage * t::stage_bytes;
    if (first + t::blocks <= work.count) {
      products.template add<t::blocks>(stage, 0, sums);
    } else {
#pragma unroll 1
      for (unsigned i = 0; first + i < work.count; ++i) products.template add<1>(stage, i, sums);
    }
    warp_barrier();  // all lanes have read the stage
    if (threadIdx.x % 32 == 0) memory.empty[turn.stage].arrive();
  }
}

template <typename Element, typename t, typename Products>
__device__ void consume(const work_item& work, const ring_memory<t>& memory, Products products, tile_sums<t>& sums) {
  if constexpr (t::by_warpgroup)
    multiply_by_warpgroup<Element, t>(work, memory, products, reinterpret_cast<float(&)[t::columns / 2]>(sums));
  else
    multiply_by_warps(work, memory, products, sums);
#pragma unroll
  for (int j = 0; j < t::tiles_n; ++j)
#pragma unroll
    for (float& sum : sums[0][j]) sum *= Products::sum_factor;
}
template <typename Element, typename t, typename Decoder>
__device__ void consume_by(const Decoder& decode, const work_item& work, const ring_memory<t>& memory,
                           tile_sums<t>& sums) {
  if (work.gemm->scale_step == 0)
    consume<Element, t>(work, memory, stage_products<Element, t, 1, Decoder>(decode), sums);
  else
    consume<Element, t>(work, memory, stage_products<Element, t, 2, Decoder>(decode), sums);
}

template <typename Element, typename t>
__device__ void run_ringed(const mapped_gemms& all, const work_item& work) {
  const ring_memory<t> memory(all);
  const stage_requests<t> request(all, work, memory);
  const bool requests = threadIdx.x == t::consumers;
  const bool has_table = t::may_have_table && all.table_bytes > 0;
  if (requests) request.begin();
  if (has_table && threadIdx.x < t::consumers) nf4_pairs<Element>::fill(memory.table, threadIdx.x, t::consumers);
  __syncthreads();
  if (requests) return request.finish();
  if (threadIdx.x >= t::consumers) return;
  const place<t> at;
  tile_sums<t> sums = {};
  const auto by_registers = [&] {
    const group_decoder<Element, t::code> decode(
        static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(work.gemm->weights) >> 60));
    consume_by<Element, t>(decode, work, memory, sums);
  };
  if constexpr (t::may_have_table) {
    if (has_table)
      consume_by<Element, t>(nf4_pairs<Element>(memory.table), work, memory, sums);
    else
      by_registers();
  } else {
    by_registers();
  }
  pdl_wait();  // already complete; but every thread that writes must call this
  store<Element, t>(work, all.rows, at, sums);
  if (work.gemm->when == turn::first) {
    barrier_of<t::consumers>(1);
    if (threadIdx.x == 0) count_done(all);
  }
}

template <typename Element, typename t, typename ring>
__global__ void __launch_bounds__(ring::consumers + ring::producers)
    matmul_ringed_kernel(const __grid_constant__ mapped_gemms all) {
#if defined(SKEIN_GPU_EMULATOR) || defined(SKEIN_HAS_WGMMA)  // where has_rings() is true
  const work_item work = find_work<t>(all, blockIdx.x);
  if (work.gemm->block_bytes > 0) return run_ringed<Element, ring>(all, work);
  if (threadIdx.x >= t::threads) return;
  run_plain_tile_of<Element, t>(all, work);
#endif
}

template <typename r>
std::uint32_t ring_stages(std::uint32_t each, const device_profile& profile) {
  std::uint32_t stages = std::clamp(r::bytes_in_flight / each / (r::panels * r::panel_bytes), 2u, r::stages_max);
  while (stages > 2 && r::ring_bytes(stages) > even_share(each, profile)) --stages;
  return stages;
}

/// A launch of up to 64 rows on sm_90a. The quantised products have one kind of code.
template <weight_element code>
result<void> launch_ringed(mma_shape shape, const tile_launch& what) {
  const auto start_with = [&]<typename t, int outputs>() -> result<void> {
    using r = ring_tiling<t, code, outputs>;
    mapped_gemms all{};
    place_gemms<t>(what, all, r::outputs);
    for (std::uint32_t i = 0; i < all.count; ++i) {
      const placed_gemm& p = all.of[i];
      if (p.block_bytes == 0) continue;
      all.weights[i] =
          describe_blocks(p.weights, p.block_bytes, p.depth, p.weight_rows / panel_outputs, r::blocks, r::panels);
      all.inputs[i] =
          describe_tiles(what.type, p.inputs, p.depth * matrix_tile, p.in_stride / 2, what.rows, t::columns, r::blocks);
    }
    const std::uint32_t each = blocks_of_sm(all.items, what.profile);
    all.stages = ring_stages<r>(each, what.profile);
    constexpr std::uint32_t table_bytes = nf4_pairs<half>::table_bytes;
    static_assert(table_bytes % 1024 == 0);  // stages begin at multiples of that
    if (r::may_have_table && r::ring_bytes(all.stages) + table_bytes <= even_share(each, what.profile))
      all.table_bytes = table_bytes;
    const auto kernel = what.type == element::f16 ? matmul_ringed_kernel<half, t, r> : matmul_ringed_kernel<bf16, t, r>;
    const std::size_t shared_bytes = std::max(
        {r::ring_bytes(all.stages) + all.table_bytes, shared_bytes_for<t>(all), even_share(each, what.profile)});
    if (const auto done = allow_shared_bytes(kernel, shared_bytes); !done) return done;
    return launch({"matmul", {all.items}, {r::consumers + r::producers}, shared_bytes, what.in, true}, kernel, all);
  };
  if (shape == mma_shape::rows_8) return start_with.template operator()<rows_8_tiles, 64>();
  if (shape == mma_shape::rows_16) return start_with.template operator()<rows_16_tiles, 64>();
  // With twice as many outputs half as many blocks load the inputs, which have more bytes than the weights.
  if (shape == mma_shape::small) return start_with.template operator()<small_tiles<takes::one>, 128>();
  if constexpr (code == weight_element::int8)
    if (!has_turns(what.gemms)) return start_with.template operator()<rows_32_tiles, 128>();
  return start_with.template operator()<rows_32_tiles, 64>();
}

}  // namespace skein::kernels::gpu::mma
