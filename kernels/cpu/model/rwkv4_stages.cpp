// RWKV-4 on the CPU.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/model/gated_stages.hpp"
#include "kernels/cpu/wkv/wkv4.hpp"
#include "kernels/ops.hpp"

namespace skein::kernels::cpu {
namespace {

struct rwkv4_rows {
  row_buffer mixed_v, r, k, v, y;

  rwkv4_rows(const model_dims& dims, row_room& room)
      : mixed_v(room.make(dims.embd)),
        r(room.make(dims.att())),
        k(room.make(dims.att())),
        v(room.make(dims.att())),
        y(room.make(dims.att())) {}
};

class rwkv4_stages final : public gated_stages {
 public:
  rwkv4_stages(const rwkv4_weights& weights, const weight_plan& plan, const stage_limits& limits,
               const load_progress& progress)
      : gated_stages(weights.dims, limits), rows_(weights.dims, room_) {
    load(weights, plan, progress, layers_);
    for (auto& l : layers_) {
      for (auto* mix : {&l.mix_k, &l.mix_v, &l.mix_r, &l.ffn_mix_k, &l.ffn_mix_r}) to_previous_share(*mix);
      for (float& decay : l.decay.all()) decay = std::exp(decay);
    }
    make_states();
  }

  void time_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    const std::array<shift, 3> shifts = {
        {{&p.mix_r, &gated_.mixed_r}, {&p.mix_k, &gated_.mixed_k}, {&p.mix_v, &rows_.mixed_v}}};
    norm_and_shift(rows, p.ln1_weight, p.ln1_bias, slot_.att_x_prev(layer), shifts);
    const std::array<gemm, 3> gemms = {
        make_gemm(p.receptance, gated_.mixed_r, rows_.r, epilogue::sigmoid),
        make_gemm(p.key, gated_.mixed_k, rows_.k),
        make_gemm(p.value, rows_.mixed_v, rows_.v),
    };
    matmul_(rows.tokens.size(), gemms);
  }

  void time_mix_state(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    constexpr std::size_t piece_channels = 128;
    const std::size_t channels = dims_.att(), pieces = (channels + piece_channels - 1) / piece_channels;
    pool_.run(rows.runs.size() * pieces, [&](std::size_t task, std::uint32_t) {
      const sequence_run& run = rows.runs[task / pieces];
      const std::size_t c = task % pieces * piece_channels;
      const auto memory = [&](std::size_t array) { return state(run.slot) + slot_.channels(layer, array) + c; };
      const auto at = [&](const row_buffer& buffer) { return buffer[run.first_row] + c; };
      wkv4({memory(0), memory(1), memory(2), p.decay.data() + c, p.bonus.data() + c,
            std::min(piece_channels, channels - c)},
           {at(rows_.r), at(rows_.k), at(rows_.v), at(rows_.y), rows_.y.stride(), run.rows});
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
  void set_initial(std::uint32_t, std::span<float> memory) const override {
    std::ranges::fill(memory.last(dims_.att()), wkv4_empty_exponent);
  }

  const rwkv4_rows rows_;
  std::vector<rwkv4_layer_of<packed_types>> layers_;
};

}  // namespace

std::unique_ptr<stages> make(const rwkv4_weights& weights, const weight_plan& plan, const stage_limits& limits,
                             const load_progress& progress) {
  return std::make_unique<rwkv4_stages>(weights, plan, limits, progress);
}

memory_plan plan(const rwkv4_weights& weights, const weight_plan& formats, const stage_limits& limits) {
  row_room counted(limits.max_rows, true);
  const gated_rows gated(weights.dims, counted);
  const rwkv4_rows rows(weights.dims, counted);
  return cpu_stages::plan(weights.dims, formats, limits, planned_weight_bytes(weights, formats), counted.bytes());
}

}  // namespace skein::kernels::cpu
