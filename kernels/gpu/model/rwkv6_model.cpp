// RWKV-6 on the GPU.
#include <algorithm>
#include <array>

#include "kernels/gpu/fused/mix_by_token.hpp"
#include "kernels/gpu/model/headed_model.hpp"
#include "kernels/gpu/model/versions.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr std::size_t mix_count = shifts_by_row_max;  // in the order of the checkpoint: w k v r g

struct rwkv6_rows {
  activation low;  ///< inner values of the five low-rank pairs, each padded to whole tiles
  std::array<activation, mix_count> mixed;
  activation statistics;  ///< row_statistics of the norm before the mixes
  activation inner_w, w, r, k, v, g, y;

  rwkv6_rows(const model_dims& dims, activation_room& room)
      : low(room.make(mix_count * padded(dims.rank_x))),
        mixed{{room.make(dims.embd), room.make(dims.embd), room.make(dims.embd), room.make(dims.embd),
               room.make(dims.embd)}},
        statistics(room.make(sizeof(row_statistics) / sizeof(float), element::f32)),
        inner_w(room.make(dims.rank_w)),
        w(room.make(dims.att())),
        r(room.make(dims.att())),
        k(room.make(dims.att())),
        v(room.make(dims.att())),
        g(room.make(dims.att())),
        y(room.make(dims.att())) {}
};

/// The outputs of the low-rank pairs, for the decay and for the token shifts, have the type gate_element.
class rwkv6_model final : public headed_model {
 public:
  rwkv6_model(const rwkv6_weights& weights, const gpu_options& options, const model_room& room, stream_handle in,
              const library_opener& open_library)
      : headed_model(weights.dims, options, room, open_library),
        rows_(dims_, activations_),
        weights_(upload(weights, matrix_formats(options), options.progress)) {
    start(in,
          [&](std::uint32_t layer, std::span<float> state) { copy_initial(weights.layers[layer].time_state, state); });
  }
  using headed_model::plan;

  [[nodiscard]] std::size_t weight_bytes() const override { return weights_.memory.bytes(); }

 private:
  using layer_weights = rwkv6_layer_of<device_types>;
  [[nodiscard]] const outer_weights_of<device_types>& outer() const override { return weights_; }

  void time_mix_in(std::uint32_t layer, pass& tick) override {
    const layer_weights& p = weights_.layers[layer];
    mix_by_token(p, layer, tick);
    const auto& [for_w, for_k, for_v, for_r, for_g] = rows_.mixed;
    std::array gemms = {
        gemm_of(p.decay_w1, for_w, rows_.inner_w, {activation_function::tanh}),
        gemm_of(p.receptance, for_r, rows_.r),
        gemm_of(p.key, for_k, rows_.k),
        gemm_of(p.value, for_v, rows_.v),
        gemm_of(p.gate, for_g, rows_.g),
        gemm_of(p.decay_w2, rows_.inner_w, rows_.w, store_gate()),
    };
    gemms.front().when = turn::first;
    gemms.back().when = turn::second, gemms.back().done = done_of(layer);
    split(std::span(gemms).subspan(1, projections_.size()), gemms, projections_, tick);
    gemms.front().pdl_early_launch = gemms.back().pdl_early_launch = true;
    multiply_rows(tick, gemms);
  }

  void time_mix_state(std::uint32_t layer, pass& tick) override {
    const layer_weights& p = weights_.layers[layer];
    wkv6_parameters of;
    of.r = projections_[0], of.k = projections_[1], of.v = projections_[2];
    of.g = rows_of(rows_.g), of.w_out = rows_of(rows_.w), of.y = rows_.y.data;
    of.decay = p.decay, of.bonus = p.bonus, of.ln_x_weight = p.ln_x_weight, of.ln_x_bias = p.ln_x_bias;
    mix_states(layer, of, tick);
  }

  void time_mix_out(std::uint32_t layer, pass& tick) override {
    add_to_x(tick, weights_.layers[layer].output, rows_.y);
  }

  void channel_mix_in(std::uint32_t layer, pass& tick) override {
    const auto& p = weights_.layers[layer];
    mix_channels(layer, {norm_of(p.ln2_weight, p.ln2_bias), p.ffn_maa_k, p.ffn_maa_r, p.ffn_key}, tick);
  }

  void channel_mix_out(std::uint32_t layer, pass& tick) override {
    const auto& p = weights_.layers[layer];
    add_gated(p.ffn_receptance, p.ffn_value, tick);
  }

