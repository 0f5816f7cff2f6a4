// RWKV-7 on the GPU.
#include <array>
#include <optional>

#include "kernels/gpu/model/base_model.hpp"
#include "kernels/gpu/model/chunk_room.hpp"
#include "kernels/gpu/model/sparse_value.hpp"
#include "kernels/gpu/model/versions.hpp"
#include "kernels/gpu/time_mix/chunks/wkv_chunks.hpp"
#include "kernels/gpu/time_mix/time_mix.hpp"

namespace skein::kernels::gpu {

namespace {

bool wants_sparse_values(const gpu_options& options) {
  return options.invariance == invariance::fast && options.matrix_type != element::f32 && !options.formats.quantised();
}

/// For the current device.
bool can_chunk_time_mix(const model_dims& dims, const gpu_options& options, const model_room& room) {
  return wants_chunks(dims, options, room) && chunked_time_mix::available();
}

/// mixed: for r k v w a g; the first of them is given.
struct rwkv7_rows {
  std::array<activation, 6> mixed;
  activation r, k, v, v_out, v_first, inner_w, inner_a, inner_v, inner_g, hidden;

  rwkv7_rows(const model_dims& dims, activation normed, activation_room& room)
      : mixed{{normed, room.make(dims.embd), room.make(dims.embd), room.make(dims.embd), room.make(dims.embd),
               room.make(dims.embd)}},
        r(room.make(dims.embd)),
        k(room.make(dims.embd)),
        v(room.make(dims.embd)),
        v_out(room.make(dims.embd)),
        v_first(room.make(dims.embd)),
        inner_w(room.make(dims.rank_w)),
        inner_a(room.make(dims.rank_a)),
        inner_v(room.make(dims.rank_v)),
        inner_g(room.make(dims.rank_g)),
        hidden(room.make(dims.ffn)) {}
};

/// The outputs of the low-rank pairs have the type gate_element.
class rwkv7_model final : public base_model {
 public:
  rwkv7_model(const rwkv7_weights& weights, const gpu_options& options, const model_room& room, stream_handle in,
              const library_opener& open_library)
      : base_model(weights.dims, options, room, open_library),
        rows_(dims_, normed_, activations_),
        weights_(upload(weights, matrix_formats(options), options.progress)) {
    if (can_chunk_time_mix(dims_, options, room)) chunks_.emplace(dims_.embd, type_, room.rows, chunked_runs_max(room));
    if (wants_sparse_values(options)) make_sparse(in);
    start(in,
          [&](std::uint32_t layer, std::span<float> state) { copy_initial(weights.layers[layer].time_state, state); });
  }
  static memory_plan plan(const rwkv7_weights& weights, const gpu_options& options, const model_room& room,
                          const library_opener& open_library);

  [[nodiscard]] std::uint32_t chunk_tokens() const override { return chunks_ ? gpu::chunk_tokens : 0; }
  [[nodiscard]] std::size_t weight_bytes() const override {
    return weights_.memory.bytes() + (sparse_ ? sparse_->bytes() : 0);
  }
  [[nodiscard]] std::size_t activation_bytes() const override {
    return base_model::activation_bytes() + (chunks_ ? chunks_->bytes() : 0);
  }

 private:
  [[nodiscard]] const outer_weights_of<device_types>& outer() const override { return weights_; }
  [[nodiscard]] bool has_leaders() const override { return true; }
  void plan_chunks(std::span<const sequence_run> runs, pass& tick) override;
  void time_mix_in(std::uint32_t layer, pass& tick) override;
  void time_mix_state(std::uint32_t layer, pass& tick) override;
  void time_mix_out(std::uint32_t layer, pass& tick) override;
  void channel_mix_in(std::uint32_t layer, pass& tick) override;
  void channel_mix_out(std::uint32_t layer, pass& tick) override;

  /// Whether channel mixing ends with sparse_values.
  [[nodiscard]] bool is_sparse(const pass& tick) const {
    return sparse_ && tick.rows.room.rows <= sparse_values::rows_max && !tick.learns;
  }
  void make_sparse(stream_handle in);

