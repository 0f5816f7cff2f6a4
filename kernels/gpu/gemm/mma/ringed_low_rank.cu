#include <algorithm>

#include "kernels/gpu/device/tile_copy.cuh"
#include "kernels/gpu/device/wgmma.cuh"
#include "kernels/gpu/gemm/mma/kernel.cuh"
#include "kernels/gpu/gemm/tensor_map.hpp"

/// First products of low-rank pairs on sm_90a, of up to 64 rows, in a launch of their own beside the quantised products
/// of ringed_rows.cuh. They have few outputs and many inputs, and second products wait for them, so the time of one
/// block counts. A block has 32 outputs and an SM of its own, because warps that decode would take the issue slots that
/// it needs between its instructions. TMA fills a ring of stages, and wgmma multiplies, with the rows of the batch on
/// its side of 64. Stages are long, because waiting for one takes as long as several instructions. The sums are the
/// same chains of products as elsewhere, with the same bits.
///
/// The next launch starts at once, to request its weights. It reads the same inputs, so it waits until a block of this
/// one, which has waited for the kernels before, says that they are complete.
///
/// Floor of a block: inputs / 16 instructions that follow each other on the same sums. A block of one row took 9,600
/// cycles for 4,096 inputs, in stages of half this length.
namespace skein::kernels::gpu::mma {

namespace {

template <int columns_>
struct low_rank_ring : tiling<16, columns_, 1, std::max(1, columns_ / 16), 1, takes::one> {
  static constexpr int outputs = low_rank_ring_outputs, tiles_m = 1, tiles_n = outputs / 8;
  static constexpr bool turned = true, lays_down = false;
  static constexpr unsigned blocks = columns_ <= 16 ? 8 : 4;  ///< of 64 inputs, in a stage
  static constexpr unsigned weight_tile = outputs * 128, input_tile = columns_ * 128;
  static constexpr unsigned input_bytes = blocks * input_tile, stage_bytes = input_bytes + blocks * weight_tile;
  static constexpr unsigned stages = (200u << 10) / stage_bytes;  ///< leaves no space for a block of the next launch
  static constexpr unsigned consumers = 128, producers = 32;
  static constexpr std::size_t shared_bytes = 1024 + stages * (stage_bytes + 2 * sizeof(phase_barrier));
  /// Rows of a tile of inputs beyond `columns` are whatever follows in shared memory; their sums are not used.
  static_assert((64 - columns_) * 128 <= stage_bytes - input_bytes);
};

struct low_rank_gemms : placed_gemms {
  CUtensorMap inputs[gemms_max_of_turn], weights[gemms_max_of_turn];
};

/// A stage: tiles of inputs, then of weights.
template <typename t>
struct low_rank_memory {
  std::byte* stages;
  phase_barrier *full, *empty;

  __device__ low_rank_memory() {
    std::byte* const memory = dynamic_shared<std::byte>();
    stages = memory + (1024 - shared_address(memory) % 1024) % 1024;
    full = reinterpret_cast<phase_barrier*>(stages + t::stages * t::stage_bytes), empty = full + t::stages;
  }
};

/// Requests the stages of a block; for one thread.
template <typename t>
class low_rank_requests {
 public:
  __device__ low_rank_requests(const low_rank_gemms& all, const work_item& work, const low_rank_memory<t>& memory)
      : weights_(all.weights[work.gemm - all.of]),
        inputs_(all.inputs[work.gemm - all.of]),
        memory_(memory),
        output_(work.output),
        count_((work.count + t::blocks - 1) / t::blocks) {}

  /// Makes the barriers and requests the first weights.
  __device__ void begin() const {
    bring_map(weights_), bring_map(inputs_);
    for (unsigned i = 0; i < t::stages; ++i) memory_.full[i].init(1), memory_.empty[i].init(t::consumers / 32);
    publish_barriers();
    for (unsigned i = 0; i < min(count_, t::stages); ++i) request_weights(i, i);
  }
  /// Requests the others when the stages before them have been read.
  __device__ void finish() const {
    for (unsigned i = 0; i < min(count_, t::stages); ++i) request_inputs(i, i);
    stage_turn<t> turn;
    for (std::uint32_t i = t::stages; i < count_; ++i, turn.next()) {
      memory_.empty[turn.stage].wait(turn.phase);
      request_weights(i, turn.stage), request_inputs(i, turn.stage);
    }
  }

