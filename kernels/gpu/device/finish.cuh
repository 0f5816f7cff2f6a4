#pragma once
#include "kernels/gpu/matmul.hpp"

namespace skein::kernels::gpu {

/// What a finish that is a function of the sum alone makes of it; others leave it as it is.
__device__ inline float finished(finish how, float sum) {
  switch (how) {
    case finish::sigmoid: return 1 / (1 + expf(-sum));
    case finish::tanh: return tanhf(sum);
    case finish::relu_squared: return sum > 0 ? sum * sum : 0;
    default: return sum;
  }
}

}  // namespace skein::kernels::gpu
