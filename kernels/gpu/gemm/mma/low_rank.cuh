#pragma once
#include "kernels/gpu/gemm/mma/multiply.cuh"

/// First products of low-rank pairs, with 16-bit weights, in launches of up to 32 rows (on sm_90a, beside quantised
/// ones, most are left to ringed_low_rank.cu). They have few outputs and many inputs, and others of the launch wait for
/// them, so the time of one block counts. A block has only eight outputs, on the narrow side of the instruction, and
/// reads its weights in long pieces: a barrier stands between 16 instructions, not four, and all blocks together have
/// enough weights in flight. The sums are the same chains of products as in other tiles, with the same bits, so one
/// warp computes those of 16 rows; others only copy.
///
/// Floor of a block: inputs / 16 dependent instructions of some 33 cycles on an H100, 4.8 us for 4,096 inputs.
namespace skein::kernels::gpu::mma {

inline constexpr int low_rank_outputs = 8;

template <int columns_>
struct low_rank_tiling : tiling<16, columns_, 1, columns_ == 32 ? 2 : 1, 1, takes::one> {
  static constexpr int outputs = low_rank_outputs, tiles_m = 1, tiles_n = 1;
  static constexpr bool turned = true;
  static constexpr unsigned threads = 128;
  static constexpr unsigned blocks = columns_ == 32 ? 2 : 4;  ///< of 64 inputs, in a stage
  static constexpr unsigned row_bytes = blocks * block_inputs * 2, packets_of_row = row_bytes / 16;
  static constexpr unsigned weight_bytes = outputs * row_bytes, stage_bytes = weight_bytes + columns_ * row_bytes;
  static constexpr unsigned stages = (36 << 10) / stage_bytes;
  static constexpr std::size_t shared_bytes = stages * stage_bytes;
  static_assert(stages >= 3);

  /// Eight rows that are loaded together have no bank conflicts.
  __device__ static unsigned place(unsigned row, unsigned packet) {
    return row * row_bytes + ((packet ^ (row % 8)) << 4);
  }
};
/// Whether launches with such tiles may have products of this kind.
template <typename t>
inline constexpr bool has_low_rank_tiles = t::columns <= 32 && t::segments == takes::one && !t::turned;

/// Copies rows of a stage.
template <typename t, unsigned rows, bool ahead>
class piece_copier {
 public:
  /// `end`: rows at and beyond it are zero.
  __device__ piece_copier(const std::byte* from, std::size_t stride, std::uint32_t end, std::uint32_t depth)
      : from_(from + own_row() * stride + own_packet() * 16),
        step_(rows_at_once * stride),
        left_(static_cast<int>(end) - static_cast<int>(own_row())),
        packets_(static_cast<int>(depth * (block_inputs * 2 / 16)) - static_cast<int>(own_packet())) {}

  __device__ void copy(std::byte* to, std::uint32_t stage) const {
    if (static_cast<int>(stage * t::packets_of_row) >= packets_) return;
#pragma unroll
    for (unsigned i = 0; i < rows / rows_at_once; ++i)
      copy_packet<ahead>(to + t::place(own_row() + i * rows_at_once, own_packet()),
                         from_ + i * step_ + stage * t::row_bytes, static_cast<int>(i * rows_at_once) < left_);
  }

 private:
  static constexpr unsigned rows_at_once = t::threads / t::packets_of_row;
  static_assert(rows % rows_at_once == 0);
  __device__ static unsigned own_row() { return threadIdx.x / t::packets_of_row; }
  __device__ static unsigned own_packet() { return threadIdx.x % t::packets_of_row; }

  const std::byte* from_;
  std::size_t step_;
  int left_, packets_;  // from this thread's first on
};

/// The products of a stage with `blocks` blocks of 64 inputs, for a warp.
template <typename Element, typename t>
__device__ void multiply_stage(const std::byte* stage, unsigned blocks, tile_sums<t>& sums) {
  const unsigned lane = threadIdx.x % 32, first_row = threadIdx.x / 32 * 16;
  const std::byte* const inputs = stage + t::weight_bytes;
  const auto multiply_block = [&](unsigned block) {
    fragment_a a[4], b[2];
#pragma unroll
    for (unsigned two = 0; two < 2; ++two)
      load_fragments(stage + t::place(lane % 8, block * 8 + two * 4 + lane / 8), b[two]);
#pragma unroll
    for (unsigned k = 0; k < 4; ++k)  // of 8 rows, the upper ones are the lower ones again, for nothing
      load_fragments(inputs + t::place((first_row + lane % 16) % t::columns, block * 8 + k * 2 + lane / 16), a[k]);
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) {
      const fragment_b own = {b[k / 2][k % 2 * 2], b[k / 2][k % 2 * 2 + 1]};
      multiply_fragments<Element>(sums[0][0], a[k], own);
    }
  };
  if (blocks >= t::blocks) {
#pragma unroll
    for (unsigned i = 0; i < t::blocks; ++i) multiply_block(i);
  } else {
    for (unsigned i = 0; i < blocks; ++i) multiply_block(i);
  }
}

/// As multiply() of multiply.cuh, for a product of one segment.
template <typename Element, typename t, typename Gemms>
__device__ void multiply_low_rank(const Gemms& all, const work_item& work, tile_sums<t>& sums) {
  constexpr unsigned ahead = t::stages - 1;
  const placed_gemm& p = *work.gemm;
  const piece_copier<t, t::outputs, true> weights(p.weights + work.output * p.weight_stride, p.weight_stride,
                                                  p.weight_rows - work.output, work.count);
  const piece_copier<t, t::columns, false> inputs(p.inputs, p.in_stride, all.rows, work.count);
  const auto stage_of = [](std::uint32_t i) { return dynamic_shared<std::byte>() + i % t::stages * t::stage_bytes; };
  const bool has_weights = waits(all, work);
  if (has_weights) {
#pragma unroll
    for (unsigned i = 0; i < ahead; ++i) weights.copy(stage_of(i), i);
    await_inputs(all, work);
  }
#pragma unroll
  for (unsigned i = 0; i < ahead; ++i) {
    if (!has_weights) weights.copy(stage_of(i), i);
    inputs.copy(stage_of(i) + t::weight_bytes, i);
    end_packets();
  }
  pdl_launch_dependents();
  for (std::uint32_t i = 0; i * t::blocks < work.count; ++i) {
    await_packets<ahead - 1>();
    __syncthreads();  // this stage has arrived, and the one before it has been read
    const std::uint32_t next = i + ahead;
    weights.copy(stage_of(next), next), inputs.copy(stage_of(next) + t::weight_bytes, next);
    end_packets();
    if (threadIdx.x < 32 * t::warps_n) multiply_stage<Element, t>(stage_of(i), work.count - i * t::blocks, sums);
  }
}

}  // namespace skein::kernels::gpu::mma
