#pragma once
#include "kernels/gpu/device/tile_copy.cuh"
#include "kernels/gpu/device/wgmma.cuh"
#include "kernels/gpu/gemm/mma/kernel.cuh"
#include "kernels/gpu/gemm/tensor_map.hpp"

/// Products of up to 32 rows with quantised weights on sm_90a. As in few_rows.cuh a block has 64 outputs of a segment,
/// and each of four warps a panel; but weights and inputs go through a ring in shared memory, which the copy engine
/// (TMA) fills. A warp of its own requests the stages, so that the warps that decode and multiply spend no instructions
/// on addresses, and wait for stages and not for each other. The sums are the same chains of products, with the same
/// bits.
///
/// Floor: bytes of codes and scales / bandwidth. Copies alone, without decoding, take 24.8 us (int8) and 12.4 us (int4)
/// for the key of 7.2B on an H100, 2.8 TB/s; with decoding it is 25.8 and 14.5 us.
namespace skein::kernels::gpu::mma {

/// `t`: the tiling of the launch, of 64 outputs.
template <typename t, weight_element code_>
struct ring_tiling : tiling<64, t::columns, 4, 1, 4, takes::one> {
  static constexpr bool coded = true;
  static constexpr weight_element code = code_;
  static constexpr unsigned consumers = 128, producers = 32;
  static constexpr unsigned panels = 64 / panel_outputs;
  /// Of a stage, in blocks of 64 inputs.
  static constexpr unsigned blocks = code_bits(code) == 8 ? 2 : 4;
  static constexpr unsigned panel_bytes = blocks * block_bytes({code, 32});
  static constexpr unsigned input_tile = t::columns * block_inputs * 2, input_bytes = blocks * input_tile;
  static constexpr unsigned stage_bytes = (input_bytes + panels * panel_bytes + 1023) / 1024 * 1024;
  static_assert(panel_bytes % 16 == 0 && input_tile % 1024 == 0);
  static constexpr std::size_t ring_bytes = 1024 + ring_tiling::stages * (stage_bytes + 2 * sizeof(phase_barrier));
};

struct mapped_gemms : placed_gemms {
  CUtensorMap maps[gemms_max];  ///< of the inputs of quantised products
};

/// A stage: tiles of inputs, then the blocks of each panel.
template <typename t>
struct ring_memory {
  std::byte* stages;
  phase_barrier *full, *empty;

  __device__ ring_memory() {
    std::byte* const memory = dynamic_shared<std::byte>();
    stages = memory + (1024 - shared_address(memory) % 1024) % 1024;
    full = reinterpret_cast<phase_barrier*>(stages + t::stages * t::stage_bytes), empty = full + t::stages;
  }
};

/// Requests the stages of an item; for the lanes of a warp.
template <typename t>
class stage_requests {
 public:
  __device__ stage_requests(const mapped_gemms& all, const work_item& work, const ring_memory<t>& memory)
      : memory_(memory),
        map_(all.maps[work.gemm - all.of]),
        weights_(work.gemm->weights + (work.output / panel_outputs + lane() % t::panels) * work.gemm->weight_stride +
                 std::size_t{work.first} * work.gemm->block_bytes),
        block_bytes_(work.gemm->block_bytes),
        first_(work.first),
        count_(work.count) {}
  __device__ void bring() const { bring_map(map_); }
  __device__ void weights(std::uint32_t which, unsigned stage) const {
    const unsigned blocks = min(t::blocks, count_ - which * t::blocks), bytes = blocks * block_bytes_;
    phase_barrier& full = memory_.full[stage];
    if (lane() == 0) full.arrive_expecting(t::panels * bytes);
    if (lane() < t::panels)
      copy_bytes(memory_.stages + stage * t::stage_bytes + t::input_bytes + lane() * t::panel_bytes,
                 weights_ + std::size_t{which} * t::blocks * block_bytes_, bytes, full, cache_use::streamed);
  }
  __device__ void inputs(std::uint32_t which, unsigned stage) const {
    if (lane() != 0) return;
    phase_barrier& full = memory_.full[stage];
    full.arrive_expecting(t::input_bytes);
    copy_tiles(memory_.stages + stage * t::stage_bytes, map_, 0, first_ + which * t::blocks, full, cache_use::shared);
  }