 private:
  __device__ void request_weights(std::uint32_t which, unsigned stage) const {
    memory_.full[stage].arrive_expecting(t::stage_bytes);
    copy_tiles(memory_.stages + stage * t::stage_bytes + t::input_bytes, weights_, output_, which * t::blocks,
               memory_.full[stage], cache_use::streamed);
  }
  __device__ void request_inputs(std::uint32_t which, unsigned stage) const {
    copy_tiles(memory_.stages + stage * t::stage_bytes, inputs_, 0, which * t::blocks, memory_.full[stage],
               cache_use::shared);
  }

  const CUtensorMap &weights_, &inputs_;
  const low_rank_memory<t>& memory_;
  std::uint32_t output_, count_;
};

/// The sums of a block's outputs, for its consumers. Tiles beyond the inputs are zero.
template <typename Element, typename t>
__device__ void multiply_ringed(const work_item& work, const low_rank_memory<t>& memory,
                                float (&sums)[t::outputs / 2]) {
  const std::uint32_t count = (work.count + t::blocks - 1) / t::blocks;
  stage_turn<t> turn;
  unsigned before = 0;
  for (std::uint32_t i = 0; i < count; ++i, turn.next()) {
    memory.full[turn.stage].wait(turn.phase);
    const std::byte* const stage = memory.stages + turn.stage * t::stage_bytes;
    const descriptor inputs = tile_descriptor(stage), weights = tile_descriptor(stage + t::input_bytes);
    wgmma_begin();
#pragma unroll
    for (unsigned b = 0; b < t::blocks; ++b)
#pragma unroll
      for (unsigned k = 0; k < 4; ++k)
        wgmma<Element, t::outputs>(sums, inputs + b * (t::input_tile / 16) + 2 * k,
                                   weights + b * (t::weight_tile / 16) + 2 * k, i + b + k > 0);
    wgmma_commit();
    wgmma_wait<1>();  // the stage before has been read
    if (i > 0 && threadIdx.x % 32 == 0) memory.empty[before].arrive();
    before = turn.stage;
  }
  wgmma_wait<0>();
}

template <typename Element, typename t>
__global__ void __launch_bounds__(t::consumers + t::producers)
    matmul_low_rank_kernel(const __grid_constant__ low_rank_gemms all) {
#if defined(SKEIN_HAS_WGMMA)
  const work_item work = find_work<t>(all, blockIdx.x);
  const low_rank_memory<t> memory;
  const low_rank_requests<t> request(all, work, memory);
  const bool requests = threadIdx.x == t::consumers;
  if (requests) request.begin();
  __syncthreads();
  if (threadIdx.x >= t::consumers) {
    if (!requests) return;
    pdl_launch_dependents();
    pdl_wait();
    if (blockIdx.x == 0) count_done(all);  // says that the inputs of the launch beside this one are complete
    return request.finish();
  }
  const place<t> at;
  tile_sums<t> sums = {};
  multiply_ringed<Element, t>(work, memory, reinterpret_cast<float(&)[t::outputs / 2]>(sums));
  pdl_wait();  // already complete; but every thread that writes must call this
  store<Element, t>(work, all.rows, at, sums);
  barrier_of<t::consumers>(1);
  if (threadIdx.x == 0) count_done(all);
#endif
}

}  // namespace

result<void> launch_low_rank(mma_shape shape, const tile_launch& what, std::uint32_t* done) {
  const auto start = [&]<int columns>() -> result<void> {
    using t = low_rank_ring<columns>;
    low_rank_gemms all{};
    place_gemms<t>(what, all);
    all.done.at = done;
    for (std::uint32_t i = 0; i < all.count; ++i) {
      const placed_gemm& p = all.of[i];
      const std::uint32_t width = p.depth * matrix_tile;
      all.weights[i] =
          describe_tiles(what.type, p.weights, width, p.weight_stride / 2, p.weight_rows, t::outputs, t::blocks);
      all.inputs[i] = describe_tiles(what.type, p.inputs, width, p.in_stride / 2, what.rows, columns, t::blocks);
    }
    const auto kernel = what.type == element::f16 ? matmul_low_rank_kernel<half, t> : matmul_low_rank_kernel<bf16, t>;
    if (const auto r = allow_shared_bytes(kernel, t::shared_bytes); !r) return r;
    return launch({"matmul", {all.items}, {t::consumers + t::producers}, t::shared_bytes, what.in, true}, kernel, all);
  };
  if (shape == mma_shape::rows_8) return start.template operator()<8>();
  if (shape == mma_shape::rows_16) return start.template operator()<16>();
  if (shape == mma_shape::rows_32) return start.template operator()<32>();
  return start.template operator()<64>();
}

}  // namespace skein::kernels::gpu::mma
