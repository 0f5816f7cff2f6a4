#pragma once
#include <cstddef>

#include "kernels/cpu/wkv/head_state.hpp"

/// The WKV recurrence of RWKV-5 and 6 with the element-wise operations around it, one head at a time.
namespace skein::kernels::cpu {

/// One head's part of a layer's vectors, [N] each.
struct wkv6_head {
  const float* decay;  ///< v5: the decay itself, exp(-exp(time_decay)); v6: time_decay, to which rows.w is added
  const float* bonus;  ///< u
  const float *ln_x_weight, *ln_x_bias;
  std::size_t size;  ///< N, 1 .. head_size_max
};

/// One head's part of the rows of one run. Each member points to the first row; rows are `stride` floats apart.
struct wkv6_rows {
  const float *r, *k, *v;  ///< projections
  const float* w;          ///< v6: output of the decay's low-rank pair; null in v5
  const float* g;          ///< the gate after silu; null in models without a gate
  float* y;                ///< output; may alias any input
  std::size_t stride, rows;
};

/// For each row in order, with the letters and equations of ops.hpp: w = exp(-exp(decay + w)), S and y by wkv6, then
/// y = group_norm(y) * g. state: as in head_state.hpp.
void wkv6(const wkv6_head& head, const wkv6_rows& rows, float* state);

}  // namespace skein::kernels::cpu
