#pragma once
#include "kernels/gpu/gemm/amd/multiply.cuh"
#include "kernels/gpu/gemm/epilogue.cuh"

/// The epilogues of the kernel of matmul_amd.cu.
namespace skein::kernels::gpu::amd {

/// Stores, or adds, `count` adjacent outputs of a row; those from `left` on are beyond the matrix.
template <typename Stored, unsigned count>
__device__ void store_adjacent(Stored* to, const float (&values)[count], std::uint32_t left, bool adds) {
  float sums[count];
#pragma unroll
  for (unsigned i = 0; i < count; ++i) sums[i] = values[i];
  if (left >= count && reinterpret_cast<std::uintptr_t>(to) % (count * sizeof(Stored)) == 0) {
    if (adds) {
      float before[count];
      load_floats(to, before);
#pragma unroll
      for (unsigned i = 0; i < count; ++i) sums[i] = before[i] + sums[i];
    }
    return store_floats(to, sums);
  }
#pragma unroll
  for (unsigned i = 0; i < count; ++i)
    if (i < left) to[i] = from_float<Stored>(adds ? to_float(to[i]) + sums[i] : sums[i]);
}

template <typename Stored, typename t, matrix_unit unit>
__device__ void store_as(const work_item& work, std::uint32_t rows, const place<t>& at, const tile_sums<t, unit>& sums,
                         Stored* out) {
  using layout = unit_layout<unit>;
  constexpr unsigned at_once = layout::adjacent < 4 ? layout::adjacent : 4;
  const gemm& p = *work.of;
#pragma unroll
  for (unsigned i = 0; i < division<t>::tiles_m; ++i)
#pragma unroll
    for (unsigned j = 0; j < division<t>::tiles_n; ++j)
#pragma unroll
      for (unsigned r = 0; r < layout::runs; ++r)
#pragma unroll
        for (unsigned o = 0; o < layout::adjacent; o += at_once) {
          const std::uint32_t output = work.output + at.first_output + i * 16 + layout::first_output(at.lane) + o;
          const std::uint32_t row = work.row + at.first_column + j * 16 + layout::row(at.lane, r);
          if (row >= rows || output >= p.matrix.outputs) continue;
          float values[at_once];
#pragma unroll
          for (unsigned e = 0; e < at_once; ++e)
            values[e] = apply_activation(p.how.function, sums[i][j][r * layout::adjacent + o + e]);
          store_adjacent(out + std::size_t{row} * p.out_stride + output, values, p.matrix.outputs - output,
                         p.how.to == destination::add_f32);
        }
}

template <typename Element, typename t, matrix_unit unit>
__device__ void store(const work_item& work, std::uint32_t rows, const place<t>& at, tile_sums<t, unit>& sums) {
  const gemm& p = *work.of;
#pragma unroll
  for (unsigned i = 0; i < division<t>::tiles_m; ++i)
#pragma unroll
    for (unsigned j = 0; j < division<t>::tiles_n; ++j) arrange_sums<unit>(sums[i][j], at.lane);
  switch (p.how.to) {
    case destination::add_f32:
    case destination::f32:
    case destination::parts:
      return store_as<float, t, unit>(work, rows, at, sums, static_cast<float*>(p.out) + work.segment * p.part_stride);
    case destination::f16: return store_as<half, t, unit>(work, rows, at, sums, static_cast<half*>(p.out));
    default: return store_as<Element, t, unit>(work, rows, at, sums, static_cast<Element*>(p.out));
  }
}

}  // namespace skein::kernels::gpu::amd
