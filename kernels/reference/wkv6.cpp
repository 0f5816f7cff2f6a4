#include "kernels/ops.hpp"

namespace skein::kernels {

void wkv6(row r, row w, row k, row v, row u, std::span<float> state, row_out y) {
  const std::size_t n = r.size();
  double bonus = 0;
  for (std::size_t key = 0; key < n; ++key) bonus += static_cast<double>(r[key]) * u[key] * k[key];
  for (std::size_t value = 0; value < n; ++value) {
    const auto s = state.subspan(value * n, n);  // over keys
    double sum = bonus * v[value];
    for (std::size_t key = 0; key < n; ++key) {
      sum += static_cast<double>(s[key]) * r[key];
      s[key] = s[key] * w[key] + v[value] * k[key];
    }
    y[value] = static_cast<float>(sum);
  }
}

}  // namespace skein::kernels