 private:
  __device__ static unsigned lane() { return threadIdx.x % 32; }

  const ring_memory<t>& memory_;
  const CUtensorMap& map_;
  const std::byte* weights_;
  std::uint32_t block_bytes_, first_, count_;
};

/// Makes the barriers and requests the first weights, before the other warps wait for anything.
template <typename t>
__device__ void begin_stages(const stage_requests<t>& request, const ring_memory<t>& memory, std::uint32_t count) {
  if (threadIdx.x % 32 == 0) {
    request.bring();
    for (int i = 0; i < t::stages; ++i) memory.full[i].init(2), memory.empty[i].init(t::consumers / 32);
    publish_barriers();
  }
  warp_barrier();
  for (unsigned i = 0; i < t::stages; ++i)
    if (i < count) request.weights(i, i);
}
template <typename t>
__device__ void request_stages(const mapped_gemms& all, const stage_requests<t>& request, const ring_memory<t>& memory,
                               std::uint32_t count) {
  if (all.pdl_early_launch) pdl_launch_dependents();
  pdl_wait();
  pdl_launch_dependents();
  for (unsigned i = 0; i < t::stages; ++i)
    if (i < count) request.inputs(i, i);
  stage_turn<t> turn;
  for (std::uint32_t i = t::stages; i < count; ++i, turn.next()) {
    memory.empty[turn.stage].wait(turn.phase);
    request.weights(i, turn.stage), request.inputs(i, turn.stage);
    warp_barrier();  // a lane that falls two phases behind would wait for ever
  }
}

/// Where a lane loads the operands of inputs from, in a tile; others of the tile are at this address xor a constant.
template <typename t>
__device__ unsigned place_of_operands(unsigned lane) {
  const unsigned row = t::tiles_n == 1 ? lane % 8 : lane / 16 * 8 + lane % 8;
  const unsigned packet = t::tiles_n == 1 ? lane / 8 : lane / 8 % 2;
  return row * 128 + ((packet ^ row % 8) << 4);
}
__device__ inline const std::byte* moved(const std::byte* at, unsigned bits) {
  return reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(at) ^ bits);
}

template <typename Element, typename t>
__device__ void consume(const work_item& work, const ring_memory<t>& memory, tile_sums<t>& sums) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::uint32_t count = work.count, scale_step = work.gemm->scale_step, block_bytes = work.gemm->block_bytes;
  const unsigned codes_at = t::input_bytes + warp * t::panel_bytes + lane * 4;
  const unsigned scales_at = t::input_bytes + warp * t::panel_bytes + code_bytes_of_block(t::code) + lane / 4 * 4;
  const unsigned own_inputs = place_of_operands<t>(lane);
  const decoder<Element, t::code> decode(
      static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(work.gemm->weights) >> 60));
  const auto word = [](const std::byte* at) {
    std::uint32_t value;
    memcpy(&value, __builtin_assume_aligned(at, 4), 4);
    return value;
  };
  struct held_block {
    code_words<t::code> codes[2][2];
    scale_pair scales[2];
  };
  stage_turn<t> turn;
  for (std::uint32_t first = 0; first < count; first += t::blocks, turn.next()) {
    memory.full[turn.stage].wait(turn.phase);
    const std::byte* const stage = memory.stages + turn.stage * t::stage_bytes;
    held_block held[t::blocks];
#pragma unroll
    for (unsigned i = 0; i < t::blocks; ++i) {
      const std::byte* const block = stage + i * block_bytes;
#pragma unroll
      for (unsigned two = 0; two < 2; ++two) {
#pragma unroll
        for (unsigned h = 0; h < 2; ++h)
          held[i].codes[two][h] =
              load_words<t::code>(two, h, 0, [&](unsigned bytes) { return word(block + codes_at + bytes); });
        held[i].scales[two] = word(block + scales_at + two * scale_step);
      }
    }
#pragma unroll
    for (unsigned i = 0; i < t::blocks; ++i) {
      if (first + i >= count) break;
      const std::byte* const inputs = stage + own_inputs + i * t::input_tile;
#pragma unroll
      for (unsigned two = 0; two < 2; ++two) {
        fragment_b b[2][t::tiles_n];
        if constexpr (t::tiles_n == 1) {
          fragment_a both;
          load_fragments(moved(inputs, two * 64), both);
          b[0][0][0] = both[0], b[0][0][1] = both[1], b[1][0][0] = both[2], b[1][0][1] = both[3];
        } else {
#pragma unroll
          for (unsigned k = 0; k < 2; ++k)
#pragma unroll
            for (int j = 0; j < t::tiles_n; j += 2) {
              fragment_a both;
              load_fragments(moved(inputs, (2 * two + k) * 32) + j * 8 * 128, both);
              b[k][j][0] = both[0], b[k][j][1] = both[1], b[k][j + 1][0] = both[2], b[k][j + 1][1] = both[3];
            }
        }
#pragma unroll
        for (unsigned k = 0; k < 2; ++k) {
          fragment_a a;
          decode(held[i].codes[two], k, held[i].scales[two], a);
#pragma unroll
          for (int j = 0; j < t::tiles_n; ++j) multiply_fragments<Element>(sums[0][j], a, b[k][j]);
        }
      }
    }
    warp_barrier();  // all lanes have read the stage
    if (lane == 0) memory.empty[turn.stage].arrive();
  }
}

