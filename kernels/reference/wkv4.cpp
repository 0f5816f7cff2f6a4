#include <algorithm>
#include <cmath>

#include "kernels/ops.hpp"

namespace skein::kernels {

void wkv4(row w, row u, row k, row v, const wkv4_state& state, row_out y) {
  const auto& [aa, bb, pp] = state;
  for (std::size_t i = 0; i < k.size(); ++i) {
    const float now = u[i] + k[i];
    const float p = std::max(pp[i], now);
    const float old_share = std::exp(pp[i] - p), new_share = std::exp(now - p);
    y[i] = (old_share * aa[i] + new_share * v[i]) / (old_share * bb[i] + new_share);

    const float decayed = pp[i] - w[i];
    const float q = std::max(decayed, k[i]);
    const float kept = std::exp(decayed - q), added = std::exp(k[i] - q);
    aa[i] = kept * aa[i] + added * v[i];
    bb[i] = kept * bb[i] + added;
    pp[i] = q;
  }
}

}  // namespace skein::kernels
