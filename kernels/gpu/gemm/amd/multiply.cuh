#pragma once
#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/gemm/amd/tiles.cuh"

/// The sums of a tile for the kernel of matmul_amd.cu: the two stages in shared memory and the products of a warp.
namespace skein::kernels::gpu::amd {

/// A thread's part of the stage that is on its way: AMD GPUs copy to shared memory through registers.
template <typename t>
class next_stage {
 public:
  __device__ next_stage(const work_item& work, std::uint32_t rows) {
#pragma unroll
    for (unsigned i = 0; i < t::packets_of_thread; ++i) {
      const gemm& p = *work.of;
      const unsigned line = line_of(i);
      const bool is_weights = line < t::outputs;
      const std::uint32_t row = is_weights ? work.output + line : work.row + line - t::outputs;
      const std::uint32_t end = is_weights ? padded(p.matrix.outputs) : rows;
      const std::size_t stride = is_weights ? padded(p.matrix.inputs) : p.in_stride;
      from_[i] = row < end ? static_cast<const std::uint16_t*>(is_weights ? p.matrix.data : p.in) + row * stride +
                                 work.first * matrix_tile + packet_of(i) * 8
                           : nullptr;
    }
  }

  /// Requests stage `which` of the item.
  __device__ void load(std::uint32_t which) {
#pragma unroll
    for (unsigned i = 0; i < t::packets_of_thread; ++i)
      if (from_[i])
        packets_[i] = *reinterpret_cast<const packet<std::uint32_t>*>(from_[i] + which * t::depth);
      else
        packets_[i] = {};
  }
  __device__ void put(std::byte* stage) const {
#pragma unroll
    for (unsigned i = 0; i < t::packets_of_thread; ++i)
      *reinterpret_cast<packet<std::uint32_t>*>(stage + t::place(line_of(i), packet_of(i))) = packets_[i];
  }

 private:
  __device__ static unsigned line_of(unsigned i) { return (i * t::threads + threadIdx.x) / t::packets_of_row; }
  __device__ static unsigned packet_of(unsigned i) { return (i * t::threads + threadIdx.x) % t::packets_of_row; }

  const std::uint16_t* from_[t::packets_of_thread];
  packet<std::uint32_t> packets_[t::packets_of_thread];
};

/// Loads the operands of `count` adjacent inputs from `input` on, of a line of a stage.
template <typename t, unsigned count>
__device__ void load_line(const std::byte* stage, unsigned line, unsigned input, std::uint32_t (&words)[count / 2]) {
  constexpr unsigned at_once = count < 8 ? count : 8;
#pragma unroll
  for (unsigned i = 0; i < count; i += at_once) {
    const std::byte* const at = stage + t::place(line, (input + i) / 8) + (input + i) % 8 * 2;
    memcpy(&words[i / 2], __builtin_assume_aligned(at, at_once * 2), at_once * 2);
  }
}

template <typename t, matrix_unit unit>
using tile_sums = float[division<t>::tiles_m][division<t>::tiles_n][unit_layout<unit>::sums];

/// sums += the products of a stage.
template <typename Element, typename t, matrix_unit unit>
__device__ void multiply_stage(const std::byte* stage, const place<t>& at, tile_sums<t, unit>& sums) {
  using layout = unit_layout<unit>;
  using cut = division<t>;
#pragma unroll
  for (unsigned k = 0; k < t::depth; k += layout::depth) {
    const unsigned input = k + layout::first_input(at.lane);
    typename unit_operands<unit>::a a[cut::tiles_m];
    typename unit_operands<unit>::b b[cut::tiles_n];
#pragma unroll
    for (unsigned i = 0; i < cut::tiles_m; ++i)
#pragma unroll
      for (unsigned o = 0; o < layout::outputs_of_lane; ++o)
        load_line<t, layout::elements>(stage, at.first_output + i * 16 + layout::output(at.lane, o), input,
                                       a[i].words[o]);
#pragma unroll
    for (unsigned j = 0; j < cut::tiles_n; ++j)
#pragma unroll
      for (unsigned r = 0; r < layout::rows_of_lane; ++r)
        load_line<t, layout::elements>(stage, t::outputs + at.first_column + j * 16 + layout::row(at.lane, r), input,
                                       b[j].words[r]);
#pragma unroll
    for (unsigned i = 0; i < cut::tiles_m; ++i)
#pragma unroll
      for (unsigned j = 0; j < cut::tiles_n; ++j) multiply_units<unit, Element>(sums[i][j], a[i], b[j]);
  }
}

/// Computes the sums of an item's tile. `end_segment()` is called before the first tile of each later segment.
template <typename Element, typename t, matrix_unit unit, typename End>
__device__ void multiply(const work_item& work, std::uint32_t rows, const place<t>& at, tile_sums<t, unit>& sums,
                         End end_segment) {
  constexpr std::uint32_t stages_of_tile = matrix_tile / t::depth;
  std::byte* const stages = dynamic_shared<std::byte>();
  const std::uint32_t count = work.count * stages_of_tile, of_segment = segment_tiles(*work.of) * stages_of_tile;
  next_stage<t> next(work, rows);
  next.load(0);
  next.put(stages);
  std::uint32_t in_segment = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    __syncthreads();  // this stage is in shared memory, and the one before has been read
    if (i + 1 < count) next.load(i + 1);
    if (in_segment == of_segment) end_segment(), in_segment = 0;
    ++in_segment;
    multiply_stage<Element, t, unit>(stages + i % 2 * t::stage_bytes, at, sums);
    if (i + 1 < count) next.put(stages + (i + 1) % 2 * t::stage_bytes);
  }
}

}  // namespace skein::kernels::gpu::amd
