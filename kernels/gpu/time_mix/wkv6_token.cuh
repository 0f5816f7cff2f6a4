#pragma once
#include <type_traits>

#include "kernels/gpu/device/vec.cuh"
#include "kernels/gpu/time_mix/wkv6.hpp"
#include "kernels/ops.hpp"

/// What the kernels of RWKV-5 and 6 compute for one channel of a token.
namespace skein::kernels::gpu {

/// The decay of version 6; exp of a large argument is infinite, which makes it 0.
__device__ inline float decay_of_token(float decay, float w_out) { return expf(-expf(decay + w_out)); }

__device__ inline float silu_of(float x) { return x * quick_logistic(-1.44269504f * x); }

/// One key of a row of the state: S <- S diag(w) + v k^T.
__device__ inline float add_token(float state, float w, float v, float k) { return multiply_add(v, k, state * w); }

}  // namespace skein::kernels::gpu
