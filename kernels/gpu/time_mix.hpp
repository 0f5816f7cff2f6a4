#pragma once
#include "kernels/gpu/batch.hpp"
#include "kernels/gpu/elements.hpp"
#include "kernels/gpu/product_rows.hpp"
#include "kernels/gpu/runtime/runtime.hpp"

namespace skein::kernels::gpu {

inline constexpr std::uint32_t head_size = 64;       ///< N of all released models, which most kernels are made for
inline constexpr std::uint32_t head_size_max = 256;  ///< of time_mix_any_head

/// What the outputs of the low-rank pairs are stored as. They are worth 11 bits: a decay near 1 is taken to the power
/// of a sequence's length.
[[nodiscard]] constexpr element gate_element(element type) { return type == element::f32 ? type : element::f16; }

/// Everything of a layer's time mixing between its products in and its product out, head by head and token by token
/// (RWKV-7 paper; kernels/reference/rwkv7_stages.cpp is the same in plain words):
///   w = decay(w0 + w_out)   a = sigmoid(a0 + a_out)   g = g_out          _out: of the low-rank pairs
///   v = v + (v_first - v) * sigmoid(v0 + v_out);  in the first layer v_first = v instead
///   kk = normalise(k * k_k)      k = k * (1 + (a - 1) * k_a)
///   S <- S diag(w) - (S kk) (a * kk)^T + v k^T          y = S r
///   y = (group_norm(y, ln_x) + v * sum(r * k * r_k)) * g
/// r k v           : rows of the element type;  w_out a_out v_out g_out : rows of gate_element(type), not in parts. No
///                   v_out in the first layer
/// y v_first       : [rows, width] of the element type;  vectors : [width] fp32
/// state           : of slot 0 and this layer, heads back to back, each as state.hpp says; updated in place. The next
///                   slot's lies `slot_bytes` further
/// Arithmetic is fp32. A state stored in 16 bits is rounded after every token, so that it does not matter where a
/// sequence was cut into runs.
struct time_mix_parameters {
  product_rows r, k, v, w_out, a_out, v_out, g_out;
  void *v_first = nullptr, *y = nullptr;
  const float *w0 = nullptr, *a0 = nullptr, *v0 = nullptr, *k_k = nullptr, *k_a = nullptr, *r_k = nullptr;
  const float *ln_x_weight = nullptr, *ln_x_bias = nullptr;
  void* state = nullptr;
  std::size_t slot_bytes = 0;
  std::uint32_t width = 0;
  bool first_layer = false;
};
/// Takes the rows of runs behind those that are chunked, which chunked_time_mix has taken before (wkv_chunks.hpp).
[[nodiscard]] result<void> time_mix(stream_handle in, const device_batch& rows, element type, element state_type,
                                    const time_mix_parameters& of);
/// The same, with the same bits, for a token each of so many runs that they keep the memory busy; runs[i] is row i.
/// Errors: unsupported, where a multiprocessor has too little shared memory for it.
[[nodiscard]] result<void> time_mix_many(stream_handle in, const device_batch& rows, element type, element state_type,
                                         const time_mix_parameters& of);
/// The same equations for all rows, none of which is chunked, where heads have `size` channels: a divisor of the width
/// up to head_size_max, not 64, since their states lie in another order (state.hpp).
[[nodiscard]] result<void> time_mix_any_head(stream_handle in, const device_batch& rows, element type,
                                             element state_type, const time_mix_parameters& of, std::uint32_t size);

}  // namespace skein::kernels::gpu
