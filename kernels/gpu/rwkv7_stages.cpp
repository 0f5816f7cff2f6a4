// The stages of RWKV-7 on a GPU: which kernel runs over which buffers. Everything is queued in one stream; the host
// waits only where it needs an answer. The residual stream x, sums, norms and token-shift states are fp32; matrices and
// what their products exchange are of the chosen element type, but for the outputs of the low-rank
// pairs (gate_element).
#include "kernels/gpu/rwkv7_stages.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <vector>

#include "base/check.hpp"
#include "kernels/gpu/batch_upload.hpp"
#include "kernels/gpu/device_weights.hpp"
#include "kernels/gpu/state.hpp"
#include "kernels/gpu/time_mix.hpp"
#include "kernels/gpu/token_shift.hpp"
#include "kernels/gpu/wkv_chunks.hpp"

namespace skein::kernels::gpu {

namespace {

/// Activations [rows, stride] of the element type. Rows are filled up with zeros to whole tiles, and no kernel writes
/// there, so a product may read them to the end.
class activation {
 public:
  activation(std::size_t rows, std::uint32_t width, element type)
      : stride_(padded(width)), memory_(rows * stride_ * element_bytes(type)) {}
  [[nodiscard]] void* data() const { return memory_.data(); }
  [[nodiscard]] std::uint32_t stride() const { return stride_; }
  [[nodiscard]] std::size_t bytes() const { return memory_.bytes(); }

 private:
  std::uint32_t stride_;
  device_buffer<std::byte> memory_;
};

product multiply(const device_matrix& matrix, const activation& in, const activation& out, finish how = finish::store) {
  return {matrix.data, in.data(), out.data(), matrix.outputs, matrix.inputs, in.stride(), out.stride(), how};
}

product_rows rows_of(const activation& out) { return {out.data(), out.stride(), 0, 0}; }

class gpu_rwkv7 final : public stages {
 public:
  gpu_rwkv7(const rwkv7_weights& weights, const gpu_options& options)
      : device_(options.device),
        dims_(weights.dims),
        type_(options.matrix_type),
        max_rows_(options.limits.max_rows),
        max_logit_rows_(std::min(options.limits.max_logit_rows, max_rows_)),
        slots_(options.limits.slots),
        layout_{dims_.layers, dims_.embd, options.state_type},
        batch_(max_rows_, std::min(slots_, max_rows_), max_logit_rows_),
        x_(std::size_t{max_rows_} * dims_.embd),
        mixed_{{{max_rows_, dims_.embd, type_},
                {max_rows_, dims_.embd, type_},
                {max_rows_, dims_.embd, type_},
                {max_rows_, dims_.embd, type_},
                {max_rows_, dims_.embd, type_},
                {max_rows_, dims_.embd, type_}}},
        r_(max_rows_, dims_.embd, type_),
        k_(max_rows_, dims_.embd, type_),
        v_(max_rows_, dims_.embd, type_),
        v_first_(max_rows_, dims_.embd, type_),
        inner_w_(max_rows_, dims_.rank_w, type_),
        inner_a_(max_rows_, dims_.rank_a, type_),
        inner_v_(max_rows_, dims_.rank_v, type_),
        inner_g_(max_rows_, dims_.rank_g, type_),
        hidden_(max_rows_, dims_.ffn, type_),
        logits_(std::size_t{max_logit_rows_} * dims_.vocab),
        host_logits_(logits_.size()),
        canonical_(layout_.canonical_floats()),
        host_canonical_(layout_.canonical_floats()),
        states_((std::size_t{slots_} + 1) * layout_.bytes()),
        weights_(upload(weights, type_, options.progress)) {
    if (options.chunked_prefill && chunked_time_mix::available())
      chunks_.emplace(dims_.embd, type_, max_rows_, std::min(slots_, max_rows_));
    for (const activation* a : activations()) require(fill_with_zeros(a->data(), a->bytes(), stream_));
    set_initial_state(weights);
    for (slot_id slot = 0; slot < slots_; ++slot) clear_state(slot);
    require(status());
  }
  ~gpu_rwkv7() override { ignore(stream_.synchronize(), "the memory that kernels still use goes next"); }

