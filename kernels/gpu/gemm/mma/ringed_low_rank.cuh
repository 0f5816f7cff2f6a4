#pragma once
#include "kernels/gpu/device/tile_copy.cuh"
#include "kernels/gpu/device/wgmma.cuh"
#include "kernels/gpu/gemm/mma/low_rank.cuh"
#include "kernels/gpu/gemm/mma/store.cuh"

/// First products of low-rank pairs (low_rank.cuh) on sm_90a, in launches of ringed_rows.cuh. A block has eight outputs
/// here too, but TMA fills rings of weights and inputs, and wgmma multiplies, with the rows of the batch on its side of
/// 64. Instructions that follow each other on the same sums take half as long as those of mma.sync, there is no
/// barrier of the block between stages, and since a stage of weights is smaller than one of inputs, but takes longer to
/// arrive, more of them are in flight. The sums are the same chains of products, with the same bits.
///
/// Floor of a block: inputs / 16 instructions of some 16 cycles, 2.3 us for 4,096 inputs on an H100.
namespace skein::kernels::gpu::mma {

/// Whether launches of ringed_rows.cuh with tiles `t` compute them like this. With up to eight rows it was slower.
template <typename t>
inline constexpr bool has_slim_rings = t::columns > 8 && has_low_rank_tiles<t>;

template <int columns_>
struct slim_ring {
  using tiles = low_rank_tiling<columns_>;
  static constexpr unsigned blocks = 2;  ///< of 64 inputs, in a stage
  static constexpr unsigned weight_tile = low_rank_outputs * 128, input_tile = columns_ * 128;
  static constexpr unsigned weight_bytes = blocks * weight_tile, input_bytes = blocks * input_tile;
  static constexpr unsigned input_stages = columns_ == 16 ? 5 : 4, weight_stages = 7;
  static constexpr unsigned consumers = 128;
  static constexpr std::size_t shared_bytes = 1024 + input_stages * input_bytes + weight_stages * weight_bytes +
                                              (2 * input_stages + weight_stages) * sizeof(phase_barrier);
  /// Rows of a tile of inputs beyond `columns` are whatever follows in shared memory; their sums are not used.
  static_assert((64 - columns_) * 128 <= weight_stages * weight_bytes);
};

/// Of the two rings of a block, for stage_turn.
template <unsigned stages_>
struct ring_of {
  static constexpr unsigned stages = stages_;
};

template <typename r>
struct slim_memory {
  std::byte *inputs, *weights;
  phase_barrier *inputs_there, *weights_there, *empty;

  __device__ slim_memory() {
    std::byte* const memory = dynamic_shared<std::byte>();
    inputs = memory + (1024 - shared_address(memory) % 1024) % 1024;
    weights = inputs + r::input_stages * r::input_bytes;
    inputs_there = reinterpret_cast<phase_barrier*>(weights + r::weight_stages * r::weight_bytes);
    empty = inputs_there + r::input_stages, weights_there = empty + r::input_stages;
  }
};

/// Requests the stages of a block; for one thread.
template <typename r>
class slim_requests {
 public:
  __device__ slim_requests(const CUtensorMap& weights, const CUtensorMap& inputs, const work_item& work,
                           const slim_memory<r>& memory)
      : weights_(weights),
        inputs_(inputs),
        memory_(memory),
        output_(work.output),
        count_((work.count + r::blocks - 1) / r::blocks) {}

  /// Makes the barriers and requests the first weights.
  __device__ void begin() {
    bring_map(weights_), bring_map(inputs_);
    for (unsigned i = 0; i < r::input_stages; ++i)
      memory_.inputs_there[i].init(1), memory_.empty[i].init(r::consumers / 32);
    for (unsigned i = 0; i < r::weight_stages; ++i) memory_.weights_there[i].init(1);
    publish_barriers();
    for (unsigned i = 0; i < min(count_, r::weight_stages); ++i) request_weights();
  }
  /// Requests the others when the stages before them have been read.
  __device__ void finish() {
    for (unsigned i = 0; i < min(count_, r::input_stages); ++i) request_inputs();
    stage_turn<ring_of<r::input_stages>> read;
    while (next_weights_ < count_ || next_inputs_ < count_) {
      memory_.empty[read.stage].wait(read.phase);
      read.next();
      if (next_inputs_ < count_) request_inputs();
      if (next_weights_ < count_) request_weights();
    }
  }

