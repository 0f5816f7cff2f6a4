#pragma once
#include "kernels/gpu/embed.hpp"

namespace skein::kernels::gpu {

inline constexpr std::uint32_t token_shifts_max = 6;  ///< r w k v a g of time mixing

/// Layer norm and token shift in front of a mix, for up to six mixes at once:
///   sum = x[t] + added[t];  now = layer_norm(sum),  before = that of the row before, or the slot's x_prev at the start
///   of a run out[i][t] = now + (before - now) * mix[i];  x_prev = now of the run's last row
/// sum    : [rows, width] fp32, other memory than x; null when nothing is added
/// x_prev : of `kept_type`, f32 or f16, of slot 0; the next slot's lies `slot_bytes` further
/// mix[i] : [width] fp32;  out[i] : [rows, out_stride] of `type`
/// forgets : nobody reads x, added and `spent` ([rows, spent_bytes], anything) afterwards; what they hold may be lost
/// (device/forget.cuh). Their rows and parts begin at multiples of 128 bytes.
/// Each row's numbers hang on its own run only, and not on where the run was cut: `before` is rounded as x_prev is.
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
  bool forgets = false;
  const void* spent = nullptr;
  std::size_t spent_bytes = 0;
};
[[nodiscard]] result<void> token_shift(stream_handle in, const device_batch& rows, element type,
                                       const token_shift_parameters& of);

}  // namespace skein::kernels::gpu