  void embed(const batch& rows) override {
    enter();
    note(batch_.send_rows(rows, stream_));
    if (chunks_) note(chunks_->plan(stream_, batch_.on_device(), rows.runs));
    note(gpu::embed(stream_, batch_.on_device(), type_, weights_.emb.data, padded(dims_.embd), weights_.ln0, x_.data(),
                    dims_.embd));
  }

  void time_mix_in(std::uint32_t layer, const batch&) override {
    const device_layer& p = weights_.layers[layer];
    const std::array<const float*, 6> mixes = {p.x_r, p.x_k, p.x_v, p.x_w, p.x_a, p.x_g};
    shift(p.ln1, layout_.att_x_prev(layer), mixes);
    const auto& [for_r, for_k, for_v, for_w, for_a, for_g] = mixed_;
    const std::array<product, 7> products = {
        multiply(p.receptance, for_r, r_),
        multiply(p.key, for_k, k_),
        multiply(p.value, for_v, v_),
        multiply(p.g1, for_g, inner_g_, finish::sigmoid),
        multiply(p.w1, for_w, inner_w_, finish::tanh),
        multiply(p.a1, for_a, inner_a_),
        multiply(p.v1, for_v, inner_v_),
    };
    multiply_rows(std::span(products).first(layer == 0 ? 6 : 7));
  }

  void time_mix_state(std::uint32_t layer, const batch&) override {
    const device_layer& p = weights_.layers[layer];
    const auto& [y, w_out, a_out, g_out, v_out, unused] = mixed_;  // the shifted inputs are used up
    const finish how = type_ == element::bf16 ? finish::store_f16 : finish::store;
    const std::array<product, 4> products = {multiply(p.w2, inner_w_, w_out, how), multiply(p.a2, inner_a_, a_out, how),
                                             multiply(p.g2, inner_g_, g_out, how),
                                             multiply(p.v2, inner_v_, v_out, how)};
    multiply_rows(std::span(products).first(layer == 0 ? 3 : 4));
    time_mix_parameters of;
    of.r = rows_of(r_), of.k = rows_of(k_), of.v = rows_of(v_);
    of.w_out = rows_of(w_out), of.a_out = rows_of(a_out), of.g_out = rows_of(g_out), of.v_out = rows_of(v_out);
    of.v_first = v_first_.data(), of.y = y.data();
    of.w0 = p.w0, of.a0 = p.a0, of.v0 = p.v0, of.k_k = p.k_k, of.k_a = p.k_a, of.r_k = p.r_k;
    of.ln_x_weight = p.ln_x_weight, of.ln_x_bias = p.ln_x_bias;
    of.state = states_.data() + layout_.wkv(layer), of.slot_bytes = layout_.bytes();
    of.width = dims_.embd, of.first_layer = layer == 0;
    if (chunks_) {
      note(chunks_->run(stream_, layout_.type, of));
      if (!chunks_->has_short_runs()) return;
      of.rows_max = chunked_rows_min - 1;
    }
    note(time_mix(stream_, batch_.on_device(), type_, layout_.type, of));
  }

  void time_mix_out(std::uint32_t layer, const batch&) override { add_to_x(weights_.layers[layer].output, mixed_[0]); }

  void channel_mix_in(std::uint32_t layer, const batch&) override {
    const device_layer& p = weights_.layers[layer];
    shift(p.ln2, layout_.ffn_x_prev(layer), {&p.ffn_x_k, 1});
    const product key = multiply(p.ffn_key, mixed_[0], hidden_, finish::relu_squared);
    multiply_rows({&key, 1});
  }

