// RWKV-5 from the primitives of ops.hpp, one token at a time.
#include <algorithm>
#include <cmath>

#include "kernels/reference/gated_stages.hpp"

namespace skein::kernels::reference {
namespace {

/// Values of a head, or one for all of its channels, as one for each channel.
std::vector<float> by_channel(const std::vector<float>& values, std::size_t channels) {
  std::vector<float> all(channels);
  const std::size_t repeated = channels / values.size();
  for (std::size_t i = 0; i < channels; ++i) all[i] = values[i / repeated];
  return all;
}

class rwkv5_stages final : public gated_stages {
 public:
  rwkv5_stages(const rwkv5_weights& weights, const stage_limits& limits)
      : gated_stages(weights.dims, std::size_t{weights.dims.att()} * weights.dims.head_size, limits),
        r_(buffer(dims_.att())),
        k_(buffer(dims_.att())),
        v_(buffer(dims_.att())),
        g_(buffer(dims_.att())),
        y_(buffer(dims_.att())) {
    load(weights, layers_);
    for (auto& l : layers_) {
      for (auto* mix : {&l.mix_k, &l.mix_v, &l.mix_r, &l.mix_g, &l.ffn_mix_k, &l.ffn_mix_r}) to_previous_share(*mix);
      for (float& decay : l.decay) decay = std::exp(-std::exp(decay));
      for (float& bonus : l.log_bonus) bonus = std::exp(bonus);
      l.decay = by_channel(l.decay, dims_.att());
      l.bonus = by_channel(l.bonus.empty() ? l.log_bonus : l.bonus, dims_.att());
    }
  }

  void time_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    std::vector<float> now(dims_.embd), mixed(dims_.embd);
    for_each_row(rows, [&](slot_id slot, std::size_t t) {
      const std::span<float> before = att_x_prev(slot, layer);
      layer_norm(x_[t], p.ln1_weight, p.ln1_bias, layer_norm_eps, now);
      const auto project = [&](row mix, const dense_matrix& matrix, row_out out) {
        token_shift(now, before, mix, mixed);
        linear(matrix, mixed, out);
      };
      project(p.mix_r, p.receptance, r_[t]);
      project(p.mix_k, p.key, k_[t]);
      project(p.mix_v, p.value, v_[t]);
      if (gated(p)) {
        project(p.mix_g, p.gate, g_[t]);
        for (float& value : g_[t]) value = silu(value);
      }
      std::ranges::copy(now, before.begin());
    });
  }

  void time_mix_state(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    const std::size_t n = dims_.head_size;
    for_each_row(rows, [&](slot_id slot, std::size_t t) {
      const auto memory = memory_of(slot, layer);
      for (std::size_t h = 0; h < dims_.heads; ++h) {
        const auto of_head = [&](std::span<const float> all) { return all.subspan(h * n, n); };
        wkv6(of_head(r_[t]), of_head(p.decay), of_head(k_[t]), of_head(v_[t]), of_head(p.bonus),
             memory.subspan(h * n * n, n * n), y_[t].subspan(h * n, n));
      }
      group_norm(y_[t], dims_.heads, p.ln_x_weight, p.ln_x_bias, group_norm_eps, y_[t]);
      if (gated(p))
        for (std::size_t i = 0; i < dims_.att(); ++i) y_[t][i] *= g_[t][i];
    });
  }

  void time_mix_out(std::uint32_t layer, const batch& rows) override { add_linear(layers_[layer].output, y_, rows); }

  void channel_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    mix_channels(layer, rows, {p.ln2_weight, p.ln2_bias, p.ffn_mix_k, p.ffn_mix_r, p.ffn_key, p.ffn_receptance});
  }

  void channel_mix_out(std::uint32_t layer, const batch& rows) override { add_gated(layers_[layer].ffn_value, rows); }

 private:
  static bool gated(const rwkv5_layer_of<types>& layer) { return layer.gate.outputs > 0; }
  void set_initial(std::uint32_t layer, std::span<float> memory) const override {
    std::ranges::copy(layers_[layer].time_state, memory.begin());
  }

  std::vector<rwkv5_layer_of<types>> layers_;
  row_buffer &r_, &k_, &v_, &g_, &y_;
};

}  // namespace

std::unique_ptr<stages> make(const rwkv5_weights& weights, const stage_limits& limits) {
  return std::make_unique<rwkv5_stages>(weights, limits);
}

}  // namespace skein::kernels::reference
