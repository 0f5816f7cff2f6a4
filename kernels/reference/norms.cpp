#include <algorithm>
#include <cmath>

#include "kernels/ops.hpp"

namespace skein::kernels {

void layer_norm(row x, row weight, row bias, float eps, row_out out) {
  const double n = static_cast<double>(x.size());
  double sum = 0;
  for (const float value : x) sum += value;
  const double mean = sum / n;
  double squares = 0;
  for (const float value : x) squares += (value - mean) * (value - mean);
  const double scale = 1 / std::sqrt(squares / n + eps);
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = static_cast<float>((x[i] - mean) * scale) * weight[i] + bias[i];
}

void group_norm(row x, std::size_t heads, row weight, row bias, float eps, row_out out) {
  const std::size_t n = x.size() / heads;
  for (std::size_t first = 0; first < x.size(); first += n)
    layer_norm(x.subspan(first, n), weight.subspan(first, n), bias.subspan(first, n), eps, out.subspan(first, n));
}

void normalise(row_out x) {
  double squares = 0;
  for (const float value : x) squares += static_cast<double>(value) * value;
  const float norm = static_cast<float>(std::max(std::sqrt(squares), 1e-12));
  for (float& value : x) value /= norm;
}

}  // namespace skein::kernels