  void channel_mix_out(std::uint32_t layer, const batch&) override {
    add_to_x(weights_.layers[layer].ffn_value, hidden_);
  }

  void head(const batch&, std::span<const std::uint32_t> wanted, std::span<float> logits) override {
    check(wanted.size() <= max_logit_rows_);
    check(logits.size() == wanted.size() * dims_.vocab);
    if (wanted.empty()) return;
    const activation& normed = mixed_[0];
    note(batch_.send_wanted(wanted, stream_));
    note(norm_wanted(stream_, batch_.on_device(), type_, x_.data(), weights_.ln_out, normed.data(), normed.stride(),
                     dims_.embd));
    const product all{weights_.head.data,   normed.data(),   logits_.data(), weights_.head.outputs,
                      weights_.head.inputs, normed.stride(), dims_.vocab,    finish::store_f32};
    const device_batch& rows = batch_.on_device();
    note(matmul(stream_, type_, {&all, 1}, &rows.counts->wanted, rows.room.wanted));
    note(copy_to_host(host_logits_.data(), logits_.data(), logits.size_bytes(), stream_));
    note(stream_.synchronize());
    std::copy_n(host_logits_.data(), logits.size(), logits.data());
  }

  std::size_t state_floats() const override { return layout_.canonical_floats(); }
  void clear_state(slot_id slot) override { copy_slot(slots_, slot); }
  void copy_state(slot_id from, slot_id to) override { copy_slot(from, to); }

  void read_state(slot_id slot, std::span<float> out) const override {
    check(out.size() == state_floats());
    enter();
    note(state_to_canonical(stream_, layout_, slot_memory(slot), canonical_.data()));
    note(copy_to_host(host_canonical_.data(), canonical_.data(), out.size_bytes(), stream_));
    note(stream_.synchronize());
    std::copy_n(host_canonical_.data(), out.size(), out.data());
  }

  void write_state(slot_id slot, std::span<const float> in) override {
    check(in.size() == state_floats());
    enter();
    note(stream_.synchronize());  // a write before may still be on its way out of the pinned memory
    std::copy(in.begin(), in.end(), host_canonical_.data());
    note(copy_to_device(canonical_.data(), host_canonical_.data(), in.size_bytes(), stream_));
    note(state_from_canonical(stream_, layout_, canonical_.data(), slot_memory(slot)));
  }

  void parallel_for(std::size_t count, range_body body, void* context) override {
    if (count > 0) body(context, 0, count);
  }

  result<void> status() const override {
    enter();
    note(stream_.synchronize());
    return trouble_;
  }

  std::size_t weight_bytes() const override { return weights_.memory.bytes(); }
  std::size_t activation_bytes() const override {
    std::size_t bytes = batch_.bytes() + x_.bytes() + logits_.bytes() + canonical_.bytes();
    for (const activation* a : activations()) bytes += a->bytes();
    return bytes + (chunks_ ? chunks_->bytes() : 0);
  }

 private:
  [[nodiscard]] std::array<const activation*, 15> activations() const {
    return {&mixed_[0], &mixed_[1], &mixed_[2], &mixed_[3], &mixed_[4], &mixed_[5], &r_,     &k_,
            &v_,        &v_first_,  &inner_w_,  &inner_a_,  &inner_v_,  &inner_g_,  &hidden_};
  }

  /// What begins a tick or moves a state may come from another thread than the one that made this.
  void enter() const { note(use_device(device_)); }

  /// The first trouble stays: what comes after it is its consequence.
  void note(const result<void>& done) const {
    if (!done && trouble_) trouble_ = done;
  }

  void shift(const norm_weights& norm, std::size_t x_prev, std::span<const float* const> mixes) {
    token_shift_parameters of;
    of.x = x_.data(), of.norm = norm;
    of.x_prev = reinterpret_cast<float*>(states_.data() + x_prev), of.slot_bytes = layout_.bytes();
    of.width = dims_.embd, of.out_stride = mixed_[0].stride();
    for (const float* mix : mixes) {
      of.mix[of.shifts] = mix;
      of.out[of.shifts] = mixed_[of.shifts].data();
      ++of.shifts;
    }
    note(token_shift(stream_, batch_.on_device(), type_, of));
  }

