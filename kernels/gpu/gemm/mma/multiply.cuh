#pragma once
#include "kernels/gpu/device/codes.cuh"
#include "kernels/gpu/device/fragments.cuh"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/gemm/mma/tiles.cuh"

/// The sums of a tile for the kernel of kernel.cuh: the ring of stages in shared memory and the products of a warp.
namespace skein::kernels::gpu::mma {

/// Copies stages of `rows` rows, a part of a stage at a time. Rows at and beyond `end` are zero.
template <typename t, int rows, bool ahead>
class stage_copier {
 public:
  /// As many as there are steps in which operands of the same stage are loaded.
  static constexpr unsigned parts = t::steps - 1;

  /// `stage`: the first one.
  __device__ stage_copier(const std::byte* from, std::size_t stride, std::uint32_t first, std::uint32_t end,
                          std::uint32_t stage)
      : from_(from + (first + own_row()) * stride + stage * t::row_bytes + threadIdx.x % t::packets_of_row * 16),
        step_(rows_at_once * stride),
        left_(static_cast<int>(end - first) - static_cast<int>(own_row())),
        to_(t::place(own_row(), threadIdx.x % t::packets_of_row)) {}

  /// `stage`: counted from the first one.
  __device__ void copy(std::byte* to, std::uint32_t stage, unsigned part) const {
    constexpr unsigned each = (rows + rows_at_once - 1) / rows_at_once;
    if (rows < rows_at_once && own_row() >= rows) return;
#pragma unroll
    for (unsigned i = 0; i < each; ++i)
      if (i % parts == part)
        copy_packet<ahead>(to + to_ + i * rows_at_once * t::row_bytes, from_ + i * step_ + stage * t::row_bytes,
                           static_cast<int>(i * rows_at_once) < left_);
  }

 private:
  static constexpr unsigned rows_at_once = t::threads / t::packets_of_row;
  static_assert(rows_at_once % 8 == 0);  // so that packets of all rows of a thread are moved alike
  __device__ static unsigned own_row() { return threadIdx.x / t::packets_of_row; }

  const std::byte* from_;
  std::size_t step_;
  int left_;
  unsigned to_;
};

/// Copies the weights of stages of 64 inputs.
template <typename t>
class weight_copier : stage_copier<t, t::outputs, true> {
 public:
  __device__ explicit weight_copier(const work_item& work)
      : stage_copier<t, t::outputs, true>(work.gemm->weights, work.gemm->weight_stride, work.output,
                                          work.gemm->weight_rows, work.first) {}
  using stage_copier<t, t::outputs, true>::copy;
};
template <typename t>
requires t::coded class weight_copier<t> {
 public:
  __device__ explicit weight_copier(const work_item& work)
      : from_(work.gemm->weights + (work.output / panel_outputs + warp()) * work.gemm->weight_stride +
              work.first * work.gemm->block_bytes + threadIdx.x % 32 * 16),
        to_(warp() * work.gemm->block_bytes + threadIdx.x % 32 * 16),
        block_bytes_(work.gemm->block_bytes),
        own_packets_(work.output + warp() * panel_outputs < work.gemm->weight_rows
                         ? static_cast<int>(work.gemm->block_bytes / 16) - static_cast<int>(threadIdx.x % 32)
                         : 0) {}

  __device__ void copy(std::byte* to, std::uint32_t stage, unsigned part) const {
    constexpr unsigned each = (t::largest_block / 16 + 31) / 32, parts = t::steps - 1;
#pragma unroll
    for (unsigned i = 0; i < each; ++i)
      if (i % parts == part && static_cast<int>(i * 32) < own_packets_)
        copy_packet<true>(to + to_ + i * 512, from_ + stage * block_bytes_ + i * 512, true);
  }

 private:
  __device__ static unsigned warp() { return threadIdx.x / 32; }

  const std::byte* from_;
  unsigned to_;
  std::uint32_t block_bytes_;
  int own_packets_;  // of a block, from this lane's first on
};

template <typename t>
class ring {
 public:
  __device__ ring(const placed_gemms& all, const work_item& work)
      : of_weights_(work), of_inputs_(work.gemm->inputs, work.gemm->in_stride, work.row, all.rows, work.first) {}

