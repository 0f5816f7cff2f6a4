#pragma once
#include "kernels/gpu/device/operands.cuh"
#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/gemm/matmul.hpp"

/// Operands of e4m3 as the kernels of sm_90a read them, and the scales of their sums. CUDA and the emulator.
namespace skein::kernels::gpu {

/// Operands whose type is that of the results.
template <typename Element>
using own_type = Element;

/// The scales of a product: sum * of_outputs[output] * of_rows[row]. Both are powers of two, so nothing is rounded, and
/// partial sums that are scaled add up to the bits of a scaled sum.
struct sum_scales {
  const float *of_outputs, *of_rows;
};

/// The operands of a product as rows of 16-bit units, of which e4m3 numbers share one in pairs. `depth`: units from one
/// row of weights to the next; `stride`: of inputs.
struct operands_in_memory {
  const void *weights, *inputs;
  std::uint32_t depth, stride;
  sum_scales scales;

  explicit operands_in_memory(const gemm& p)
      : weights(p.matrix.data),
        inputs(rounds_inputs(p) ? p.rounded.codes : p.in),
        depth(p.matrix.depth() * matrix_tile),
        stride(rounds_inputs(p) ? depth : p.in_stride),
        scales{p.matrix.row_scales, p.rounded.scales} {}
};

/// Scales the sums of a warpgroup, in the layout of device/wgmma.cuh: 64 outputs from `first_output` on, by `columns`
/// rows.
template <int columns, int size>
__device__ void scale_sums(const sum_scales& scales, std::uint32_t first_output, std::uint32_t first_row,
                           float (&sums)[size]) {
  static_assert(columns / 2 <= size);
  const unsigned warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const float* const outputs = scales.of_outputs + first_output + warp * 16 + lane / 4;
  const float of_output[2] = {outputs[0], outputs[8]};
  const float* const rows = scales.of_rows + first_row + lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < columns / 2; j += 4) {
    const auto of_row = load_side_by_side<2>(rows + 2 * j);
    sums[j] *= of_output[0] * of_row.values[0], sums[j + 1] *= of_output[0] * of_row.values[1];
    sums[j + 2] *= of_output[1] * of_row.values[0], sums[j + 3] *= of_output[1] * of_row.values[1];
  }
}

}  // namespace skein::kernels::gpu
