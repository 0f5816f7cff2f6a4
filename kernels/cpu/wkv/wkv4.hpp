#pragma once
#include <cstddef>

/// The WKV recurrence of RWKV-4 for some neighbouring channels.
namespace skein::kernels::cpu {

/// The rows of one run. Each member points to the first channel of the first row; rows are `stride` floats apart.
struct wkv4_rows {
  const float *r, *k, *v;  ///< receptance after the sigmoid, projections
  float* y;                ///< output; may alias any input
  std::size_t stride, rows;
};

/// The state of the channels: numerator, denominator and exponent (ops.hpp).
struct wkv4_channels {
  float *aa, *bb, *pp;
  const float* decay;  ///< what a token subtracts from the exponent: exp(time_decay)
  const float* bonus;
  std::size_t count;
};

/// For each row in order: y = r * wkv4(k, v), with the equations of ops.hpp.
void wkv4(const wkv4_channels& channels, const wkv4_rows& rows);

}  // namespace skein::kernels::cpu
