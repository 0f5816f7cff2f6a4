#pragma once
#include "kernels/gpu/runtime/runtime.hpp"
#include "kernels/gpu/types/batch.hpp"
#include "kernels/gpu/types/elements.hpp"
#include "kernels/gpu/types/gemm_rows.hpp"

namespace skein::kernels::gpu {

inline constexpr std::uint32_t head_size = 64;       ///< N of all released models; most kernels support only this
inline constexpr std::uint32_t head_size_max = 256;  ///< of time_mix_any_head

/// The element type of the outputs of the low-rank pairs. They need 11 bits, because a decay near 1 is raised to the
/// power of the sequence length.
[[nodiscard]] constexpr element gate_element(element type) { return type == element::f32 ? type : element::f16; }

/// All of a layer's time mixing between its input and output GEMMs, head by head and token by token (RWKV-7 paper;
/// kernels/reference/rwkv7_stages.cpp is a simple implementation):
///   w = decay(w0 + w_out)   a = sigmoid(a0 + a_out)   g = g_out          _out: of the low-rank pairs
///   v = v + (v_first - v) * sigmoid(v0 + v_out);  in the first layer v_first = v instead
///   kk = normalise(k * k_k)      k = k * (1 + (a - 1) * k_a)
///   S <- S diag(w) - (S kk) (a * kk)^T + v k^T          y = S r
///   y = (group_norm(y, ln_x) + v * sum(r * k * r_k)) * g
/// r k v           : rows of the element type
/// w_out a_out v_out g_out : rows of gate_element(type), not as partial sums; v_out is unused in the first layer
/// y v_first       : [rows, width] of the element type;  vectors : [width] fp32
/// state           : of slot 0 and this layer, heads back to back, each laid out as in state.hpp; updated in place.
///                   Slots are `slot_bytes` apart
/// Arithmetic is fp32. A state stored in 16 bits is rounded after every token, so that the result does not depend on
/// where a sequence was cut into runs.
struct time_mix_parameters {
  gemm_rows r, k, v, w_out, a_out, v_out, g_out;
  void *v_first = nullptr, *y = nullptr;
  const float *w0 = nullptr, *a0 = nullptr, *v0 = nullptr, *k_k = nullptr, *k_a = nullptr, *r_k = nullptr;
  const float *ln_x_weight = nullptr, *ln_x_bias = nullptr;
  void* state = nullptr;
  std::size_t slot_bytes = 0;
  std::uint32_t width = 0;
  bool first_layer = false;
};
/// Processes the rows of runs after the chunked ones, which chunked_time_mix must have processed before
/// (wkv_chunks.hpp).
[[nodiscard]] result<void> time_mix(stream_handle in, const device_batch& rows, element type, element state_type,
                                    const time_mix_parameters& of);
/// The same, with the same bits, for one token each of enough runs to saturate memory bandwidth; runs[i] is row i.
/// Errors: unsupported, if an SM has too little shared memory.
[[nodiscard]] result<void> time_mix_many(stream_handle in, const device_batch& rows, element type, element state_type,
                                         const time_mix_parameters& of);
/// The same equations for all rows, none of them chunked, for heads of `size` channels: a divisor of the width up to
/// head_size_max, but not 64, because the order of their states differs (state.hpp).
[[nodiscard]] result<void> time_mix_any_head(stream_handle in, const device_batch& rows, element type,
                                             element state_type, const time_mix_parameters& of, std::uint32_t size);

}  // namespace skein::kernels::gpu
