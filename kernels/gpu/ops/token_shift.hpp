#pragma once
#include "kernels/gpu/ops/embed.hpp"

namespace skein::kernels::gpu {

inline constexpr std::uint32_t token_shifts_max = 6;  ///< r w k v a g of time mixing

/// Layer norm and token shift before a mix, for up to six mixes at once:
///   sum = x[t] + added[t];  now = layer_norm(sum);  before = now of row t - 1, or the slot's x_prev if t begins a run
///   out[i][t] = now + (before - now) * mix[i];  x_prev = now of the run's last row
/// sum    : [rows, width] fp32, must not alias x; null if nothing is added
/// x_prev : of `kept_type`, f32 or f16, for slot 0; slots are `slot_bytes` apart
/// mix[i] : [width] fp32;  out[i] : [rows, out_stride] of `type`
/// forgets : x, added and `spent` ([rows, spent_bytes], any type) are not read afterwards, so their contents may be
/// discarded (device/discard.cuh). Their rows and partial sums begin at multiples of 128 bytes.
/// The result of a row depends only on its own run, not on where the run was cut: `before` is rounded as x_prev is.
struct token_shift_parameters {
  residual from;
  float* sum = nullptr;
  norm_weights norm;
  void* x_prev = nullptr;
  element kept_type = element::f32;
  std::size_t slot_bytes = 0;
  std::uint32_t width = 0, out_stride = 0, shifts = 0;
  const float* mix[token_shifts_max] = {};
  void* out[token_shifts_max] = {};
  bool discards = false;
  const void* spent = nullptr;
  std::size_t spent_bytes = 0;
};
[[nodiscard]] result<void> token_shift(stream_handle in, const device_batch& rows, element type,
                                       const token_shift_parameters& of);

}  // namespace skein::kernels::gpu
