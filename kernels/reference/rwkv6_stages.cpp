// RWKV-6 from the primitives of ops.hpp, one token at a time.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/reference/gated_stages.hpp"

namespace skein::kernels::reference {
namespace {

class rwkv6_stages final : public gated_stages {
 public:
  rwkv6_stages(const rwkv6_weights& weights, const stage_limits& limits)
      : gated_stages(weights.dims, std::size_t{weights.dims.att()} * weights.dims.head_size, limits),
        w_(buffer(dims_.rank_w)),
        k_(buffer(dims_.att())),
        v_(buffer(dims_.att())),
        r_(buffer(dims_.att())),
        g_(buffer(dims_.att())),
        y_(buffer(dims_.att())) {
    load(weights, layers_);
  }

  void time_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    std::vector<float> now(dims_.embd), mixed(dims_.embd), low(5 * std::size_t{dims_.rank_x}), share(dims_.embd);
    for_each_row(rows, [&](slot_id slot, std::size_t t) {
      const std::span<float> before = att_x_prev(slot, layer);
      layer_norm(x_[t], p.ln1_weight, p.ln1_bias, layer_norm_eps, now);
      token_shift(now, before, p.maa_x, mixed);
      linear(p.maa_w1, mixed, low);
      for (float& value : low) value = std::tanh(value);
      // The share of the previous token depends on the token: maa + low w2.
      const auto project = [&](std::size_t index, row maa, const dense_matrix& matrix, row_out out) {
        linear(p.maa_w2[index], row(low).subspan(index * dims_.rank_x, dims_.rank_x), share);
        for (std::size_t i = 0; i < share.size(); ++i) share[i] += maa[i];
        token_shift(now, before, share, mixed);
        linear(matrix, mixed, out);
      };
      project(0, p.maa_w, p.decay_w1, w_[t]);
      for (float& value : w_[t]) value = std::tanh(value);
      project(1, p.maa_k, p.key, k_[t]);
      project(2, p.maa_v, p.value, v_[t]);
      project(3, p.maa_r, p.receptance, r_[t]);
      project(4, p.maa_g, p.gate, g_[t]);
      for (float& value : g_[t]) value = silu(value);
      std::ranges::copy(now, before.begin());
    });
  }

  void time_mix_state(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    const std::size_t n = dims_.head_size;
    std::vector<float> w(dims_.att());
    for_each_row(rows, [&](slot_id slot, std::size_t t) {
      linear(p.decay_w2, w_[t], w);
      for (std::size_t i = 0; i < w.size(); ++i) w[i] = std::exp(-std::exp(p.decay[i] + w[i]));
      const auto memory = memory_of(slot, layer);
      for (std::size_t h = 0; h < dims_.heads; ++h) {
        const auto of_head = [&](std::span<const float> all) { return all.subspan(h * n, n); };
        wkv6(of_head(r_[t]), of_head(w), of_head(k_[t]), of_head(v_[t]), of_head(p.bonus),
             memory.subspan(h * n * n, n * n), y_[t].subspan(h * n, n));
      }
      group_norm(y_[t], dims_.heads, p.ln_x_weight, p.ln_x_bias, group_norm_eps, y_[t]);
      for (std::size_t i = 0; i < dims_.att(); ++i) y_[t][i] *= g_[t][i];
    });
  }

  void time_mix_out(std::uint32_t layer, const batch& rows) override { add_linear(layers_[layer].output, y_, rows); }

  void channel_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    mix_channels(layer, rows, {p.ln2_weight, p.ln2_bias, p.ffn_maa_k, p.ffn_maa_r, p.ffn_key, p.ffn_receptance});
  }

  void channel_mix_out(std::uint32_t layer, const batch& rows) override { add_gated(layers_[layer].ffn_value, rows); }

 private:
  void set_initial(std::uint32_t layer, std::span<float> memory) const override {
    std::ranges::copy(layers_[layer].time_state, memory.begin());
  }

  std::vector<rwkv6_layer_of<types>> layers_;
  row_buffer &w_, &k_, &v_, &r_, &g_, &y_;
};

}  // namespace

std::unique_ptr<stages> make(const rwkv6_weights& weights, const stage_limits& limits) {
  return std::make_unique<rwkv6_stages>(weights, limits);
}

}  // namespace skein::kernels::reference
