// RWKV-5 on the CPU.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/cpu/model/gated_stages.hpp"
#include "kernels/cpu/wkv/wkv6.hpp"

namespace skein::kernels::cpu {
namespace {

struct rwkv5_rows {
  row_buffer mixed_v, mixed_g, r, k, v, g, y;

  rwkv5_rows(const model_dims& dims, row_room& room)
      : mixed_v(room.make(dims.embd)),
        mixed_g(room.make(dims.embd)),
        r(room.make(dims.att())),
        k(room.make(dims.att())),
        v(room.make(dims.att())),
        g(room.make(dims.att())),
        y(room.make(dims.att())) {}
};

/// Values of a head, or one for all of its channels, as one for each channel.
aligned_buffer<float> by_channel(const aligned_buffer<float>& values, std::size_t channels) {
  aligned_buffer<float> all(channels);
  const std::size_t repeated = channels / values.size();
  for (std::size_t i = 0; i < channels; ++i) all.data()[i] = values.data()[i / repeated];
  return all;
}

/// What by_channel adds to the decays and bonuses of all layers.
std::size_t bytes_by_channel(const rwkv5_weights& weights) {
  const auto vector_bytes = [](std::size_t floats) { return allocated_bytes(floats * sizeof(float)); };
  const std::size_t stored = vector_bytes(std::size_t{weights.dims.heads} * weights.dims.decays);
  return weights.layers.size() * 2 * (vector_bytes(weights.dims.att()) - stored);
}

class rwkv5_stages final : public gated_stages {
 public:
  rwkv5_stages(const rwkv5_weights& weights, const weight_plan& plan, const stage_limits& limits,
               const load_progress& progress)
      : gated_stages(weights.dims, limits), rows_(weights.dims, room_) {
    load(weights, plan, progress, layers_);
    for (auto& l : layers_) {
      for (auto* mix : {&l.mix_k, &l.mix_v, &l.mix_r, &l.mix_g, &l.ffn_mix_k, &l.ffn_mix_r}) to_previous_share(*mix);
      for (float& decay : l.decay.all()) decay = std::exp(-std::exp(decay));
      for (float& bonus : l.log_bonus.all()) bonus = std::exp(bonus);
      l.decay = by_channel(l.decay, dims_.att());
      l.bonus = by_channel(l.bonus.size() > 0 ? l.bonus : l.log_bonus, dims_.att());
      l.log_bonus = {};
    }
    weight_bytes_ += bytes_by_channel(weights);
    make_states();
  }

  void time_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    const std::array<shift, 4> shifts = {{{&p.mix_r, &gated_.mixed_r},
                                          {&p.mix_k, &gated_.mixed_k},
                                          {&p.mix_v, &rows_.mixed_v},
                                          {&p.mix_g, &rows_.mixed_g}}};
    norm_and_shift(rows, p.ln1_weight, p.ln1_bias, slot_.att_x_prev(layer), std::span(shifts).first(gated(p) ? 4 : 3));
    const std::array<gemm, 4> gemms = {
        make_gemm(p.receptance, gated_.mixed_r, rows_.r),
        make_gemm(p.key, gated_.mixed_k, rows_.k),
        make_gemm(p.value, rows_.mixed_v, rows_.v),
        make_gemm(p.gate, rows_.mixed_g, rows_.g, epilogue::silu),
    };
    matmul_(rows.tokens.size(), std::span(gemms).first(gated(p) ? 4 : 3));
  }

  void time_mix_state(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    const std::size_t n = dims_.head_size, heads = dims_.heads;
    pool_.run(rows.runs.size() * heads, [&](std::size_t task, std::uint32_t) {
      const sequence_run& run = rows.runs[task / heads];
      const std::size_t h = task % heads, c = h * n;
      const auto at = [&](const row_buffer& buffer) { return buffer[run.first_row] + c; };
      const auto of = [&](const vector& all) { return all.data() + c; };
      wkv6({of(p.decay), of(p.bonus), of(p.ln_x_weight), of(p.ln_x_bias), n},
           {at(rows_.r), at(rows_.k), at(rows_.v), nullptr, gated(p) ? at(rows_.g) : nullptr, at(rows_.y),
            rows_.y.stride(), run.rows},
           state(run.slot) + slot_.head(layer, h));
    });
  }

  void time_mix_out(std::uint32_t layer, const batch& rows) override {
    add_product(rows, layers_[layer].output, rows_.y);
  }

  void channel_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    mix_channels(layer, rows, {p.ln2_weight, p.ln2_bias, p.ffn_mix_k, p.ffn_mix_r, p.ffn_key, p.ffn_receptance});
  }

  void channel_mix_out(std::uint32_t layer, const batch& rows) override { add_gated(rows, layers_[layer].ffn_value); }

 private:
  static bool gated(const rwkv5_layer_of<packed_types>& layer) { return layer.gate.outputs() > 0; }
  void set_initial(std::uint32_t layer, std::span<float> memory) const override {
    std::ranges::copy(layers_[layer].time_state.all(), memory.begin());
  }

  const rwkv5_rows rows_;
  std::vector<rwkv5_layer_of<packed_types>> layers_;
};

}  // namespace

std::unique_ptr<stages> make(const rwkv5_weights& weights, const weight_plan& plan, const stage_limits& limits,
                             const load_progress& progress) {
  return std::make_unique<rwkv5_stages>(weights, plan, limits, progress);
}

memory_plan plan(const rwkv5_weights& weights, const weight_plan& formats, const stage_limits& limits) {
  row_room counted(limits.max_rows, true);
  const gated_rows gated(weights.dims, counted);
  const rwkv5_rows rows(weights.dims, counted);
  return cpu_stages::plan(weights.dims, formats, limits,
                          planned_weight_bytes(weights, formats) + bytes_by_channel(weights), counted.bytes());
}

}  // namespace skein::kernels::cpu
