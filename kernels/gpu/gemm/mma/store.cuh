#pragma once
#include "kernels/gpu/device/convert.cuh"
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/gemm/epilogue.cuh"
#include "kernels/gpu/gemm/mma/multiply.cuh"

/// The epilogues of the kernel of kernel.cuh.
namespace skein::kernels::gpu::mma {

/// put(index, sum) for each of a lane's sums within the output.
template <typename t, typename Put>
__device__ void put_each(const work_item& work, std::uint32_t rows, const place<t>& at, const tile_sums<t>& sums,
                         Put put) {
  const placed_gemm& p = *work.gemm;
#pragma unroll
  for (int j = 0; j < t::tiles_n; ++j)
#pragma unroll
    for (int i = 0; i < t::tiles_m; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const std::uint32_t wide = at.g + e / 2 * 8, narrow = at.t4 * 2 + e % 2;  // places within the instruction
        const std::uint32_t output = work.output + at.first_output + (t::turned ? narrow : i * 16 + wide);
        const std::uint32_t row = work.row + at.first_column + (t::turned ? wide : j * 8 + narrow);
        if (output < p.outputs && row < rows) put(std::size_t{row} * p.out_stride + output, sums[i][j][e]);
      }
}

/// Stores the sums of a warp 16 bytes at a time: lays down eight rows in shared memory, then writes whole rows.
template <typename Stored, typename t>
__device__ void store_packets(const work_item& work, std::uint32_t rows, const place<t>& at, const tile_sums<t>& sums,
                              Stored* out) {
  constexpr unsigned size = packet<Stored>::size, width = t::tiles_m * 16, in_row = width / size;
  const placed_gemm& p = *work.gemm;
  float* const piece = dynamic_shared<float>() + threadIdx.x / 32 * 8 * t::piece_floats;
#pragma unroll
  for (int j = 0; j < t::tiles_n; ++j) {
    warp_barrier();
#pragma unroll
    for (int i = 0; i < t::tiles_m; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        piece[(at.t4 * 2 + e % 2) * t::piece_floats + i * 16 + at.g + e / 2 * 8] = sums[i][j][e];
    warp_barrier();
#pragma unroll
    for (unsigned q = at.lane; q < 8 * in_row; q += 32) {
      const unsigned line = q / in_row, column = q % in_row * size;
      const std::uint32_t output = work.output + at.first_output + column;
      const std::uint32_t row = work.row + at.first_column + j * 8 + line;
      if (row >= rows || output >= p.outputs) continue;
      float values[size];
#pragma unroll
      for (unsigned e = 0; e < size; ++e) values[e] = piece[line * t::piece_floats + column + e];
      packet<Stored> rounded;
      from_floats(values, rounded.values);
      Stored* const to = out + std::size_t{row} * p.out_stride + output;
      if (output + size <= p.outputs)
        store_packet(to, rounded);
      else
        for (unsigned e = 0; output + e < p.outputs; ++e) to[e] = rounded.values[e];
    }
  }
}

template <typename Stored, typename t>
__device__ void store_as(const work_item& work, std::uint32_t rows, const place<t>& at, const tile_sums<t>& sums,
                         Stored* out) {
  if constexpr (t::lays_down)
    if (work.gemm->in_packets) {
      __syncthreads();  // the stages have been read
      return store_packets<Stored, t>(work, rows, at, sums, out);
    }
  put_each<t>(work, rows, at, sums, [&](std::size_t i, float sum) { out[i] = from_float<Stored>(sum); });
}

template <typename t>
__device__ void add_to_output(const work_item& work, std::uint32_t rows, const place<t>& at, const tile_sums<t>& sums) {
  auto* const floats = static_cast<float*>(work.gemm->out);
  // Added by the L2 cache, in this order for each element; here each addition would wait for a load.
  put_each<t>(work, rows, at, sums, [&](std::size_t i, float sum) { atomicAdd(floats + i, sum); });
}

template <typename Element, typename t>
__device__ void store(const work_item& work, std::uint32_t rows, const place<t>& at, tile_sums<t>& sums) {
  const placed_gemm& p = *work.gemm;
  apply_activation_fast(p.how.function, reinterpret_cast<float(&)[t::tiles_m * t::tiles_n * 4]>(sums));
  switch (p.how.to) {
    case destination::add_f32: return add_to_output<t>(work, rows, at, sums);
    case destination::f32:
    case destination::parts:
      return store_as<float, t>(work, rows, at, sums, static_cast<float*>(p.out) + work.segment * p.part_stride);
    case destination::f16: return store_as<half, t>(work, rows, at, sums, static_cast<half*>(p.out));
    default: return store_as<Element, t>(work, rows, at, sums, static_cast<Element*>(p.out));
  }
}

template <typename t>
__device__ void clear(tile_sums<t>& sums) {
#pragma unroll
  for (int i = 0; i < t::tiles_m; ++i)
#pragma unroll
    for (int j = 0; j < t::tiles_n; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[i][j][e] = 0;
}

}  // namespace skein::kernels::gpu::mma