  /// mixed[j] = now + (before - now) * (maa_j + tanh(token_shift(now, before, maa_x) w1)_j w2_j)
  void mix_by_token(const layer_weights& p, std::uint32_t layer, pass& tick) {
    const norm_weights norm = norm_of(p.ln1_weight, p.ln1_bias);
    const std::size_t x_prev = layout_.att_x_prev(layer);
    auto* const statistics = static_cast<row_statistics*>(rows_.statistics.data);
    if (!tick.learns) {
      token_shift_parameters of = shift_of(norm, x_prev);
      of.shifts = 1, of.mix[0] = p.maa_x, of.out[0] = gated_.mixed_k.data;
      tick.note(shift_for_shares(tick.in, tick.rows, type_, of, statistics));
    }
    const gemm inner = gemm_of(p.maa_w1, gated_.mixed_k, rows_.low, {activation_function::tanh});
    if (!can_mix_by_token(type_, p.maa_w2[0])) return mix_in_two_steps(layer, norm, x_prev, inner, tick);
    gemm first = inner;
    first.pdl_early_launch = true;
    gemm_rows low;
    split({&first, 1}, {&first, 1}, {&low, 1}, tick);
    if (low.parts > 0) first.how.function = activation_function::none;  // its consumer applies it
    multiply_rows(tick, {&first, 1});
    if (tick.learns) return;
    mix_by_token_parameters of;
    of.shift = shift_to_mixed(p, norm, x_prev), of.statistics = statistics;
    of.low = low, of.whole = rows_.low.data, of.whole_stride = rows_.low.stride;
    std::ranges::copy(p.maa_w2, of.pairs);
    tick.note(gpu::mix_by_token(tick.in, tick.rows, type_, of));
  }

  /// The same after `inner`, by GEMMs that make the shares, and a token shift.
  void mix_in_two_steps(std::uint32_t layer, const norm_weights& norm, std::size_t x_prev, const gemm& inner,
                        pass& tick) {
    const layer_weights& p = weights_.layers[layer];
    std::array<gemm, 1 + mix_count> gemms;
    gemms[0] = inner;
    gemms[0].when = turn::first;
    const std::size_t pair_bytes = padded(dims_.rank_x) * element_bytes(type_);
    for (std::size_t j = 0; j < mix_count; ++j) {
      const activation of_pair{static_cast<std::byte*>(rows_.low.data) + j * pair_bytes, rows_.low.stride};
      gemms[1 + j] = gemm_of(p.maa_w2[j], of_pair, rows_.mixed[j], store_gate());
      gemms[1 + j].when = turn::second, gemms[1 + j].done = done_of(layer, 1);
    }
    gemms[0].pdl_early_launch = gemms[1].pdl_early_launch = true;
    multiply_rows(tick, gemms);
    if (tick.learns) return;
    const void* shares[mix_count];
    for (std::size_t j = 0; j < mix_count; ++j) shares[j] = rows_.mixed[j].data;
    tick.note(shift_by_row(tick.in, tick.rows, type_, shift_to_mixed(p, norm, x_prev), shares));
  }

  token_shift_parameters shift_to_mixed(const layer_weights& p, const norm_weights& norm, std::size_t x_prev) {
    token_shift_parameters of = shift_of(norm, x_prev);
    of.mix[0] = p.maa_w, of.mix[1] = p.maa_k, of.mix[2] = p.maa_v, of.mix[3] = p.maa_r, of.mix[4] = p.maa_g;
    for (std::size_t j = 0; j < mix_count; ++j) of.out[j] = rows_.mixed[j].data;
    of.shifts = mix_count;
    return of;
  }

  const rwkv6_rows rows_;
  std::array<gemm_rows, projections_max> projections_;  ///< r k v of the current layer
  const device_weights_of<rwkv6_layer_of> weights_;
};

}  // namespace

std::unique_ptr<gpu_model> make(const rwkv6_weights& weights, const gpu_options& options, const model_room& room,
                                stream_handle in, const library_opener& open_library) {
  return std::make_unique<rwkv6_model>(weights, options, room, in, open_library);
}

memory_plan plan(const rwkv6_weights& weights, const gpu_options& options, const model_room& room,
                 const library_opener& open_library) {
  activation_room counted(room.rows, options.matrix_type, true);
  const gated_rows gated(weights.dims, {}, counted);
  const rwkv6_rows rows(weights.dims, counted);
  return rwkv6_model::plan(weights.dims, options, room, open_library,
                           device_weight_bytes(weights, matrix_formats(options)), counted.bytes());
}

}  // namespace skein::kernels::gpu
