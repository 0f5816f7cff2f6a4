#include "kernels/gpu/model/base_model.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/check.hpp"
#include "base/finite_half.hpp"
#include "kernels/gpu/gemm/hopper/matmul_few_rows.hpp"
#include "kernels/gpu/ops/embed.hpp"
#include "kernels/gpu/ops/shift_by_row.hpp"

namespace skein::kernels::gpu {

namespace {

bool wants_library(const gpu_options& options, const model_room& room) {
  return options.invariance == invariance::fast && options.matrix_type != element::f32 &&
         !options.formats.quantised() && room.rows >= tuned_matmul::library_rows_min;
}

/// Including the slot of the initial state.
slot_layout layout_of(const model_dims& dims, const gpu_options& options, const model_room& room) {
  return {dims.layers, room.slots + 1, dims.embd, options.state_type, dims.head_size, dims.att()};
}

/// The floats of one of parts_. Its widest product may be the first one of RWKV-6's low-rank pairs.
std::size_t parts_floats(const model_dims& dims, const model_room& room) {
  const std::uint32_t outputs = std::max({dims.embd, dims.att(), shifts_by_row_max * padded(dims.rank_x)});
  return gemm_parts_max * std::size_t{std::min(room.rows, split_rows_max)} * outputs;
}

tuned_matmul choose_gemms(const gpu_options& options, const model_room& room, const library_opener& open_library,
                          std::string& library_trouble) {
  const element type = options.matrix_type;
  const auto ours = choose_matmul(options.device, type, options.formats);
  if (!ours) throw device_failure(ours.error());
  if (!wants_library(options, room)) return {*ours, type};
  auto library = open_library();
  if (library) return {*ours, type, std::move(*library), room.rows};
  library_trouble = "none: " + library.error().message;
  return {*ours, type};
}

std::uint32_t count_sms_of(int device) {
  const auto profile = profile_of(device);
  if (!profile) throw device_failure(profile.error());
  return profile->sm_count;
}

double blocks_per_sm(const gpu_options& options, const tuned_matmul& gemms) {
  const double tuned = options.tuning.blocks_per_sm;
  return tuned > 0 ? tuned : gemms.blocks_per_sm();
}

bool is_led_on(const gpu_options& options) {
  const auto led = has_led_matmul(options.device, options.matrix_type);
  if (!led) throw device_failure(led.error());
  return *led;
}

/// Two pairs for each layer.
std::size_t done_counters(const model_dims& dims) { return 4 * std::size_t{dims.layers}; }

device_buffer<float> activation_floats(std::size_t count) { return device_buffer<float>(count, "activations"); }

}  // namespace

base_model::base_model(const model_dims& dims, const gpu_options& options, const model_room& room,
                       const library_opener& open_library)
    : dims_(dims),
      type_(options.matrix_type),
      room_(room),
      layout_(layout_of(dims_, options, room)),
      activations_(room.rows, type_, false),
      matmul_(choose_gemms(options, room, open_library, library_)),
      split_blocks_(static_cast<std::uint32_t>(count_sms_of(options.device) * blocks_per_sm(options, matmul_))),
      led_rows_(options.tuning.led_rows),
      has_led_matmul_(is_led_on(options)),
      rounding_(dims_, options, room.rows),
      decoding_(dims_, options, room.rows),
      x_{{activation_floats(std::size_t{room.rows} * dims.embd),
          activation_floats(std::size_t{room.rows} * dims.embd)}},
      parts_{{activation_floats(parts_floats(dims, room)), activation_floats(parts_floats(dims, room)),
              activation_floats(parts_floats(dims, room))}},
      done_(done_counters(dims)),
      normed_(activations_.make(dims.embd)),
      logits_(std::size_t{room.logit_rows} * dims.vocab, "logits"),
      states_(layout_.bytes(), "the states of the slots") {}

memory_plan base_model::plan(const model_dims& dims, const gpu_options& options, const model_room& room,
                             const library_opener& open_library, std::size_t weight_bytes,
                             std::size_t activation_bytes) {
  const slot_layout layout = layout_of(dims, options, room);
  memory_plan plan;
  plan.slots = options.limits.slots;
  plan.slot_bytes = layout.slot_bytes();
  plan.workspace_bytes = layout.bytes() - plan.bytes_of_slots();
  plan.weight_bytes = weight_bytes;
  const std::size_t floats = 2 * std::size_t{room.rows} * dims.embd + projections_max * parts_floats(dims, room) +
                             std::size_t{room.logit_rows} * dims.vocab;
  activation_room own(room.rows, options.matrix_type, true);
  static_cast<void>(own.make(dims.embd));  // normed_
  plan.activation_bytes = floats * sizeof(float) + (done_counters(dims) + led_counters) * sizeof(std::uint32_t) +
                          own.bytes() + activation_bytes + rounding_room::planned_bytes(dims, options, room.rows) +
                          decoding_room::planned_bytes(dims, options, room.rows);
  if (wants_library(options, room) && open_library()) plan.activation_bytes += tuned_matmul::workspace_bytes;
  return plan;
}

void base_model::start(stream_handle in, const initial_state& initial) {
  learn_gemms(in);
  for (const auto& memory : activations_.memory()) require(fill_with_zeros(memory.data(), memory.bytes(), in));
  require(fill_with_zeros(done_.data(), done_.bytes(), in));
  require(fill_with_zeros(led_.data(), led_.bytes(), in));
  set_initial_state(in, initial);
  for (slot_id slot = 0; slot < room_.slots; ++slot) require(queue_clear(slot, in));
  require(wait_for(in));  // if a later constructor fails, this memory is freed before the stream
}

result<void> base_model::queue_forward(const device_batch& rows, std::span<const sequence_run> runs, stream_handle in) {
  pass tick{rows, in, false, true, {}};
  tick.is_led = is_led(rows);
  plan_chunks(runs, tick);
  now_ = 0, added_ = {}, gate_ = {};
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

void base_model::embed(pass& tick) {
  const auto& of = outer();
  tick.note(gpu::embed(tick.in, tick.rows, type_, of.emb.data, padded(dims_.embd), norm_of(of.ln0_weight, of.ln0_bias),
                       x(), dims_.embd));
}

result<void> base_model::queue_head(const device_batch& rows, stream_handle in) {
  pass tick{rows, in, false, true, {}};
  tick.note(norm_wanted(in, rows, type_, current(), norm_of(outer().ln_out_weight, outer().ln_out_bias), normed_.data,
                        normed_.stride, dims_.embd));
  multiply_wanted(tick);
  return tick.outcome;
}

result<void> base_model::queue_copy(slot_id from, slot_id to, stream_handle in) {
  return copy_state(in, layout_, states_.data(), from, to);
}

result<void> base_model::queue_read(slot_id slot, void* canonical, stream_handle in) const {
  return state_to_canonical(in, layout_, states_.data(), slot, canonical);
}

result<void> base_model::queue_write(slot_id slot, const void* canonical, stream_handle in) {
  return state_from_canonical(in, layout_, canonical, states_.data(), slot);
}

std::size_t base_model::activation_bytes() const {
  std::size_t bytes = x_[0].bytes() + x_[1].bytes() + logits_.bytes() + done_.bytes() + led_.bytes();
  for (const device_buffer<float>& parts : parts_) bytes += parts.bytes();
  return bytes + activations_.bytes() + matmul_.bytes() + rounding_.bytes() + decoding_.bytes();
}

token_shift_parameters base_model::shift_of(const norm_weights& norm, std::size_t x_prev) {
  token_shift_parameters of;
  of.from = current(), of.norm = norm;
  if (added_.parts > 0) {
    now_ ^= 1;
    of.sum = x(), of.discards = true, added_ = {}, gate_ = {};
  }
  of.x_prev = states_.data() + x_prev, of.slot_bytes = layout_.x_prev_bytes(), of.kept_type = layout_.type;
  of.width = dims_.embd, of.out_stride = normed_.stride;
  return of;
}

void base_model::shift(pass& tick, const norm_weights& norm, std::size_t x_prev, std::span<const float* const> mixes,
                       std::span<const activation> outs, const activation* spent) {
  if (tick.learns) return;
  token_shift_parameters of = shift_of(norm, x_prev);
  if (of.sum && spent) of.spent = spent->data, of.spent_bytes = spent->stride * element_bytes(type_);
  for (const float* mix : mixes) {
    of.mix[of.shifts] = mix;
    of.out[of.shifts] = outs[of.shifts].data;
    ++of.shifts;
  }
  if (tick.is_led)
    tick.leads = of;
  else
    tick.note(token_shift(tick.in, tick.rows, type_, of));
}

// Prefill and longer runs need other kernels.
bool base_model::is_led(const device_batch& rows) const {
  return has_led_matmul_ && has_leaders() && rows.room.rows == rows.room.runs && rows.room.rows <= led_rows_max &&
         (led_rows_ ? rows.room.rows <= *led_rows_ : is_worth_leading(dims_.embd, rows.room.rows));
}

void base_model::multiply_led(pass& tick, std::span<const gemm> gemms) {
  check(gemms.size() + 1 <= gemms_max || !tick.begins);
  std::array<gemm, gemms_max> all;
  std::size_t count = 0;
  if (tick.begins) {
    all[count] = *tick.begins, all[count++].when = turn::first;
    for (const gemm& p : gemms) all[count] = p, all[count++].when = turn::second;
    gemms = std::span(all).first(count);
  }
  const leader first = *tick.leads;
  tick.leads.reset(), tick.begins.reset();
  if (can_lead(gemms)) return tick.note(led_matmul(tick.in, tick.rows, type_, layout_.type, first, gemms, led_.data()));
  if (const auto* const shift = std::get_if<token_shift_parameters>(&first))
    tick.note(token_shift(tick.in, tick.rows, type_, *shift));
  else
    tick.note(time_mix(tick.in, tick.rows, type_, layout_.type, std::get<time_mix_parameters>(first)));
  for (gemm& p : std::span(all).first(count)) p.when = turn::any;
  const std::size_t begun = count > 0 ? 1 : 0;
  if (begun > 0) multiply_rows(tick, gemms.first(1));
  multiply_rows(tick, gemms.subspan(begun));
}

void base_model::multiply_rows(pass& tick, std::span<const gemm> gemms) {
  if (tick.leads) return multiply_led(tick, gemms);
  multiply(tick, gemms, &tick.rows.counts->rows, tick.rows.room.rows);
}

void base_model::multiply_wanted(pass& tick) {
  const gemm all = gemm_of(outer().head, normed_, logits_.data(), dims_.vocab, {.to = destination::f32});
  multiply(tick, {&all, 1}, &tick.rows.counts->wanted, tick.rows.room.wanted);
}

void base_model::multiply(pass& tick, std::span<const gemm> gemms, const std::uint32_t* count, std::uint32_t room) {
  std::array<gemm, gemms_max> quantised;
  if (std::ranges::any_of(gemms, is_quantised)) {
    std::ranges::copy(gemms, quantised.begin());
    const auto all = std::span(quantised).first(gemms.size());
    rounding_.assign(all), decoding_.assign(all, room);
    gemms = all;
  }
  tick.note(tick.learns ? matmul_.learn(tick.in, gemms, count, room) : matmul_.run(tick.in, gemms, count, room));
}

// The first layer may have its own launches; the second represents all others. Inputs are copied from the embedding,
// because the speed of a GEMM depends on the power that its data takes, and zeros take little.
void base_model::learn_gemms(stream_handle in) {
  if (matmul_.bucket_rows().empty()) return;
  const auto begin = std::chrono::steady_clock::now();
  const device_matrix& table = outer().emb;
  const std::size_t table_bytes = std::size_t{padded(table.outputs)} * padded(table.inputs) * element_bytes(type_);
  for (const auto& memory : activations_.memory())
    require(copy_on_device(memory.data(), table.data, std::min(memory.bytes(), table_bytes), in));
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
void base_model::add_to_x(pass& tick, const device_matrix& matrix, const activation& in) {
  gemm change = gemm_of(matrix, in, x(), dims_.embd, {.to = destination::add_f32});
  // With more rows, the weights of products two launches ahead would compete with this launch.
  change.pdl_early_launch = tick.rows.room.rows <= few_rows_max;
  if (cut_into_segments({&change, 1}, {&change, 1}, tick)) {
    added_ = store_parts(change, parts_[0], tick);
    added_.adds_each = matmul_.adds_each() && !rounds_inputs(change);  // matmul_hopper multiplies those
  }
  multiply_rows(tick, {&change, 1});
}

void base_model::split(std::span<gemm> some, std::span<const gemm> launch, std::span<gemm_rows> outs, const pass& tick,
                       std::uint32_t beside) const {
  check(some.size() <= parts_.size());
  const bool in_parts = cut_into_segments(some, launch, tick, beside);
  for (std::size_t i = 0; i < some.size(); ++i) {
    outs[i] = {some[i].out, some[i].out_stride, 0, 0};
    if (in_parts) outs[i] = store_parts(some[i], parts_[i], tick);
  }
}

bool base_model::cut_into_segments(std::span<gemm> some, std::span<const gemm> launch, const pass& tick,
                                   std::uint32_t beside) const {
  std::uint32_t tiles = 0;
  for (const gemm& p : some) tiles += padded(p.matrix.outputs) / matrix_tile;
  for (gemm& p : some)
    p.segments = beside > 0 ? segments_beside(p.matrix.depth(), tiles, beside, split_blocks_)
                            : segments_of(p.matrix.depth(), tiles, split_blocks_);
  return std::ranges::any_of(some, [](const gemm& p) { return p.segments > 1; }) &&
         matmul_.splits(launch, tick.rows.room.rows);
}

gemm_rows base_model::store_parts(gemm& p, const device_buffer<float>& parts, const pass& tick) const {
  p.how.to = destination::parts;
  p.out = parts.data(), p.out_stride = p.matrix.outputs;
  p.part_stride = std::size_t{tick.rows.room.rows} * p.matrix.outputs;
  return {p.out, p.out_stride, p.segments, p.part_stride};
}

// As if it had been written to the slot. Waits, so that the staging memory may be freed.
void base_model::set_initial_state(stream_handle in, const initial_state& initial) {
  const pinned_buffer<std::byte> all(layout_.slot_bytes());
  std::vector<float> floats(layout_.wkv_floats());
  for (std::uint32_t i = 0; i < dims_.layers; ++i) {
    std::ranges::fill(floats, 0.0f);
    initial(i, floats);
    std::byte* const wkv = all.data() + i * layout_.canonical_layer_bytes() + 2 * layout_.x_prev_bytes();
    if (layout_.wkv_type() == element::f32)
      std::ranges::copy(floats, reinterpret_cast<float*>(wkv));
    else
      std::ranges::transform(floats, reinterpret_cast<std::uint16_t*>(wkv), f32_to_finite_f16);
  }
  const device_buffer<std::byte> canonical(all.size(), "the initial state");
  require(copy_to_device(canonical.data(), all.data(), all.bytes(), in));
  require(queue_write(room_.slots, canonical.data(), in));
  require(wait_for(in));
}

}  // namespace skein::kernels::gpu
