#pragma once
#include "kernels/gpu/ops/shift_by_row.hpp"
#include "kernels/gpu/types/device_matrix.hpp"

namespace skein::kernels::gpu {

/// The second products of the low-rank pairs of RWKV-6 and the token shifts that they are for, in one kernel on tensor
/// cores, for any number of rows:
///   out[i][t] = now + (before - now) * (mix[i] + pairs[i] low[t, i])
/// shift      : as of shift_for_shares, which must have run, with all mixes and outs; x_prev becomes the run's last row
/// statistics : of shift_for_shares
/// low        : [rows, shifts_by_row_max * padded(inputs)] of the element type, or partial sums of the first product,
///              to which tanh is yet to be applied
/// whole      : room for these rows where partial sums are added up first
/// pairs      : [width, inputs] of the element type
struct mix_by_token_parameters {
  token_shift_parameters shift;
  const row_statistics* statistics = nullptr;
  gemm_rows low;
  void* whole = nullptr;
  std::uint32_t whole_stride = 0;
  device_matrix pairs[shifts_by_row_max];
};

/// Whether the current device has the kernel for these pairs.
[[nodiscard]] bool can_mix_by_token(element type, const device_matrix& pair);
[[nodiscard]] result<void> mix_by_token(stream_handle in, const device_batch& rows, element type,
                                        const mix_by_token_parameters& of);

}  // namespace skein::kernels::gpu
