// RWKV-7 from the primitives of ops.hpp, one token at a time, in the notation of the paper.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/reference_stages.hpp"

namespace skein::kernels::reference {
namespace {

class rwkv7_stages final : public reference_stages {
 public:
  rwkv7_stages(const rwkv7_weights& weights, const stage_limits& limits)
      : reference_stages(weights.dims, std::size_t{weights.dims.att()} * weights.dims.head_size, limits),
        r_(buffer(dims_.embd)),
        k_(buffer(dims_.embd)),
        v_(buffer(dims_.embd)),
        v_first_(buffer(dims_.embd)),
        y_(buffer(dims_.embd)),
        inner_w_(buffer(dims_.rank_w)),
        inner_a_(buffer(dims_.rank_a)),
        inner_v_(buffer(dims_.rank_v)),
        inner_g_(buffer(dims_.rank_g)),
        hidden_(buffer(dims_.ffn)) {
    load(weights, layers_);
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
      project(p.x_r, p.receptance, r_[t]);
      project(p.x_k, p.key, k_[t]);
      project(p.x_v, p.value, v_[t]);
      project(p.x_w, p.w1, inner_w_[t]);
      for (float& value : inner_w_[t]) value = std::tanh(value);
      project(p.x_a, p.a1, inner_a_[t]);
      if (layer > 0) project(p.x_v, p.v1, inner_v_[t]);
      project(p.x_g, p.g1, inner_g_[t]);
      for (float& value : inner_g_[t]) value = sigmoid(value);
      std::ranges::copy(now, before.begin());
    });
  }

  void time_mix_state(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    const std::size_t width = dims_.embd, n = dims_.head_size;
    std::vector<float> w(width), a(width), v_mix(width), g(width), kk(width);
    for_each_row(rows, [&](slot_id slot, std::size_t t) {
      const auto k = k_[t], v = v_[t], v_first = v_first_[t], y = y_[t];
      linear(p.w2, inner_w_[t], w);
      for (std::size_t i = 0; i < width; ++i) w[i] = decay(p.w0[i] + w[i]);
      linear(p.a2, inner_a_[t], a);
      for (std::size_t i = 0; i < width; ++i) a[i] = sigmoid(p.a0[i] + a[i]);
      linear(p.g2, inner_g_[t], g);

      for (std::size_t i = 0; i < width; ++i) kk[i] = k[i] * p.k_k[i];  // from k before a changes it
      for (std::size_t i = 0; i < width; ++i) k[i] *= 1 + (a[i] - 1) * p.k_a[i];
      if (layer == 0) {
        std::ranges::copy(v, v_first.begin());
      } else {
        linear(p.v2, inner_v_[t], v_mix);
        for (std::size_t i = 0; i < width; ++i) v[i] += (v_first[i] - v[i]) * sigmoid(p.v0[i] + v_mix[i]);
      }

      const auto memory = memory_of(slot, layer);
      for (std::size_t h = 0; h < dims_.heads; ++h) {
        const auto of_head = [&](std::span<const float> all) { return all.subspan(h * n, n); };
        normalise(std::span(kk).subspan(h * n, n));
        wkv7({of_head(r_[t]), of_head(w), of_head(k), of_head(v), of_head(kk), of_head(a)},
             memory.subspan(h * n * n, n * n), y.subspan(h * n, n));
      }
      group_norm(y, dims_.heads, p.ln_x_weight, p.ln_x_bias, group_norm_eps, y);
      for (std::size_t h = 0; h < dims_.heads; ++h) {
        const auto of_head = [&](std::span<const float> all) { return all.subspan(h * n, n); };
        add_bonus(of_head(r_[t]), of_head(k), of_head(v), of_head(p.r_k), y.subspan(h * n, n));
      }
      for (std::size_t i = 0; i < width; ++i) y[i] *= g[i];
    });
  }

  void time_mix_out(std::uint32_t layer, const batch& rows) override { add_linear(layers_[layer].output, y_, rows); }

  void channel_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    std::vector<float> now(dims_.embd), mixed(dims_.embd);
    for_each_row(rows, [&](slot_id slot, std::size_t t) {
      const std::span<float> before = ffn_x_prev(slot, layer);
      layer_norm(x_[t], p.ln2_weight, p.ln2_bias, layer_norm_eps, now);
      token_shift(now, before, p.ffn_x_k, mixed);
      linear(p.ffn_key, mixed, hidden_[t]);
      relu_squared(hidden_[t]);
      std::ranges::copy(now, before.begin());
    });
  }

  void channel_mix_out(std::uint32_t layer, const batch& rows) override {
    add_linear(layers_[layer].ffn_value, hidden_, rows);
  }

 private:
  void set_initial(std::uint32_t layer, std::span<float> memory) const override {
    std::ranges::copy(layers_[layer].time_state, memory.begin());
  }

  std::vector<rwkv7_layer_of<types>> layers_;
  row_buffer &r_, &k_, &v_, &v_first_, &y_, &inner_w_, &inner_a_, &inner_v_, &inner_g_, &hidden_;
};

}  // namespace

std::unique_ptr<stages> make(const rwkv7_weights& weights, const stage_limits& limits) {
  return std::make_unique<rwkv7_stages>(weights, limits);
}

}  // namespace skein::kernels::reference