 private:
  __device__ void request_weights() {
    phase_barrier& there = memory_.weights_there[of_weights_.stage];
    there.arrive_expecting(r::weight_bytes);
    copy_tiles(memory_.weights + of_weights_.stage * r::weight_bytes, weights_, output_, next_weights_++ * r::blocks,
               there, cache_use::streamed);
    of_weights_.next();
  }
  __device__ void request_inputs() {
    phase_barrier& there = memory_.inputs_there[of_inputs_.stage];
    there.arrive_expecting(r::input_bytes);
    copy_tiles(memory_.inputs + of_inputs_.stage * r::input_bytes, inputs_, 0, next_inputs_++ * r::blocks, there,
               cache_use::shared);
    of_inputs_.next();
  }

  const CUtensorMap &weights_, &inputs_;
  const slim_memory<r>& memory_;
  std::uint32_t output_, count_, next_weights_ = 0, next_inputs_ = 0;
  stage_turn<ring_of<r::weight_stages>> of_weights_;
  stage_turn<ring_of<r::input_stages>> of_inputs_;
};

/// The sums of a block's outputs, for its consumers.
template <typename Element, typename r>
__device__ void multiply_slim(const work_item& work, const slim_memory<r>& memory, float (&sums)[4]) {
  const std::uint32_t count = (work.count + r::blocks - 1) / r::blocks;
  stage_turn<ring_of<r::weight_stages>> of_weights;
  stage_turn<ring_of<r::input_stages>> of_inputs;
  unsigned before = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    memory.weights_there[of_weights.stage].wait(of_weights.phase);
    memory.inputs_there[of_inputs.stage].wait(of_inputs.phase);
    const descriptor inputs = tile_descriptor(memory.inputs + of_inputs.stage * r::input_bytes);
    const descriptor weights = tile_descriptor(memory.weights + of_weights.stage * r::weight_bytes);
    wgmma_begin();
#pragma unroll
    for (unsigned b = 0; b < r::blocks; ++b)
#pragma unroll
      for (unsigned k = 0; k < 4; ++k)
        wgmma<Element, low_rank_outputs>(sums, inputs + b * (r::input_tile / 16) + 2 * k,
                                         weights + b * (r::weight_tile / 16) + 2 * k, i + b + k > 0);
    wgmma_commit();
    wgmma_wait<1>();  // the stage before has been read
    if (i > 0 && threadIdx.x % 32 == 0) memory.empty[before].arrive();
    before = of_inputs.stage;
    of_weights.next(), of_inputs.next();
  }
  wgmma_wait<0>();
  if (threadIdx.x % 32 == 0) memory.empty[before].arrive();
}

/// For all threads of a block with that product: `r::consumers`, and behind them at least one more.
template <typename Element, typename r, typename Gemms>
__device__ void run_slim(const Gemms& all, const work_item& work) {
  const std::size_t which = work.gemm - all.of;
  const slim_memory<r> memory;
  const bool requests = threadIdx.x == r::consumers;
  slim_requests<r> request(all.weights[which], all.inputs[which], work, memory);
  if (requests) request.begin();
  __syncthreads();
  if (threadIdx.x >= r::consumers) {
    if (!requests) return;
    if (all.pdl_early_launch) pdl_launch_dependents();
    pdl_wait();
    pdl_launch_dependents();
    return request.finish();
  }
  using t = typename r::tiles;
  const place<t> at;
  tile_sums<t> sums = {};
  multiply_slim<Element, r>(work, memory, reinterpret_cast<float(&)[4]>(sums));
  pdl_wait();  // already complete; but every thread that writes must call this
  store<Element, t>(work, all.rows, at, sums);
  if (work.gemm->when == turn::first) {
    barrier_of<r::consumers>(1);
    if (threadIdx.x == 0) count_done(all);
  }
}

}  // namespace skein::kernels::gpu::mma