  const rwkv7_rows rows_;
  std::array<gemm_rows, projections_max> projections_;  ///< r k v of the current layer
  const device_weights_of<rwkv7_layer_of>
      weights_;                             ///< last of the buffers: a lack of memory shows before the long upload
  std::optional<chunked_time_mix> chunks_;  ///< none: no row may be chunked
  std::optional<sparse_values> sparse_;     ///< if invariance is fast and enough memory is free
};

memory_plan rwkv7_model::plan(const rwkv7_weights& weights, const gpu_options& options, const model_room& room,
                              const library_opener& open_library) {
  const model_dims& dims = weights.dims;
  const element type = options.matrix_type;
  std::size_t weight_bytes = device_weight_bytes(weights, matrix_formats(options));
  if (wants_sparse_values(options))
    weight_bytes += sparse_values::planned_bytes(dims.layers, dims.embd, dims.ffn, type);
  activation_room counted(room.rows, type, true);
  const rwkv7_rows rows(dims, {}, counted);
  std::size_t activation_bytes = counted.bytes();
  if (can_chunk_time_mix(dims, options, room))
    activation_bytes += chunked_time_mix::planned_bytes(dims.embd, room.rows, chunked_runs_max(room));
  return base_model::plan(dims, options, room, open_library, weight_bytes, activation_bytes);
}

void rwkv7_model::plan_chunks(std::span<const sequence_run> runs, pass& tick) {
  if (!chunks_ || runs.empty()) return;
  tick.note(chunks_->plan(tick.in, tick.rows, runs));
  tick.has_chunks = chunks_->has_chunks(), tick.has_other_rows = chunks_->has_other_rows();
}

void rwkv7_model::time_mix_in(std::uint32_t layer, pass& tick) {
  const auto& p = weights_.layers[layer];
  const std::array<const float*, 6> mixes = {p.x_r, p.x_k, p.x_v, p.x_w, p.x_a, p.x_g};
  // Channel mixing has spent its hidden rows; not if they end in zeros that have to stay.
  shift(tick, norm_of(p.ln1_weight, p.ln1_bias), layout_.att_x_prev(layer), mixes, rows_.mixed,
        rows_.hidden.stride == dims_.ffn ? &rows_.hidden : nullptr);
  const auto& [for_r, for_k, for_v, for_w, for_a, for_g] = rows_.mixed;
  const epilogue as_gate = store_gate();
  // w_out, a_out and g_out reuse the memory of inputs that only the first product of their pair reads.
  std::array<gemm, gemms_max> gemms = {
      gemm_of(p.v1, for_v, rows_.inner_v),
      gemm_of(p.g1, for_g, rows_.inner_g, {activation_function::sigmoid}),
      gemm_of(p.w1, for_w, rows_.inner_w, {activation_function::tanh}),
      gemm_of(p.a1, for_a, rows_.inner_a),
      gemm_of(p.receptance, for_r, rows_.r),
      gemm_of(p.key, for_k, rows_.k),
      gemm_of(p.value, for_v, rows_.v),
      gemm_of(p.g2, rows_.inner_g, for_g, as_gate),
      gemm_of(p.w2, rows_.inner_w, for_w, as_gate),
      gemm_of(p.a2, rows_.inner_a, for_a, as_gate),
      gemm_of(p.v2, rows_.inner_v, rows_.v_out, as_gate),
  };
  constexpr std::size_t low_rank = 4, projections = 3, second = low_rank + projections;
  for (gemm& inner : std::span(gemms).first(low_rank)) inner.when = turn::first;
  for (gemm& outer : std::span(gemms).subspan(second)) outer.when = turn::second, outer.done = done_of(layer);
  const std::size_t skipped = layer == 0 ? 1 : 0;  // the first layer has no v1 and v2
  const auto in_this_layer = std::span(gemms).subspan(skipped, gemms.size() - 2 * skipped);
  const auto cut = std::span(gemms).subspan(low_rank, projections);
  split(cut, in_this_layer, projections_, tick);
  in_this_layer.front().pdl_early_launch = gemms[second].pdl_early_launch = true;
  multiply_rows(tick, in_this_layer);
}

void rwkv7_model::time_mix_state(std::uint32_t layer, pass& tick) {
  const auto& p = weights_.layers[layer];
  const activation &y = rows_.mixed[0], &w_out = rows_.mixed[3], &a_out = rows_.mixed[4],
                   &g_out = rows_.mixed[5];  // see time_mix_in
  time_mix_parameters of;
  of.r = projections_[0], of.k = projections_[1], of.v = projections_[2];
  of.w_out = rows_of(w_out), of.a_out = rows_of(a_out), of.g_out = rows_of(g_out), of.v_out = rows_of(rows_.v_out);
  of.v_first = rows_.v_first.data, of.y = y.data;
  of.w0 = p.w0, of.a0 = p.a0, of.v0 = p.v0, of.k_k = p.k_k, of.k_a = p.k_a, of.r_k = p.r_k;
  of.ln_x_weight = p.ln_x_weight, of.ln_x_bias = p.ln_x_bias;
  of.state = state_of(layer), of.slot_bytes = layout_.wkv_bytes();
  of.width = dims_.embd, of.first_layer = layer == 0;
  if (dims_.head_size != head_size)
    return tick.note(time_mix_any_head(tick.in, tick.rows, type_, layout_.type, of, dims_.head_size));
  if (tick.is_led && dims_.heads * tick.rows.room.rows <= led_heads_max) {
    tick.leads = of;
    return;
  }
  if (tick.has_chunks) tick.note(chunks_->run(tick.in, layout_.type, of));
  if (tick.has_other_rows) tick.note(time_mix(tick.in, tick.rows, type_, layout_.type, of));
}

void rwkv7_model::time_mix_out(std::uint32_t layer, pass& tick) {
  add_to_x(tick, weights_.layers[layer].output, rows_.mixed[0]);
}

void rwkv7_model::channel_mix_in(std::uint32_t layer, pass& tick) {
  const auto& p = weights_.layers[layer];
  shift(tick, norm_of(p.ln2_weight, p.ln2_bias), layout_.ffn_x_prev(layer), {&p.ffn_x_k.data, 1}, rows_.mixed);
  gemm key = gemm_of(p.ffn_key, rows_.mixed[0], rows_.hidden, {activation_function::relu_squared});
  key.pdl_early_launch = true;
  if (tick.leads && !is_sparse(tick))
    tick.begins = key;  // of the launch of channel_mix_out
  else
    multiply_rows(tick, {&key, 1});
}

void rwkv7_model::channel_mix_out(std::uint32_t layer, pass& tick) {
  const std::uint32_t room = tick.rows.room.rows;
  if (is_sparse(tick))
    tick.note(sparse_->add(tick.in, layer, rows_.hidden.data, &tick.rows.counts->rows, room, x()));
  else
    add_to_x(tick, weights_.layers[layer].ffn_value, rows_.hidden);
}

// It only speeds up very small batches, so a lack of memory is no reason to fail.
void rwkv7_model::make_sparse(stream_handle in) {
  try {
    sparse_.emplace(weights_.layers, type_, in);
  } catch (const device_failure&) {
    sparse_.reset();
  }
}

}  // namespace

std::unique_ptr<gpu_model> make(const rwkv7_weights& weights, const gpu_options& options, const model_room& room,
                                stream_handle in, const library_opener& open_library) {
  return std::make_unique<rwkv7_model>(weights, options, room, in, open_library);
}

memory_plan plan(const rwkv7_weights& weights, const gpu_options& options, const model_room& room,
                 const library_opener& open_library) {
  return rwkv7_model::plan(weights, options, room, open_library);
}

}  // namespace skein::kernels::gpu
