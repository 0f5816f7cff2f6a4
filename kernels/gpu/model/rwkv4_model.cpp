// RWKV-4 on the GPU.
#include <algorithm>
#include <array>

#include "kernels/gpu/model/gated_model.hpp"
#include "kernels/gpu/model/prepared_vectors.hpp"
#include "kernels/gpu/model/versions.hpp"
#include "kernels/gpu/time_mix/wkv4.hpp"
#include "kernels/ops.hpp"

namespace skein::kernels::gpu {

namespace {

struct rwkv4_rows {
  activation mixed_v, r, k, v, y;

  rwkv4_rows(const model_dims& dims, activation_room& room)
      : mixed_v(room.make(dims.embd)),
        r(room.make(dims.att())),
        k(room.make(dims.att(), element::f32)),
        v(room.make(dims.att())),
        y(room.make(dims.att())) {}
};

/// Keys are fp32.
class rwkv4_model final : public gated_model {
 public:
  rwkv4_model(const prepared_weights<rwkv4_layer_of>& prepared, const gpu_options& options, const model_room& room,
              stream_handle in, const library_opener& open_library)
      : gated_model(prepared.weights.dims, options, room, open_library),
        rows_(dims_, activations_),
        weights_(upload(prepared.weights, matrix_formats(options), options.progress)) {
    start(in, [&](std::uint32_t, std::span<float> state) {
      std::ranges::fill(state.last(dims_.att()), wkv4_empty_exponent);
    });
  }
  using base_model::plan;

  [[nodiscard]] std::size_t weight_bytes() const override { return weights_.memory.bytes(); }

 private:
  [[nodiscard]] const outer_weights_of<device_types>& outer() const override { return weights_; }

  void time_mix_in(std::uint32_t layer, pass& tick) override {
    const auto& p = weights_.layers[layer];
    const std::array<const float*, 3> mixes = {p.mix_r, p.mix_k, p.mix_v};
    const std::array mixed = {gated_.mixed_r, gated_.mixed_k, rows_.mixed_v};
    shift(tick, norm_of(p.ln1_weight, p.ln1_bias), layout_.att_x_prev(layer), mixes, mixed);
    std::array gemms = {
        gemm_of(p.receptance, mixed[0], rows_.r),
        gemm_of(p.key, mixed[1], rows_.k, {.to = destination::f32}),
        gemm_of(p.value, mixed[2], rows_.v),
    };
    split(gemms, gemms, projections_, tick);
    gemms.front().pdl_early_launch = true;
    multiply_rows(tick, gemms);
  }

  void time_mix_state(std::uint32_t layer, pass& tick) override {
    const auto& p = weights_.layers[layer];
    wkv4_parameters of;
    of.r = projections_[0], of.k = projections_[1], of.v = projections_[2];
    of.y = rows_.y.data, of.decay = p.decay, of.bonus = p.bonus;
    of.state = state_of(layer), of.slot_bytes = layout_.wkv_bytes(), of.width = dims_.att();
    tick.note(wkv4(tick.in, tick.rows, type_, of));
  }

  void time_mix_out(std::uint32_t layer, pass& tick) override {
    add_to_x(tick, weights_.layers[layer].output, rows_.y);
  }

  void channel_mix_in(std::uint32_t layer, pass& tick) override {
    const auto& p = weights_.layers[layer];
    mix_channels(layer, {norm_of(p.ln2_weight, p.ln2_bias), p.ffn_mix_k, p.ffn_mix_r, p.ffn_key}, tick);
  }

  void channel_mix_out(std::uint32_t layer, pass& tick) override {
    const auto& p = weights_.layers[layer];
    add_gated(p.ffn_receptance, p.ffn_value, tick);
  }

  const rwkv4_rows rows_;
  std::array<gemm_rows, projections_max> projections_;  ///< r k v of the current layer
  const device_weights_of<rwkv4_layer_of> weights_;
};

}  // namespace

std::unique_ptr<gpu_model> make(const rwkv4_weights& weights, const gpu_options& options, const model_room& room,
                                stream_handle in, const library_opener& open_library) {
  return std::make_unique<rwkv4_model>(prepare(weights), options, room, in, open_library);
}

memory_plan plan(const rwkv4_weights& weights, const gpu_options& options, const model_room& room,
                 const library_opener& open_library) {
  activation_room counted(room.rows, options.matrix_type, true);
  const gated_rows gated(weights.dims, {}, counted);
  const rwkv4_rows rows(weights.dims, counted);
  return rwkv4_model::plan(weights.dims, options, room, open_library,
                           device_weight_bytes(prepare(weights).weights, matrix_formats(options)), counted.bytes());
}

}  // namespace skein::kernels::gpu
