#include "kernels/ops.hpp"

namespace skein::kernels {

void wkv7(const wkv7_token& token, std::span<float> state, row_out y) {
  const auto& [r, w, k, v, kk, a] = token;
  const std::size_t n = r.size();
  for (std::size_t value = 0; value < n; ++value) {
    const auto s = state.subspan(value * n, n);  // over keys
    double removed = 0;
    for (std::size_t key = 0; key < n; ++key) removed += static_cast<double>(s[key]) * kk[key];
    double read = 0;
    for (std::size_t key = 0; key < n; ++key) {
      s[key] = static_cast<float>(s[key] * w[key] - removed * (a[key] * kk[key]) + v[value] * k[key]);
      read += static_cast<double>(s[key]) * r[key];
    }
    y[value] = static_cast<float>(read);
  }
}

void add_bonus(row r, row k, row v, row r_k, row_out y) {
  double sum = 0;
  for (std::size_t i = 0; i < r.size(); ++i) sum += static_cast<double>(r[i]) * k[i] * r_k[i];
  for (std::size_t i = 0; i < r.size(); ++i) y[i] += static_cast<float>(sum) * v[i];
}

}  // namespace skein::kernels
