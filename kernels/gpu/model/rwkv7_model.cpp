#include "kernels/gpu/model/rwkv7_model.hpp"

#include <chrono>

#include "base/check.hpp"
#include "kernels/gpu/gemm/matmul_few_rows.hpp"
#include "kernels/gpu/ops/token_shift.hpp"
#include "kernels/gpu/sampling/sampling.hpp"
#include "kernels/gpu/time_mix/time_mix.hpp"

namespace skein::kernels::gpu {

namespace {

gemm gemm_of(const device_matrix& matrix, const activation& in, const activation& out, epilogue how = epilogue::store) {
  return {matrix.data, in.data(), out.data(), matrix.outputs, matrix.inputs, in.stride(), out.stride(), how};
}

gemm_rows rows_of(const activation& out) { return {out.data(), out.stride(), 0, 0}; }

bool wants_library(const gpu_options& options, const model_room& room) {
  return options.invariance == invariance::fast && options.matrix_type != element::f32 &&
         room.rows >= tuned_matmul::library_rows_min;
}

bool wants_sparse_values(const gpu_options& options) {
  return options.invariance == invariance::fast && options.matrix_type != element::f32;
}

/// For the current device.
bool can_chunk(const model_dims& dims, const gpu_options& options, const model_room& room) {
  const bool may_chunk = options.invariance != invariance::strict && options.matrix_type != element::f32;
  return may_chunk && room.rows > gpu::chunk_tokens && dims.head_size == head_size && chunked_time_mix::available();
}

std::uint32_t chunked_runs_max(const model_room& room) { return std::min(room.slots, room.rows); }

/// Including the slot of the initial state.
slot_layout layout_of(const model_dims& dims, const gpu_options& options, const model_room& room) {
  return {dims.layers, room.slots + 1, dims.embd, options.state_type, dims.head_size};
}

/// The widths of rwkv7_model::activations(), in that order.
std::array<std::uint32_t, 16> activation_widths(const model_dims& dims) {
  const std::uint32_t c = dims.embd;
  return {c, c, c, c, c, c, c, c, c, c, c, dims.rank_w, dims.rank_a, dims.rank_v, dims.rank_g, dims.ffn};
}

tuned_matmul choose_gemms(const gpu_options& options, const model_room& room, const library_opener& open_library,
                          std::string& library_trouble) {
  const element type = options.matrix_type;
  const auto ours = choose_matmul(options.device, type);
  if (!ours) throw device_failure(ours.error());
  if (!wants_library(options, room)) return {*ours, type};
  auto library = open_library();
  if (library) return {*ours, type, std::move(*library), room.rows};
  library_trouble = "none: " + library.error().message;
  return {*ours, type};
}

}  // namespace

rwkv7_model::rwkv7_model(const rwkv7_weights& weights, const gpu_options& options, const model_room& room,
                         stream_handle in, const library_opener& open_library)
    : dims_(weights.dims),
      type_(options.matrix_type),
      room_(room),
      layout_(layout_of(dims_, options, room)),
      matmul_(choose_gemms(options, room, open_library, library_)),
      x_{{rows_buffer(room.rows), rows_buffer(room.rows)}},
      parts_{{rows_buffer(parts_rows()), rows_buffer(parts_rows()), rows_buffer(parts_rows())}},
      mixed_{{{room.rows, dims_.embd, type_},
              {room.rows, dims_.embd, type_},
              {room.rows, dims_.embd, type_},
              {room.rows, dims_.embd, type_},
              {room.rows, dims_.embd, type_},
              {room.rows, dims_.embd, type_}}},
      r_(room.rows, dims_.embd, type_),
      k_(room.rows, dims_.embd, type_),
      v_(room.rows, dims_.embd, type_),
      v_out_(room.rows, dims_.embd, type_),
      v_first_(room.rows, dims_.embd, type_),
      inner_w_(room.rows, dims_.rank_w, type_),
      inner_a_(room.rows, dims_.rank_a, type_),
      inner_v_(room.rows, dims_.rank_v, type_),
      inner_g_(room.rows, dims_.rank_g, type_),
      hidden_(room.rows, dims_.ffn, type_),
      logits_(std::size_t{room.logit_rows} * dims_.vocab, "logits"),
      states_(layout_.bytes(), "the states of the slots"),
      weights_(upload(weights, type_, options.progress)) {
  if (can_chunk(dims_, options, room)) chunks_.emplace(dims_.embd, type_, room.rows, chunked_runs_max(room));
  if (wants_sparse_values(options)) make_sparse(in);
  learn_gemms(in);
  for (const activation* a : activations()) require(fill_with_zeros(a->data(), a->bytes(), in));
  require(fill_with_zeros(done_.data(), done_.bytes(), in));
  set_initial_state(weights, in);
  for (slot_id slot = 0; slot < room.slots; ++slot) require(queue_clear(slot, in));
  require(wait_for(in));  // if a later constructor fails, this memory is freed before the stream
}

memory_plan rwkv7_model::plan(const rwkv7_weights& weights, const gpu_options& options, const model_room& room,
                              const library_opener& open_library) {
  const model_dims& dims = weights.dims;
  const element type = options.matrix_type;
  const slot_layout layout = layout_of(dims, options, room);
  memory_plan plan;
  plan.slots = options.limits.slots;
  plan.slot_bytes = layout.slot_bytes();
  plan.workspace_bytes = layout.bytes() - plan.bytes_of_slots();
  plan.weight_bytes = device_weight_bytes(weights, type);
  if (wants_sparse_values(options))
    plan.weight_bytes += sparse_values::planned_bytes(dims.layers, dims.embd, dims.ffn, type);
  const std::size_t fp32_rows = 2 * room.rows + 3 * parts_rows(room);  // x_ and parts_
  plan.activation_bytes = fp32_rows * dims.embd * sizeof(float);
  plan.activation_bytes += std::size_t{room.logit_rows} * dims.vocab * sizeof(float) + 2 * sizeof(std::uint32_t);
  for (const std::uint32_t width : activation_widths(dims))
    plan.activation_bytes += activation::planned_bytes(room.rows, width, type);
  if (can_chunk(dims, options, room))
    plan.activation_bytes += chunked_time_mix::planned_bytes(dims.embd, room.rows, chunked_runs_max(room));
  if (wants_library(options, room) && open_library()) plan.activation_bytes += tuned_matmul::workspace_bytes;
  return plan;
}

result<void> rwkv7_model::queue_forward(const device_batch& rows, std::span<const sequence_run> runs,
                                        stream_handle in) {
  pass tick{rows, in, false, true, {}};
  if (chunks_ && !runs.empty()) {
    tick.note(chunks_->plan(in, rows, runs));
    tick.has_chunks = chunks_->has_chunks(), tick.has_other_rows = chunks_->has_other_rows();
  }
  now_ = 0, added_ = {};
  embed(tick);
  for (std::uint32_t layer = 0; layer < dims_.layers; ++layer) {
    time_mix_in(layer, tick);
    time_mix_state(layer, tick);
    time_mix_out(layer, tick);
    channel_mix_in(layer, tick);
    channel_mix_out(layer, tick);
  }
  return tick.outcome;
}

void rwkv7_model::embed(pass& tick) {
  tick.note(gpu::embed(tick.in, tick.rows, type_, weights_.emb.data, padded(dims_.embd),
                       norm_of(weights_.ln0_weight, weights_.ln0_bias), x_[now_].data(), dims_.embd));
}

void rwkv7_model::time_mix_in(std::uint32_t layer, pass& tick) {
  const device_layer& p = weights_.layers[layer];
  const std::array<const float*, 6> mixes = {p.x_r, p.x_k, p.x_v, p.x_w, p.x_a, p.x_g};
  shift(tick, norm_of(p.ln1_weight, p.ln1_bias), layout_.att_x_prev(layer), mixes);
  const auto& [for_r, for_k, for_v, for_w, for_a, for_g] = mixed_;
  const epilogue as_gate = type_ == element::bf16 ? epilogue::store_f16 : epilogue::store;
  // w_out, a_out and g_out reuse the memory of inputs that only the first product of their pair reads.
  std::array<gemm, gemms_max> gemms = {
      gemm_of(p.v1, for_v, inner_v_),
      gemm_of(p.g1, for_g, inner_g_, epilogue::sigmoid),
      gemm_of(p.w1, for_w, inner_w_, epilogue::tanh),
      gemm_of(p.a1, for_a, inner_a_),
      gemm_of(p.receptance, for_r, r_),
      gemm_of(p.key, for_k, k_),
      gemm_of(p.value, for_v, v_),
      gemm_of(p.g2, inner_g_, for_g, as_gate),
      gemm_of(p.w2, inner_w_, for_w, as_gate),
      gemm_of(p.a2, inner_a_, for_a, as_gate),
      gemm_of(p.v2, inner_v_, v_out_, as_gate),
  };
  constexpr std::size_t low_rank = 4, projections = 3, second = low_rank + projections;
  for (gemm& inner : std::span(gemms).first(low_rank)) inner.when = turn::first;
  for (gemm& outer : std::span(gemms).subspan(second)) outer.when = turn::second, outer.done = done_.data();
  const std::size_t skipped = layer == 0 ? 1 : 0;  // the first layer has no v1 and v2
  const auto in_this_layer = std::span(gemms).subspan(skipped, gemms.size() - 2 * skipped);
  const auto cut = std::span(gemms).subspan(low_rank, projections);
  const bool split = cut_into_segments(cut, in_this_layer, tick);
  for (std::size_t i = 0; i < projections; ++i) {
    projections_[i] = {cut[i].out, cut[i].out_stride, 0, 0};
    if (split) projections_[i] = store_parts(cut[i], parts_[i], tick);
  }
  in_this_layer.front().pdl_early_launch = gemms[second].pdl_early_launch = true;
  multiply_rows(tick, in_this_layer);
}

void rwkv7_model::time_mix_state(std::uint32_t layer, pass& tick) {
  const device_layer& p = weights_.layers[layer];
  const activation &y = mixed_[0], &w_out = mixed_[3], &a_out = mixed_[4], &g_out = mixed_[5];  // see time_mix_in
  time_mix_parameters of;
  of.r = projections_[0], of.k = projections_[1], of.v = projections_[2];
  of.w_out = rows_of(w_out), of.a_out = rows_of(a_out), of.g_out = rows_of(g_out), of.v_out = rows_of(v_out_);
  of.v_first = v_first_.data(), of.y = y.data();
  of.w0 = p.w0, of.a0 = p.a0, of.v0 = p.v0, of.k_k = p.k_k, of.k_a = p.k_a, of.r_k = p.r_k;
  of.ln_x_weight = p.ln_x_weight, of.ln_x_bias = p.ln_x_bias;
  of.state = states_.data() + layout_.wkv(layer), of.slot_bytes = layout_.wkv_bytes();
  of.width = dims_.embd, of.first_layer = layer == 0;
  if (dims_.head_size != head_size)
    return tick.note(time_mix_any_head(tick.in, tick.rows, type_, layout_.type, of, dims_.head_size));
  if (tick.has_chunks) tick.note(chunks_->run(tick.in, layout_.type, of));
  if (tick.has_other_rows) tick.note(time_mix(tick.in, tick.rows, type_, layout_.type, of));
}

void rwkv7_model::time_mix_out(std::uint32_t layer, pass& tick) {
  add_to_x(tick, weights_.layers[layer].output, mixed_[0]);
}

void rwkv7_model::channel_mix_in(std::uint32_t layer, pass& tick) {
  const device_layer& p = weights_.layers[layer];
  shift(tick, norm_of(p.ln2_weight, p.ln2_bias), layout_.ffn_x_prev(layer), {&p.ffn_x_k.data, 1});
  gemm key = gemm_of(p.ffn_key, mixed_[0], hidden_, epilogue::relu_squared);
  key.pdl_early_launch = true;
  multiply_rows(tick, {&key, 1});
}

void rwkv7_model::channel_mix_out(std::uint32_t layer, pass& tick) {
  const std::uint32_t room = tick.rows.room.rows;
  if (is_sparse(tick))
    tick.note(sparse_->add(tick.in, layer, hidden_.data(), &tick.rows.counts->rows, room, x_[now_].data()));
  else
    add_to_x(tick, weights_.layers[layer].ffn_value, hidden_);
}

result<void> rwkv7_model::queue_head(const device_batch& rows, stream_handle in) {
  const activation& normed = mixed_[0];
  pass tick{rows, in, false, true, {}};
  tick.note(norm_wanted(in, rows, type_, {x_[now_].data(), added_},
                        norm_of(weights_.ln_out_weight, weights_.ln_out_bias), normed.data(), normed.stride(),
                        dims_.embd));
  multiply_wanted(tick);
  return tick.outcome;
}

result<void> rwkv7_model::queue_copy(slot_id from, slot_id to, stream_handle in) {
  return copy_state(in, layout_, states_.data(), from, to);
}

result<void> rwkv7_model::queue_read(slot_id slot, float* canonical, stream_handle in) const {
  return state_to_canonical(in, layout_, states_.data(), slot, canonical);
}

result<void> rwkv7_model::queue_write(slot_id slot, const float* canonical, stream_handle in) {
  return state_from_canonical(in, layout_, canonical, states_.data(), slot);
}

std::size_t rwkv7_model::activation_bytes() const {
  std::size_t bytes = x_[0].bytes() + x_[1].bytes() + logits_.bytes() + done_.bytes();
  for (const device_buffer<float>& parts : parts_) bytes += parts.bytes();
  for (const activation* a : activations()) bytes += a->bytes();
  return bytes + matmul_.bytes() + (chunks_ ? chunks_->bytes() : 0);
}

std::array<const activation*, 16> rwkv7_model::activations() const {
  return {&mixed_[0], &mixed_[1], &mixed_[2], &mixed_[3], &mixed_[4], &mixed_[5], &r_,       &k_,
          &v_,        &v_out_,    &v_first_,  &inner_w_,  &inner_a_,  &inner_v_,  &inner_g_, &hidden_};
}

void rwkv7_model::shift(pass& tick, const norm_weights& norm, std::size_t x_prev, std::span<const float* const> mixes) {
  if (tick.learns) return;
  token_shift_parameters of;
  of.from = {x_[now_].data(), added_}, of.norm = norm;
  if (added_.parts > 0) {
    of.sum = x_[now_ ^= 1].data(), of.discards = true, added_ = {};
    // Before time mixing, channel mixing has spent its hidden rows; not if they end in zeros that have to stay.
    if (mixes.size() > 1 && hidden_.stride() == dims_.ffn)
      of.spent = hidden_.data(), of.spent_bytes = hidden_.stride() * element_bytes(type_);
  }
  of.x_prev = states_.data() + x_prev, of.slot_bytes = layout_.x_prev_bytes(), of.kept_type = layout_.type;
  of.width = dims_.embd, of.out_stride = mixed_[0].stride();
  for (const float* mix : mixes) {
    of.mix[of.shifts] = mix;
    of.out[of.shifts] = mixed_[of.shifts].data();
    ++of.shifts;
  }
  tick.note(token_shift(tick.in, tick.rows, type_, of));
}

void rwkv7_model::multiply_rows(pass& tick, std::span<const gemm> gemms) {
  multiply(tick, gemms, &tick.rows.counts->rows, tick.rows.room.rows);
}

void rwkv7_model::multiply_wanted(pass& tick) {
  const activation& normed = mixed_[0];
  const gemm all{weights_.head.data,   normed.data(),   logits_.data(), weights_.head.outputs,
                 weights_.head.inputs, normed.stride(), dims_.vocab,    epilogue::store_f32};
  multiply(tick, {&all, 1}, &tick.rows.counts->wanted, tick.rows.room.wanted);
}

void rwkv7_model::multiply(pass& tick, std::span<const gemm> gemms, const std::uint32_t* count, std::uint32_t room) {
  tick.note(tick.learns ? matmul_.learn(tick.in, gemms, count, room) : matmul_.run(tick.in, gemms, count, room));
}

// The first layer has its own launches; the second represents all others. Inputs are copied from the embedding, because
// the speed of a GEMM depends on the power that its data takes, and zeros take little.
void rwkv7_model::learn_gemms(stream_handle in) {
  if (matmul_.bucket_rows().empty()) return;
  const auto begin = std::chrono::steady_clock::now();
  for (const activation* a : activations()) {
    const std::size_t table_bytes =
        std::size_t{padded(weights_.emb.outputs)} * padded(weights_.emb.inputs) * element_bytes(type_);
    require(copy_on_device(a->data(), weights_.emb.data, std::min(a->bytes(), table_bytes), in));
  }
  const device_buffer<batch_counts> counts(1);
  for (const std::uint32_t rows : matmul_.bucket_rows()) {
    const pinned_buffer<batch_counts> now(1);
    const std::uint32_t wanted = std::min(rows, room_.logit_rows);
    *now.data() = {rows, 0, wanted};
    require(copy_to_device(counts.data(), now.data(), now.bytes(), in));
    device_batch batch;
    batch.counts = counts.data(), batch.room = *now.data();
    pass tick{batch, in, false, false, {}, true};
    for (std::uint32_t layer = 0; layer < std::min(dims_.layers, 2u); ++layer) {
      time_mix_in(layer, tick);
      time_mix_out(layer, tick);
      channel_mix_in(layer, tick);
      channel_mix_out(layer, tick);
    }
    if (wanted >= tuned_matmul::library_rows_min) multiply_wanted(tick);
    require(tick.outcome);
    require(wait_for(in));
  }
  library_ = matmul_.description();
  library_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Whether split or not, x becomes x + the whole sum: if it is split, the next norm adds the partial sums.
void rwkv7_model::add_to_x(pass& tick, const device_matrix& matrix, const activation& in) {
  gemm change{matrix.data,   in.data(),   x_[now_].data(), matrix.outputs,
              matrix.inputs, in.stride(), dims_.embd,      epilogue::add_f32};
  // With more rows, the weights of products two launches ahead would compete with this launch.
  change.pdl_early_launch = tick.rows.room.rows <= few_rows_max;
  if (cut_into_segments({&change, 1}, {&change, 1}, tick)) added_ = store_parts(change, parts_[0], tick);
  multiply_rows(tick, {&change, 1});
}

bool rwkv7_model::cut_into_segments(std::span<gemm> some, std::span<const gemm> launch, const pass& tick) const {
  std::uint32_t tiles = 0;
  for (const gemm& p : some) tiles += padded(p.outputs) / matrix_tile;
  for (gemm& p : some) p.segments = segments_of(p.inputs, tiles);
  return some.front().segments > 1 && matmul_.splits(launch, tick.rows.room.rows);
}

gemm_rows rwkv7_model::store_parts(gemm& p, const device_buffer<float>& parts, const pass& tick) const {
  p.how = epilogue::store_parts;
  p.out = parts.data(), p.out_stride = dims_.embd;
  p.part_stride = std::size_t{tick.rows.room.rows} * dims_.embd;
  return {p.out, p.out_stride, p.segments, p.part_stride};
}

// It only speeds up very small batches, so a lack of memory is no reason to fail.
void rwkv7_model::make_sparse(stream_handle in) {
  try {
    sparse_.emplace(weights_.layers, type_, in);
  } catch (const device_failure&) {
    sparse_.reset();
  }
}

// As if it had been written to the slot. Waits, so that the staging memory may be freed.
void rwkv7_model::set_initial_state(const rwkv7_weights& weights, stream_handle in) {
  pinned_buffer<float> initial(state_floats());
  for (std::uint32_t i = 0; i < dims_.layers; ++i) {
    if (!weights.layers[i].time_state.data) continue;
    const std::size_t wkv = i * layout_.canonical_layer_floats() + 2 * std::size_t{dims_.embd};
    copy_to_f32(weights.layers[i].time_state, initial.all().subspan(wkv, layout_.wkv_floats()));
  }
  const device_buffer<float> canonical(initial.size(), "the initial state");
  require(copy_to_device(canonical.data(), initial.data(), initial.bytes(), in));
  require(queue_write(room_.slots, canonical.data(), in));
  require(wait_for(in));
}

// Kernels keep rows in registers, and the vectors of a token of one head in shared memory.
result<void> check_sizes(const model_dims& dims) {
  const auto refuse = [](const char* what, std::uint32_t is, const char* limit) {
    return error{error_kind::unsupported, std::string(what) + ' ' + std::to_string(is) + limit, ""};
  };
  static_assert(head_size_max == 256 && width_max == 6144 && vocab_max == 524288, "the messages below contain these");
  if (dims.head_size > head_size_max)
    return refuse("head size", dims.head_size, " is above the GPU engine's limit of 256");
  if (dims.embd > width_max) return refuse("width", dims.embd, " is above the GPU engine's limit of 6144");
  if (dims.embd % head_size != 0)
    return refuse("width", dims.embd, " is not a multiple of 64, which the GPU engine requires");
  if (dims.vocab > vocab_max) return refuse("vocabulary", dims.vocab, " is above the GPU engine's limit of 524288");
  return {};
}

}  // namespace skein::kernels::gpu
