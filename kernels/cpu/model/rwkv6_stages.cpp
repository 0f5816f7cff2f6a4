// RWKV-6 on the CPU.
#include <algorithm>
#include <array>

#include "kernels/cpu/model/gated_stages.hpp"
#include "kernels/cpu/row_ops.hpp"
#include "kernels/cpu/wkv/wkv6.hpp"

namespace skein::kernels::cpu {
namespace {

constexpr std::size_t mixes = 5;  // in the order of the checkpoint: w k v r g

struct rwkv6_rows {
  row_buffer delta;  ///< the normalised row before minus this one
  row_buffer low;    ///< inner values of the five low-rank pairs, side by side
  std::array<row_buffer, mixes> mixed;
  row_buffer inner_w, w, r, k, v, g, y;

  rwkv6_rows(const model_dims& dims, row_room& room)
      : delta(room.make(dims.embd)),
        low(room.make(mixes * dims.rank_x)),
        mixed{{room.make(dims.embd), room.make(dims.embd), room.make(dims.embd), room.make(dims.embd),
               room.make(dims.embd)}},
        inner_w(room.make(dims.rank_w)),
        w(room.make(dims.att())),
        r(room.make(dims.att())),
        k(room.make(dims.att())),
        v(room.make(dims.att())),
        g(room.make(dims.att())),
        y(room.make(dims.att())) {}
};

class rwkv6_stages final : public gated_stages {
 public:
  rwkv6_stages(const rwkv6_weights& weights, const weight_plan& plan, const stage_limits& limits,
               const load_progress& progress)
      : gated_stages(weights.dims, limits), rows_(weights.dims, room_) {
    load(weights, plan, progress, layers_);
    make_states();
  }

  void time_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    mix_by_token(p, layer, rows);
    const auto& mixed = rows_.mixed;
    const std::array<gemm, 5> gemms = {
        make_gemm(p.receptance, mixed[3], rows_.r),
        make_gemm(p.key, mixed[1], rows_.k),
        make_gemm(p.value, mixed[2], rows_.v),
        make_gemm(p.gate, mixed[4], rows_.g, epilogue::silu),
        make_gemm(p.decay_w1, mixed[0], rows_.inner_w, epilogue::tanh),
    };
    matmul_(rows.tokens.size(), gemms);
  }

  void time_mix_state(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    const gemm decay = make_gemm(p.decay_w2, rows_.inner_w, rows_.w);
    matmul_(rows.tokens.size(), {&decay, 1});
    const std::size_t n = dims_.head_size, heads = dims_.heads;
    pool_.run(rows.runs.size() * heads, [&](std::size_t task, std::uint32_t) {
      const sequence_run& run = rows.runs[task / heads];
      const std::size_t h = task % heads, c = h * n;
      const auto at = [&](const row_buffer& buffer) { return buffer[run.first_row] + c; };
      const auto of = [&](const vector& all) { return all.data() + c; };
      wkv6({of(p.decay), of(p.bonus), of(p.ln_x_weight), of(p.ln_x_bias), n},
           {at(rows_.r), at(rows_.k), at(rows_.v), at(rows_.w), at(rows_.g), at(rows_.y), rows_.y.stride(), run.rows},
           state(run.slot) + slot_.head(layer, h));
    });
  }

  void time_mix_out(std::uint32_t layer, const batch& rows) override {
    add_product(rows, layers_[layer].output, rows_.y);
  }

  void channel_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    mix_channels(layer, rows, {p.ln2_weight, p.ln2_bias, p.ffn_maa_k, p.ffn_maa_r, p.ffn_key, p.ffn_receptance});
  }

  void channel_mix_out(std::uint32_t layer, const batch& rows) override { add_gated(rows, layers_[layer].ffn_value); }

 private:
  using packed_layer = rwkv6_layer_of<packed_types>;

  /// mixed[j] = now + (before - now) * (maa_j + tanh(token_shift(now, before, maa_x) w1)_j w2_j)
  void mix_by_token(const packed_layer& p, std::uint32_t layer, const batch& rows) {
    const shift base{&p.maa_x, &gated_.mixed_k};
    norm_and_shift(rows, p.ln1_weight, p.ln1_bias, slot_.att_x_prev(layer), {&base, 1}, &rows_.delta);
    const gemm first = make_gemm(p.maa_w1, gated_.mixed_k, rows_.low, epilogue::tanh);
    matmul_(rows.tokens.size(), {&first, 1});

    std::array<gemm, mixes> second;
    for (std::size_t j = 0; j < mixes; ++j) {
      second[j] = make_gemm(p.maa_w2[j], rows_.low, rows_.mixed[j]);
      second[j].in += j * dims_.rank_x;
    }
    matmul_(rows.tokens.size(), second);

    const std::array<const vector*, mixes> maa = {&p.maa_w, &p.maa_k, &p.maa_v, &p.maa_r, &p.maa_g};
    pool_.run(rows.tokens.size(), [&](std::size_t t, std::uint32_t) {
      for (std::size_t j = 0; j < mixes; ++j)
        token_shift_by(normed_[t], rows_.delta[t], maa[j]->data(), rows_.mixed[j][t], dims_.embd, rows_.mixed[j][t]);
    });
  }

  void set_initial(std::uint32_t layer, std::span<float> memory) const override {
    std::ranges::copy(layers_[layer].time_state.all(), memory.begin());
  }

  const rwkv6_rows rows_;
  std::vector<packed_layer> layers_;
};

}  // namespace

std::unique_ptr<stages> make(const rwkv6_weights& weights, const weight_plan& plan, const stage_limits& limits,
                             const load_progress& progress) {
  return std::make_unique<rwkv6_stages>(weights, plan, limits, progress);
}

memory_plan plan(const rwkv6_weights& weights, const weight_plan& formats, const stage_limits& limits) {
  row_room counted(limits.max_rows, true);
  const gated_rows gated(weights.dims, counted);
  const rwkv6_rows rows(weights.dims, counted);
  return cpu_stages::plan(weights.dims, formats, limits, planned_weight_bytes(weights, formats), counted.bytes());
}

}  // namespace skein::kernels::cpu
