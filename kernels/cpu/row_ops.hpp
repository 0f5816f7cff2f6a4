#pragma once
#include <cstddef>

/// Operations on one row of any length. Inputs and outputs need no alignment; a row's result depends only on its
/// values.
namespace skein::kernels::cpu {

/// Like kernels::layer_norm (ops.hpp); `out` may be `x`.
void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::size_t size, float* out);

/// Like kernels::token_shift.
void token_shift(const float* now, const float* before, const float* mix, std::size_t size, float* out);

/// out = before - now
void shift_delta(const float* now, const float* before, std::size_t size, float* out);

/// out = now + delta * (mix + extra): token_shift whose mix depends on the token (RWKV-6).
void token_shift_by(const float* now, const float* delta, const float* mix, const float* extra, std::size_t size,
                    float* out);

}  // namespace skein::kernels::cpu
