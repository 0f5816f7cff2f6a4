#include "kernels/reference/gated_stages.hpp"

#include <algorithm>

namespace skein::kernels::reference {

void gated_stages::mix_channels(std::uint32_t layer, const batch& rows, const channel_mix& with) {
  std::vector<float> now(dims_.embd), mixed(dims_.embd);
  for_each_row(rows, [&](slot_id slot, std::size_t t) {
    const std::span<float> before = ffn_x_prev(slot, layer);
    layer_norm(x_[t], with.ln_weight, with.ln_bias, layer_norm_eps, now);
    token_shift(now, before, with.mix_k, mixed);
    linear(with.key, mixed, hidden_[t]);
    relu_squared(hidden_[t]);
    token_shift(now, before, with.mix_r, mixed);
    linear(with.receptance, mixed, gate_[t]);
    for (float& value : gate_[t]) value = sigmoid(value);
    std::ranges::copy(now, before.begin());
  });
}

void gated_stages::add_gated(const dense_matrix& value, const batch& rows) {
  std::vector<float> sum(dims_.embd);
  for (std::size_t t = 0; t < rows.tokens.size(); ++t) {
    linear(value, hidden_[t], sum);
    for (std::size_t i = 0; i < sum.size(); ++i) x_[t][i] += gate_[t][i] * sum[i];
  }
}

void to_previous_share(std::vector<float>& mix) {
  for (float& share : mix) share = 1 - share;
}

}  // namespace skein::kernels::reference
