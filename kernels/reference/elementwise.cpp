#include <algorithm>
#include <cmath>

#include "kernels/ops.hpp"

namespace skein::kernels {

void token_shift(row now, row before, row mix, row_out out) {
  for (std::size_t i = 0; i < now.size(); ++i) out[i] = now[i] + (before[i] - now[i]) * mix[i];
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

float silu(float x) { return x * sigmoid(x); }

float decay(float x) { return std::exp(-0.60653066f * sigmoid(x)); }  // 0.6065...: exp(-0.5)

void relu_squared(row_out x) {
  for (float& value : x) {
    const float positive = std::max(value, 0.0f);
    value = positive * positive;
  }
}

}  // namespace skein::kernels
