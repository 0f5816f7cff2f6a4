#pragma once
#include "kernels/gpu/time_mix/time_mix.hpp"

namespace skein::kernels::gpu {

/// All of a layer's time mixing of RWKV-5 and 6 between its input and output GEMMs, head by head and token by token
/// (arXiv 2404.05892; kernels/reference/rwkv6_stages.cpp is a simple implementation):
///   w = exp(-exp(decay + w_out));  without w_out, w = decay for all tokens
///   y = (S + v (bonus * k)^T) r          S <- S diag(w) + v k^T
///   y = group_norm(y, ln_x) * silu(g);   without a gate, y = group_norm(y, ln_x)
/// r k v   : rows of the element type, or partial sums
/// g       : rows of the element type; no data without a gate
/// w_out   : rows of gate_element(type), not as partial sums; no data in version 5
/// y       : [rows, width] of the element type;  vectors : [width] fp32
/// state   : as in time_mix_parameters
/// Arithmetic is fp32. A state stored in 16 bits is rounded after every token, so that the result does not depend on
/// where a sequence was cut into runs. `size` is that of a head, up to head_size_max. For heads of 64, processes the
/// rows of runs after the chunked ones, which chunked_wkv6 must have processed before (wkv6_chunks.hpp).
struct wkv6_parameters {
  gemm_rows r, k, v, g, w_out;
  void* y = nullptr;
  const float *decay = nullptr, *bonus = nullptr;
  const float *ln_x_weight = nullptr, *ln_x_bias = nullptr;
  void* state = nullptr;
  std::size_t slot_bytes = 0;
  std::uint32_t width = 0;
};
[[nodiscard]] result<void> wkv6(stream_handle in, const device_batch& rows, element type, element state_type,
                                const wkv6_parameters& of, std::uint32_t size);
/// The same, with the same bits, for one token each of enough runs to saturate memory bandwidth; runs[i] is row i.
/// Heads have 64 channels. Errors: unsupported, if an SM has too little shared memory.
[[nodiscard]] result<void> wkv6_many(stream_handle in, const device_batch& rows, element type, element state_type,
                                     const wkv6_parameters& of);
/// The same for heads that do not have 64 channels, because the order of their states differs (state.hpp).
[[nodiscard]] result<void> wkv6_any_head(stream_handle in, const device_batch& rows, element type, element state_type,
                                         const wkv6_parameters& of, std::uint32_t size);

}  // namespace skein::kernels::gpu
