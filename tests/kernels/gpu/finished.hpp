#pragma once
#include <cmath>

#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/ops.hpp"

namespace skein::test {

/// What a product makes of a sum, before it is rounded; `before` is what lay there.
inline float apply_epilogue(kernels::gpu::epilogue how, float sum, float before) {
  using kernels::gpu::epilogue;
  switch (how) {
    case epilogue::sigmoid: return kernels::sigmoid(sum);
    case epilogue::tanh: return std::tanh(sum);
    case epilogue::relu_squared: return sum > 0 ? sum * sum : 0;
    case epilogue::add_f32: return before + sum;
    default: return sum;
  }
}

}  // namespace skein::test