  [[nodiscard]] __device__ std::byte* weights(unsigned stage) const { return stages_ + stage * t::stage_bytes; }
  [[nodiscard]] __device__ std::byte* inputs(unsigned stage) const { return weights(stage) + t::weight_bytes; }
  __device__ void copy_weights(unsigned stage, std::uint32_t which, unsigned part) const {
    of_weights_.copy(weights(stage), which, part);
  }
  __device__ void copy_inputs(unsigned stage, std::uint32_t which, unsigned part) const {
    of_inputs_.copy(inputs(stage), which, part);
  }

 private:
  std::byte* stages_ = dynamic_shared<std::byte>();
  weight_copier<t> of_weights_;
  stage_copier<t, t::columns, false> of_inputs_;
};

/// A warp's place in its block, and a lane's in its warp.
template <typename t>
struct place {
  unsigned lane = threadIdx.x % 32, g = lane / 4, t4 = lane % 4;
  unsigned first_output = threadIdx.x / 32 % t::warps_m * (t::outputs / t::warps_m);
  unsigned first_column = threadIdx.x / 32 / t::warps_m * (t::columns / t::warps_n);
};

/// The weights of 16 inputs, of a warp.
template <typename Element, typename t>
struct weight_operands {
  fragment_a a[t::tiles_m];

  __device__ void load(const std::byte* weights, const placed_gemm&, const place<t>& at, unsigned k) {
#pragma unroll
    for (int i = 0; i < t::tiles_m; ++i)
      load_fragments(weights + t::place(at.first_output + i * 16 + at.lane % 16, k * 2 + at.lane / 16), a[i]);
  }
  __device__ void get(int i, fragment_a& to) const {
#pragma unroll
    for (int r = 0; r < 4; ++r) to[r] = a[i][r];
  }
};
template <typename Element, typename t>
requires t::coded struct weight_operands<Element, t> {
  code_words<t::code> codes[t::tiles_m][2];  // of the lower and the upper outputs, and of two steps
  unsigned step;
  scale_pair scales[t::tiles_m];

  /// `p`: has block_bytes and scale_step.
  template <typename Matrix>
  __device__ void load(const std::byte* weights, const Matrix& p, const place<t>& at, unsigned k) {
    step = k % 2;
#pragma unroll
    for (int i = 0; i < t::tiles_m; ++i) {
      const std::byte* const block = weights + (at.first_output / panel_outputs + i) * p.block_bytes;
#pragma unroll
      for (unsigned upper = 0; upper < 2; ++upper)
        codes[i][upper] =
            load_words<t::code>(k / 2, upper, at.lane, [&](unsigned bytes) { return load_word(block + bytes); });
      scales[i] = load_word(block + code_bytes_of_block(t::code) + k / 2 * p.scale_step + at.g * 4);
    }
  }
  __device__ void get(int i, fragment_a& to) const { decoder<Element, t::code>()(codes[i], step, scales[i], to); }
};

/// The operands of 16 inputs.
template <typename Element, typename t>
struct operands {
  weight_operands<Element, t> weights;
  fragment_b b[t::tiles_n];

