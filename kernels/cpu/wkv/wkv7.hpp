#pragma once
#include <cstddef>

#include "kernels/cpu/wkv/head_state.hpp"

/// The WKV recurrence of RWKV-7 with the element-wise operations around it, one head at a time.
namespace skein::kernels::cpu {

/// One head's part of a layer's vectors, [N] each.
struct wkv7_head {
  const float *w0, *a0, *v0;  ///< v0 is null in layer 0, where v is not mixed
  const float *k_k, *k_a, *r_k, *ln_x_weight, *ln_x_bias;
  std::size_t size;  ///< N, 1 .. head_size_max
};

/// One head's part of the rows of one run. Each member points to the first row; rows are `stride` floats apart.
struct wkv7_rows {
  const float *r, *k, *v;          ///< projections
  const float *w, *a, *v_mix, *g;  ///< outputs of the low-rank pairs, before bias and sigmoid; v_mix null in layer 0
  const float* v_first;            ///< v of layer 0
  float* y;                        ///< output; may alias any input
  std::size_t stride, rows;
};

/// For each row in order, with the letters and equations of ops.hpp:
///   w = decay(w0 + w), a = sigmoid(a0 + a), kk = normalise(k * k_k), k = k * (1 + (a - 1) * k_a),
///   v = v + (v_first - v) * sigmoid(v0 + v_mix), S and y by wkv7, then y = (group_norm(y) + bonus) * g
///
/// state: as in head_state.hpp.
void wkv7(const wkv7_head& head, const wkv7_rows& rows, float* state);

}  // namespace skein::kernels::cpu