template <typename Element, typename t>
__device__ void run_ringed(const mapped_gemms& all, const work_item& work) {
  const ring_memory<t> memory;
  const stage_requests<t> request(all, work, memory);
  const std::uint32_t count = (work.count + t::blocks - 1) / t::blocks;
  const bool requests = threadIdx.x >= t::consumers;
  if (requests) begin_stages(request, memory, count);
  __syncthreads();
  if (requests) return request_stages(all, request, memory, count);
  const place<t> at;
  tile_sums<t> sums = {};
  consume<Element, t>(work, memory, sums);
  pdl_wait();  // already complete; but every thread that writes must call this
  store<Element, t>(work, all.rows, at, sums);
  if (work.gemm->when == turn::first) {
    barrier_of<t::consumers>(1);
    if (threadIdx.x == 0) count_done(all);
  }
}

template <typename Element, typename t, weight_element code>
__global__ void __launch_bounds__(ring_tiling<t, code>::consumers + ring_tiling<t, code>::producers)
    matmul_ringed_kernel(const __grid_constant__ mapped_gemms all) {
#if defined(SKEIN_GPU_EMULATOR) || defined(SKEIN_HAS_WGMMA)  // where is_ringed() is true
  const work_item work = find_work<t>(all, blockIdx.x);
  if (work.gemm->block_bytes > 0) return run_ringed<Element, ring_tiling<t, code>>(all, work);
  if (threadIdx.x >= t::threads) return;
  run_plain_tile_of<Element, t>(all, work);
#endif
}

/// A launch of up to 32 rows on sm_90a. The quantised products have one kind of code.
template <weight_element code>
result<void> launch_ringed(mma_shape shape, const tile_launch& what) {
  const auto start = [&]<typename t>() -> result<void> {
    using r = ring_tiling<t, code>;
    mapped_gemms all{};
    place_gemms<t>(what, all, true);
    for (std::uint32_t i = 0; i < all.count; ++i) {
      const placed_gemm& p = all.of[i];
      if (p.block_bytes > 0)
        all.maps[i] = describe_tiles(what.type, p.inputs, p.depth * matrix_tile, p.in_stride / 2, what.rows, t::columns,
                                     r::blocks);
    }
    const auto kernel =
        what.type == element::f16 ? matmul_ringed_kernel<half, t, code> : matmul_ringed_kernel<bf16, t, code>;
    const std::size_t shared_bytes = std::max(r::ring_bytes, shared_bytes_for<t>(all));
    if (const auto done = allow_shared_bytes(kernel, shared_bytes); !done) return done;
    return launch({"matmul", {all.items}, {r::consumers + r::producers}, shared_bytes, what.in, true}, kernel, all);
  };
  if (shape == mma_shape::rows_8) return start.template operator()<rows_8_tiles>();
  if (shape == mma_shape::rows_16) return start.template operator()<rows_16_tiles>();
  return start.template operator()<rows_32_tiles>();
}

}  // namespace skein::kernels::gpu::mma