  /// `k`: which 16 inputs of a stage.
  __device__ void load(const ring<t>& memory, const placed_gemm& p, unsigned stage, const place<t>& at, unsigned k) {
    const std::byte* const inputs = memory.inputs(stage);
    weights.load(memory.weights(stage), p, at, k);
    if constexpr (t::tiles_n == 1) {  // the other half is not used: a load of two matrices would take as long
      fragment_a both;
      load_fragments(inputs + t::place(at.first_column + at.lane % 8, k * 2 + at.lane / 8 % 2), both);
      b[0][0] = both[0], b[0][1] = both[1];
    } else {
#pragma unroll
      for (int j = 0; j < t::tiles_n; j += 2) {
        fragment_a both;
        const unsigned row = at.first_column + j * 8 + at.lane / 16 * 8 + at.lane % 8;
        load_fragments(inputs + t::place(row, k * 2 + at.lane / 8 % 2), both);
        b[j][0] = both[0], b[j][1] = both[1], b[j + 1][0] = both[2], b[j + 1][1] = both[3];
      }
    }
  }
};

template <typename t>
using tile_sums = float[t::tiles_m][t::tiles_n][4];

template <typename Element, typename t>
__device__ void multiply_operands(const operands<Element, t>& of, tile_sums<t>& sums) {
#pragma unroll
  for (int i = 0; i < t::tiles_m; ++i) {
    fragment_a a;
    of.weights.get(i, a);
#pragma unroll
    for (int j = 0; j < t::tiles_n; ++j) multiply_fragments<Element>(sums[i][j], a, of.b[j]);
  }
}

/// before = (is_first ? 0 : before) + sums; sums = 0
template <typename t>
__device__ void end_segment(tile_sums<t>& before, tile_sums<t>& sums, bool is_first) {
#pragma unroll
  for (int i = 0; i < t::tiles_m; ++i)
#pragma unroll
    for (int j = 0; j < t::tiles_n; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        before[i][j][e] = is_first ? sums[i][j][e] : before[i][j][e] + sums[i][j][e], sums[i][j][e] = 0;
}

/// Whether a block requests weights before it waits for its inputs.
__device__ inline bool waits(const placed_gemms& all, const work_item& work) {
  return all.pdl || work.gemm->when == turn::second;
}
/// Waits for the inputs of a block that waits(); all threads call it.
__device__ inline void await_inputs(const placed_gemms& all, const work_item& work) {
  if (all.pdl_early_launch) pdl_launch_dependents();
  const bool is_second = work.gemm->when == turn::second;
  if (!all.first_beside) {
    pdl_wait();
    if (!is_second) return;
  }
  if (threadIdx.x == 0) all.done.await_count(is_second ? all.done.writers : 1), all.done.count_reader();
  __syncthreads();
}

/// Computes the sums of an item's tile. `end_segment(i)` is called before the first tile of each later segment.
/// Operands are loaded while the ones before them are multiplied, also across stages. `Gemms`: placed_gemms or derived.
template <typename Element, typename t, typename Gemms, typename End>
__device__ void multiply(const Gemms& all, const work_item& work, tile_sums<t>& sums, End end_segment) {
  const place<t> at;
  constexpr unsigned ahead = t::stages - 1;
  const ring<t> memory(all, work);
  const std::uint32_t count = work.count, segment_depth = work.gemm->segment_depth * t::stages_of_tile;
  const auto copy_first = [&](bool weights, bool inputs, unsigned i) {
#pragma unroll
    for (unsigned part = 0; part < t::steps - 1; ++part) {
      if (weights) memory.copy_weights(i, i, part);
      if (inputs) memory.copy_inputs(i, i, part);
    }
  };
  const bool has_weights = waits(all, work);
  if (has_weights) {
#pragma unroll
    for (unsigned i = 0; i < ahead; ++i)
      if (i < count) copy_first(true, false, i);
    await_inputs(all, work);
  }
#pragma unroll
  for (unsigned i = 0; i < ahead; ++i) {
    if (i < count) copy_first(!has_weights, true, i);
    end_packets();
  }
  if (count <= ahead) pdl_launch_dependents();
  await_packets<ahead - 1>();
  __syncthreads();
  const placed_gemm& p = *work.gemm;
  operands<Element, t> of[2];
  of[0].load(memory, p, 0, at, 0);
  unsigned stage = 0, free_stage = ahead;
  std::uint32_t in_segment = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if constexpr (t::adds_up) {
      if (in_segment == segment_depth) end_segment(i), in_segment = 0;
      ++in_segment;
    }
    const bool copies = i + ahead < count;
    const unsigned next = stage + 1 == t::stages ? 0 : stage + 1;
#pragma unroll
    for (unsigned k = 0; k < t::steps; ++k) {
      if (k < t::steps - 1) {
        of[(k + 1) % 2].load(memory, p, stage, at, k + 1);
        if (copies) memory.copy_weights(free_stage, i + ahead, k), memory.copy_inputs(free_stage, i + ahead, k);
      } else {
        end_packets();
        await_packets<ahead - 1>();
        __syncthreads();  // the next stage has arrived, and this one has been read
        if (i + 1 < count) of[0].load(memory, p, next, at, 0);
      }
      multiply_operands<Element, t>(of[k % 2], sums);
    }
    if (i + ahead + 1 == count) pdl_launch_dependents();
    free_stage = stage, stage = next;
  }
}

template <typename t>
__device__ void copy_sums(const tile_sums<t>& from, tile_sums<t>& to) {
#pragma unroll
  for (int i = 0; i < t::tiles_m; ++i)
#pragma unroll
    for (int j = 0; j < t::tiles_n; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) to[i][j][e] = from[i][j][e];
}

}  // namespace skein::kernels::gpu::mma
