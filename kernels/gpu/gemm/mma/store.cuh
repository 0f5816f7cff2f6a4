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
        const std::uint32_t output = work.output + at.first_output + (t::turned ? j * 8 + narrow : i * 16 + wide);
        const std::uint32_t row = work.row + at.first_column + (t::turned ? wide : j * 8 + narrow);
        if (output < p.outputs && row < rows) put(std::size_t{row} * p.out_stride + output, sums[i][j][e]);
      }
}

/// Writes rows of a warp's outputs that are laid down in shared memory, 16 bytes at a time; `row`: the first one.
template <typename Stored, typename t>
__device__ void write_rows(const work_item& work, std::uint32_t rows, std::uint32_t row, const place<t>& at,
                           const float* laid, Stored* out) {
  constexpr unsigned size = packet<Stored>::size, in_row = t::tiles_m * 16 / size;
  const placed_gemm& p = *work.gemm;
#pragma unroll 2
  for (unsigned q = at.lane; q < t::rows_at_once * in_row; q += 32) {
    const unsigned line = q / in_row, column = q % in_row * size;
    const std::uint32_t output = work.output + at.first_output + column;
    if (row + line >= rows || output >= p.outputs) continue;
    float values[size];
#pragma unroll
    for (unsigned e = 0; e < size; ++e) values[e] = laid[line * t::laid_floats + column + e];
    apply_activation_fast(p.how.function, values);
    packet<Stored> rounded;
    from_floats(values, rounded.values);
    Stored* const to = out + std::size_t{row + line} * p.out_stride + output;
    if (p.in_packets && output + size <= p.outputs)
      store_packet(to, rounded);
    else
#pragma unroll
      for (unsigned e = 0; e < size; ++e)
        if (output + e < p.outputs) to[e] = rounded.values[e];
  }
}

/// Calls write(output) with the output as a pointer to elements of its type.
template <typename Element, typename Write>
__device__ void with_output(const work_item& work, Write write) {
  const placed_gemm& p = *work.gemm;
  switch (p.how.to) {
    case destination::f32:
    case destination::parts: return write(static_cast<float*>(p.out) + work.segment * p.part_stride);
    case destination::f16: return write(static_cast<half*>(p.out));
    default: return write(static_cast<Element*>(p.out));
  }
}

/// Stores the sums of a warp by way of shared memory, some rows at a time. Loops there and not a copy of the code for
/// each sum: those would be most of the kernel.
template <typename Element, typename t>
__device__ void store_laid_down(const work_item& work, std::uint32_t rows, const place<t>& at,
                                const tile_sums<t>& sums) {
  float* const laid = dynamic_shared<float>() + threadIdx.x / 32 * t::rows_at_once * t::laid_floats;
  __syncthreads();  // the stages have been read
#pragma unroll
  for (int first = 0; first < t::tiles_n; first += t::rows_at_once / 8) {
    warp_barrier();
#pragma unroll
    for (int j = 0; j < t::rows_at_once / 8; ++j)
#pragma unroll
      for (int i = 0; i < t::tiles_m; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          laid[(j * 8 + at.t4 * 2 + e % 2) * t::laid_floats + i * 16 + at.g + e / 2 * 8] = sums[i][first + j][e];
    warp_barrier();
    const std::uint32_t row = work.row + at.first_column + first * 8;
    with_output<Element>(work, [&](auto* out) { write_rows(work, rows, row, at, laid, out); });
  }
}

template <typename t>
__device__ void add_to_output(const work_item& work, std::uint32_t rows, const place<t>& at, const tile_sums<t>& sums) {
  auto* const floats = static_cast<float*>(work.gemm->out);
  // Added by the L2 cache, in this order for each element; here each addition would wait for a load.
  put_each<t>(work, rows, at, sums, [&](std::size_t i, float sum) { atomicAdd(floats + i, sum); });
}

template <typename Element, typename t>
__device__ void store(const work_item& work, std::uint32_t rows, const place<t>& at, tile_sums<t>& sums) {
  const epilogue& how = work.gemm->how;
  if (how.to == destination::add_f32) return add_to_output<t>(work, rows, at, sums);
  if constexpr (t::lays_down) {
    store_laid_down<Element, t>(work, rows, at, sums);
  } else {
    apply_activation_fast(how.function, reinterpret_cast<float(&)[t::tiles_m * t::tiles_n * 4]>(sums));
    with_output<Element>(work, [&]<typename Stored>(Stored* out) {
      put_each<t>(work, rows, at, sums, [&](std::size_t i, float sum) { out[i] = from_float<Stored>(sum); });
    });
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
