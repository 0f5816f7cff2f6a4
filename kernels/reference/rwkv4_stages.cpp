// RWKV-4 from the primitives of ops.hpp, one token at a time.
#include <algorithm>
#include <cmath>

#include "kernels/reference/gated_stages.hpp"

namespace skein::kernels::reference {
namespace {

class rwkv4_stages final : public gated_stages {
 public:
  rwkv4_stages(const rwkv4_weights& weights, const stage_limits& limits)
      : gated_stages(weights.dims, std::size_t{3} * weights.dims.att(), limits),
        r_(buffer(dims_.att())),
        k_(buffer(dims_.att())),
        v_(buffer(dims_.att())),
        y_(buffer(dims_.att())) {
    load(weights, layers_);
    for (auto& l : layers_) {
      for (auto* mix : {&l.mix_k, &l.mix_v, &l.mix_r, &l.ffn_mix_k, &l.ffn_mix_r}) to_previous_share(*mix);
      for (float& decay : l.decay) decay = std::exp(decay);
    }
  }

  void time_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    std::vector<float> now(dims_.embd), mixed(dims_.embd);
    for_each_row(rows, [&](slot_id slot, std::size_t t) {
      const std::span<float> before = att_x_prev(slot, layer);
      layer_norm(x_[t], p.ln1_weight, p.ln1_bias, layer_norm_eps, now);
      token_shift(now, before, p.mix_r, mixed);
      linear(p.receptance, mixed, r_[t]);
      for (float& value : r_[t]) value = sigmoid(value);
      token_shift(now, before, p.mix_k, mixed);
      linear(p.key, mixed, k_[t]);
      token_shift(now, before, p.mix_v, mixed);
      linear(p.value, mixed, v_[t]);
      std::ranges::copy(now, before.begin());
    });
  }

  void time_mix_state(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    const std::size_t width = dims_.att();
    for_each_row(rows, [&](slot_id slot, std::size_t t) {
      const auto memory = memory_of(slot, layer);
      wkv4(p.decay, p.bonus, k_[t], v_[t],
           {memory.first(width), memory.subspan(width, width), memory.subspan(2 * width, width)}, y_[t]);
      for (std::size_t i = 0; i < width; ++i) y_[t][i] *= r_[t][i];
    });
  }

  void time_mix_out(std::uint32_t layer, const batch& rows) override { add_linear(layers_[layer].output, y_, rows); }

  void channel_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    mix_channels(layer, rows, {p.ln2_weight, p.ln2_bias, p.ffn_mix_k, p.ffn_mix_r, p.ffn_key, p.ffn_receptance});
  }

  void channel_mix_out(std::uint32_t layer, const batch& rows) override { add_gated(layers_[layer].ffn_value, rows); }

 private:
  void set_initial(std::uint32_t, std::span<float> memory) const override {
    std::ranges::fill(memory.last(dims_.att()), wkv4_empty_exponent);
  }

  std::vector<rwkv4_layer_of<types>> layers_;
  row_buffer &r_, &k_, &v_, &y_;
};

}  // namespace

std::unique_ptr<stages> make(const rwkv4_weights& weights, const stage_limits& limits) {
  return std::make_unique<rwkv4_stages>(weights, limits);
}

}  // namespace skein::kernels::reference
