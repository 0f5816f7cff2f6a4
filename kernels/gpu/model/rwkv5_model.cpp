// RWKV-5 on the GPU.
#include <array>

#include "kernels/gpu/model/headed_model.hpp"
#include "kernels/gpu/model/prepared_vectors.hpp"
#include "kernels/gpu/model/versions.hpp"

namespace skein::kernels::gpu {

namespace {

struct rwkv5_rows {
  activation mixed_v, mixed_g, r, k, v, g, y;

  rwkv5_rows(const model_dims& dims, activation_room& room)
      : mixed_v(room.make(dims.embd)),
        mixed_g(room.make(dims.embd)),
        r(room.make(dims.att())),
        k(room.make(dims.att())),
        v(room.make(dims.att())),
        g(room.make(dims.att())),
        y(room.make(dims.att())) {}
};

class rwkv5_model final : public headed_model {
 public:
  rwkv5_model(const prepared_weights<rwkv5_layer_of>& prepared, const gpu_options& options, const model_room& room,
              stream_handle in, const library_opener& open_library)
      : headed_model(prepared.weights.dims, options, room, open_library),
        rows_(dims_, activations_),
        weights_(upload(prepared.weights, matrix_formats(options), options.progress)) {
    start(in, [&](std::uint32_t layer, std::span<float> state) {
      copy_initial(prepared.weights.layers[layer].time_state, state);
    });
  }
  using headed_model::plan;

  [[nodiscard]] std::size_t weight_bytes() const override { return weights_.memory.bytes(); }

 private:
  using layer_weights = rwkv5_layer_of<device_types>;
  [[nodiscard]] const outer_weights_of<device_types>& outer() const override { return weights_; }
  static bool has_gate(const layer_weights& layer) { return layer.gate.data != nullptr; }

  void time_mix_in(std::uint32_t layer, pass& tick) override {
    const layer_weights& p = weights_.layers[layer];
    const std::size_t count = has_gate(p) ? 4 : 3;
    const std::array<const float*, 4> mixes = {p.mix_r, p.mix_k, p.mix_v, p.mix_g};
    const std::array mixed = {gated_.mixed_r, gated_.mixed_k, rows_.mixed_v, rows_.mixed_g};
    shift(tick, norm_of(p.ln1_weight, p.ln1_bias), layout_.att_x_prev(layer), std::span(mixes).first(count), mixed);
    std::array all = {
        gemm_of(p.receptance, mixed[0], rows_.r),
        gemm_of(p.key, mixed[1], rows_.k),
        gemm_of(p.value, mixed[2], rows_.v),
        gemm_of(p.gate, mixed[3], rows_.g),
    };
    const auto gemms = std::span(all).first(count);
    split(gemms.first(projections_.size()), gemms, projections_, tick);
    gemms.front().pdl_early_launch = true;
    multiply_rows(tick, gemms);
  }

  void time_mix_state(std::uint32_t layer, pass& tick) override {
    const layer_weights& p = weights_.layers[layer];
    wkv6_parameters of;
    of.r = projections_[0], of.k = projections_[1], of.v = projections_[2];
    if (has_gate(p)) of.g = rows_of(rows_.g);
    of.y = rows_.y.data;
    of.decay = p.decay, of.bonus = p.bonus, of.ln_x_weight = p.ln_x_weight, of.ln_x_bias = p.ln_x_bias;
    mix_states(layer, of, tick);
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

  const rwkv5_rows rows_;
  std::array<gemm_rows, projections_max> projections_;  ///< r k v of the current layer
  const device_weights_of<rwkv5_layer_of> weights_;
};

}  // namespace

std::unique_ptr<gpu_model> make(const rwkv5_weights& weights, const gpu_options& options, const model_room& room,
                                stream_handle in, const library_opener& open_library) {
  return std::make_unique<rwkv5_model>(prepare(weights), options, room, in, open_library);
}

memory_plan plan(const rwkv5_weights& weights, const gpu_options& options, const model_room& room,
                 const library_opener& open_library) {
  activation_room counted(room.rows, options.matrix_type, true);
  const gated_rows gated(weights.dims, {}, counted);
  const rwkv5_rows rows(weights.dims, counted);
  return rwkv5_model::plan(weights.dims, options, room, open_library,
                           device_weight_bytes(prepare(weights).weights, matrix_formats(options)), counted.bytes());
}

}  // namespace skein::kernels::gpu
