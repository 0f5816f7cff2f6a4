#pragma once
#include "kernels/gpu/batch.hpp"
#include "kernels/gpu/elements.hpp"
#include "kernels/gpu/runtime/runtime.hpp"

namespace skein::kernels::gpu {

inline constexpr std::uint32_t head_size = 64;  ///< N; the one that these kernels know

/// The second half of a low-rank pair: [rank, C] of the element type, as a checkpoint has it; and the rows that its
/// first half left, [rows, stride].
struct rank_out {
  const void* matrix = nullptr;
  const void* inner = nullptr;
  std::uint32_t rank = 0, stride = 0;
};

/// Everything of a layer's time mixing between its projections in and its projection out, head by head and token by
/// token (RWKV-7 paper; kernels/reference/rwkv7_stages.cpp is the same in plain words):
///   w = decay(w0 + w2 inner_w)   a = sigmoid(a0 + a2 inner_a)   g = g2 inner_g
///   v = v + (v_first - v) * sigmoid(v0 + v2 inner_v);  in the first layer v_first = v instead
///   kk = normalise(k * k_k)      k = k * (1 + (a - 1) * k_a)
///   S <- S diag(w) - (S kk) (a * kk)^T + v k^T          y = S r
///   y = (group_norm(y, ln_x) + v * sum(r * k * r_k)) * g
/// r k v y v_first : [rows, width] of the element type;  vectors : [width] fp32
/// state           : of slot 0 and this layer, heads back to back, each as state.hpp says; updated in place. The next
///                   slot's lies `slot_bytes` further
/// Arithmetic is fp32. A state stored in 16 bits is rounded after every token, so that it does not matter where a
/// sequence was cut into runs.
struct time_mix_parameters {
  const void *r = nullptr, *k = nullptr, *v = nullptr;
  void *v_first = nullptr, *y = nullptr;
  rank_out w, a, v_mix, g;
  const float *w0 = nullptr, *a0 = nullptr, *v0 = nullptr, *k_k = nullptr, *k_a = nullptr, *r_k = nullptr;
  const float *ln_x_weight = nullptr, *ln_x_bias = nullptr;
  void* state = nullptr;
  std::size_t slot_bytes = 0;
  std::uint32_t width = 0;
  bool first_layer = false;
};
[[nodiscard]] result<void> time_mix(stream_handle in, const device_batch& rows, element type, element state_type,
                                    const time_mix_parameters& of);

}  // namespace skein::kernels::gpu