  void multiply_rows(std::span<const product> products) {
    const device_batch& rows = batch_.on_device();
    note(matmul(stream_, type_, products, &rows.counts->rows, rows.room.rows));
  }

  void add_to_x(const device_matrix& matrix, const activation& in) {
    const product residual{matrix.data,   in.data(),   x_.data(),  matrix.outputs,
                           matrix.inputs, in.stride(), dims_.embd, finish::add_f32};
    multiply_rows({&residual, 1});
  }

  /// Slot number `slots_` holds the model's initial state.
  [[nodiscard]] std::byte* slot_memory(slot_id slot) const { return states_.data() + slot * layout_.bytes(); }
  void copy_slot(slot_id from, slot_id to) {
    enter();
    note(copy_on_device(slot_memory(to), slot_memory(from), layout_.bytes(), stream_));
  }

  void set_initial_state(const rwkv7_weights& weights) {
    std::vector<float> initial(state_floats(), 0.0f);
    for (std::uint32_t i = 0; i < dims_.layers; ++i) {
      if (!weights.layers[i].time_state.data) continue;
      const std::size_t wkv = i * layout_.canonical_layer_floats() + 2 * std::size_t{dims_.embd};
      copy_to_f32(weights.layers[i].time_state, std::span(initial).subspan(wkv, layout_.wkv_floats()));
    }
    write_state(slots_, initial);
  }

  const int device_;
  const rwkv7_dims dims_;
  const element type_;
  const std::uint32_t max_rows_, max_logit_rows_, slots_;
  const slot_layout layout_;
  mutable result<void> trouble_;

  stream stream_;
  batch_upload batch_;
  device_buffer<float> x_;  ///< the residual stream, [rows, C]
  const std::array<activation, 6> mixed_;
  const activation r_, k_, v_, v_first_, inner_w_, inner_a_, inner_v_, inner_g_, hidden_;
  std::optional<chunked_time_mix> chunks_;
  device_buffer<float> logits_;
  pinned_buffer<float> host_logits_;
  device_buffer<float> canonical_;  ///< a state on its way in or out
  pinned_buffer<float> host_canonical_;
  device_buffer<std::byte> states_;
  const device_rwkv7 weights_;  ///< last: when memory is short, it is known before the long work
};

// What the kernels cannot do: they know one head size, and keep rows in 48 KiB of shared memory.
result<void> check_sizes(const rwkv7_dims& dims) {
  constexpr std::uint32_t embd_max = 6144;
  const auto refuse = [](const char* what, std::uint32_t is, const char* limit) {
    return error{error_kind::unsupported, std::string(what) + ' ' + std::to_string(is) + limit, ""};
  };
  if (dims.head_size != head_size)
    return refuse("head size", dims.head_size, " is not 64, the one that the GPU engine handles");
  if (dims.embd > embd_max)
    return refuse("width", dims.embd, " is above 6144, the largest that the GPU engine handles");
  return {};
}

}  // namespace

result<std::unique_ptr<stages>> make_gpu_rwkv7(const rwkv7_weights& weights, const gpu_options& options) {
  if (const auto types = check_element_types(weights); !types) return types.error();
  if (const auto sizes = check_sizes(weights.dims); !sizes) return sizes.error();
  if (const auto r = use_device(options.device); !r) return r.error();
  try {
    return std::make_unique<gpu_rwkv7>(weights, options);
  } catch (const device_failure& failure) {
    return failure.why();
  } catch (const std::bad_alloc&) {
    return error{error_kind::unavailable, "not enough host memory to load the model", ""};
  }
}

}  // namespace skein::kernels::gpu
