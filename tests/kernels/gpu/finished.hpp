#pragma once
#include <cmath>

#include "kernels/gpu/matmul.hpp"
#include "kernels/ops.hpp"

namespace skein::test {

/// What a product makes of a sum, before it is rounded; `before` is what lay there.
inline float finished(kernels::gpu::finish how, float sum, float before) {
  using kernels::gpu::finish;
  switch (how) {
    case finish::sigmoid: return kernels::sigmoid(sum);
    case finish::tanh: return std::tanh(sum);
    case finish::relu_squared: return sum > 0 ? sum * sum : 0;
    case finish::add_f32: return before + sum;
    default: return sum;
  }
}

}  // namespace skein::test
