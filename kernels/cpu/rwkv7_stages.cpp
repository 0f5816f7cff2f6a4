// RWKV-7 on the CPU. A stage is one to three phases of the thread pool, each a barrier: over rows (norms, token shift),
// over panels of matrices, or over (run, head) pairs for the state. The vectors of a layer, activations, sums and
// states are fp32; matrices are packed in the format the user chose.
#include <algorithm>
#include <array>
#include <new>
#include <vector>

#include "base/check.hpp"
#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/packed_rwkv7.hpp"
#include "kernels/cpu/row_ops.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/cpu/wkv7.hpp"
#include "kernels/ops.hpp"
#include "kernels/rwkv7_weights.hpp"

namespace skein::kernels::cpu {

namespace {

/// Activations [rows, width]. The row stride is an odd number of cache lines: a power of two would map the rows of a
/// tile to one set of the L1 cache.
class row_buffer {
 public:
  row_buffer(std::size_t rows, std::size_t width) : stride_(stride_for(width)), values_(rows * stride_) {}
  [[nodiscard]] float* operator[](std::size_t r) const { return values_.data() + r * stride_; }
  [[nodiscard]] std::size_t stride() const { return stride_; }
  [[nodiscard]] std::size_t bytes() const { return values_.bytes(); }
  /// bytes() of a buffer of this size.
  [[nodiscard]] static std::size_t planned_bytes(std::size_t rows, std::size_t width) {
    return rows * stride_for(width) * sizeof(float);
  }

 private:
  static std::size_t stride_for(std::size_t width) {
    return (width + 15) / 16 * 16 + ((width + 15) / 16 % 2 == 0 ? 16 : 0);
  }

  std::size_t stride_;
  vector values_;
};

gemm make_gemm(const packed_matrix& matrix, const row_buffer& in, const row_buffer& out,
               epilogue how = epilogue::store) {
  return {&matrix, in[0], in.stride(), out[0], out.stride(), how};
}

/// The layout of a layer in the state of a slot: x_prev of both mixes, then the heads in the format of wkv7.hpp.
struct slot_layout {
  std::size_t embd, heads, head_size;

  [[nodiscard]] std::size_t x_prev_floats() const { return (embd + 15) / 16 * 16; }
  [[nodiscard]] std::size_t head_floats() const { return wkv7_state_floats(head_size); }
  [[nodiscard]] std::size_t layer_floats() const { return 2 * x_prev_floats() + heads * head_floats(); }
  [[nodiscard]] std::size_t canonical_layer_floats() const { return 2 * embd + heads * head_size * head_size; }
};

/// The memory that cpu_rwkv7 will allocate.
memory_plan plan(const rwkv7_weights& weights, matrix_format format, const stage_limits& limits) {
  const rwkv7_dims& dims = weights.dims;
  const std::uint32_t threads = thread_pool::planned_threads(limits.threads);
  memory_plan to;
  to.slots = limits.slots;
  to.slot_bytes =
      allocated_bytes(dims.layers * slot_layout{dims.embd, dims.heads, dims.head_size}.layer_floats() * sizeof(float));
  to.weight_bytes = packed_bytes(weights, format);
  constexpr std::size_t rows_of_embd = 12;  // x_, normed_, mixed_, r_, k_, v_, v_first_
  const auto row_bytes = [](std::size_t rows, std::size_t width) {
    return allocated_bytes(row_buffer::planned_bytes(rows, width));
  };
  to.activation_bytes = allocated_bytes(matmul::planned_bytes(threads)) + row_bytes(threads, dims.embd) +
                        rows_of_embd * row_bytes(limits.max_rows, dims.embd);
  for (const std::uint32_t width : {dims.rank_w, dims.rank_a, dims.rank_v, dims.rank_g, dims.ffn})
    to.activation_bytes += row_bytes(limits.max_rows, width);
  return to;
}

class cpu_rwkv7 final : public stages {
 public:
  cpu_rwkv7(const rwkv7_weights& weights, matrix_format format, const stage_limits& limits,
            const load_progress& progress)
      : dims_(weights.dims),
        slot_{dims_.embd, dims_.heads, dims_.head_size},
        max_rows_(limits.max_rows),
        max_logit_rows_(limits.max_logit_rows),
        pool_(limits.threads),
        matmul_(pool_),
        x_(max_rows_, dims_.embd),
        normed_(max_rows_, dims_.embd),
        before_(pool_.threads(), dims_.embd),
        mixed_{{{max_rows_, dims_.embd},
                {max_rows_, dims_.embd},
                {max_rows_, dims_.embd},
                {max_rows_, dims_.embd},
                {max_rows_, dims_.embd},
                {max_rows_, dims_.embd}}},
        r_(max_rows_, dims_.embd),
        k_(max_rows_, dims_.embd),
        v_(max_rows_, dims_.embd),
        v_first_(max_rows_, dims_.embd),
        inner_w_(max_rows_, dims_.rank_w),
        inner_a_(max_rows_, dims_.rank_a),
        inner_v_(max_rows_, dims_.rank_v),
        inner_g_(max_rows_, dims_.rank_g),
        hidden_(max_rows_, dims_.ffn),
        weights_(pack(weights, format, progress, pool_)) {
    for (slot_id slot = 0; slot < limits.slots; ++slot) {
      states_.emplace_back(dims_.layers * slot_.layer_floats());
      clear_state(slot);
    }
  }

  void embed(const batch& rows) override {
    check(rows.tokens.size() <= max_rows_);
    pool_.run(rows.tokens.size(), [&](std::size_t t, std::uint32_t) {
      weights_.emb.read(static_cast<std::size_t>(rows.tokens[t]), x_[t]);
      normalise_row(weights_.ln0, x_[t], x_[t]);
    });
  }

  void time_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = weights_.layers[layer];
    const bool first = layer == 0;
    const std::array<shift, 6> shifts = {{{&p.x_r, &mixed_[0]},
                                          {&p.x_k, &mixed_[1]},
                                          {&p.x_v, &mixed_[2]},
                                          {&p.x_w, &mixed_[3]},
                                          {&p.x_a, &mixed_[4]},
                                          {&p.x_g, &mixed_[5]}}};
    norm_and_shift(rows, p.ln1, slot_part(layer, 0), shifts);
    const std::array<gemm, 7> gemms = {
        make_gemm(p.receptance, mixed_[0], r_),
        make_gemm(p.key, mixed_[1], k_),
        make_gemm(p.value, mixed_[2], first ? v_first_ : v_),
        make_gemm(p.g.first, mixed_[5], inner_g_, epilogue::sigmoid),
        make_gemm(p.w.first, mixed_[3], inner_w_, epilogue::tanh),
        make_gemm(p.a.first, mixed_[4], inner_a_),
        make_gemm(p.v.first, mixed_[2], inner_v_),
    };
    matmul_(rows.tokens.size(), std::span(gemms).first(first ? 6 : 7));
  }

  void time_mix_state(std::uint32_t layer, const batch& rows) override {
    const auto& p = weights_.layers[layer];
    const bool first = layer == 0;
    // The shifted inputs are not needed any more; their memory is reused for the low-rank outputs and for y.
    const row_buffer &w = mixed_[0], &a = mixed_[1], &g = mixed_[2], &v_mix = mixed_[3], &y = mixed_[4];
    const std::array<gemm, 4> gemms = {
        make_gemm(p.g.second, inner_g_, g),
        make_gemm(p.w.second, inner_w_, w),
        make_gemm(p.a.second, inner_a_, a),
        make_gemm(p.v.second, inner_v_, v_mix),
    };
    matmul_(rows.tokens.size(), std::span(gemms).first(first ? 3 : 4));

    const std::size_t n = dims_.head_size, heads = dims_.heads;
    pool_.run(rows.runs.size() * heads, [&](std::size_t task, std::uint32_t) {
      const sequence_run& run = rows.runs[task / heads];
      const std::size_t h = task % heads, c = h * n;
      const auto at = [&](const row_buffer& buffer) { return buffer[run.first_row] + c; };
      const auto of = [&](const vector& all) { return all.data() + c; };
      wkv7({of(p.w0), of(p.a0), first ? nullptr : of(p.v0), of(p.k_k), of(p.k_a), of(p.r_k), of(p.ln_x.weight),
            of(p.ln_x.bias), n},
           {at(r_), at(k_), at(first ? v_first_ : v_), at(w), at(a), at(v_mix), at(g), at(v_first_), at(y), y.stride(),
            run.rows},
           states_[run.slot].data() + slot_part(layer, 2) + h * slot_.head_floats());
    });
  }

  void time_mix_out(std::uint32_t layer, const batch& rows) override {
    const gemm residual = make_gemm(weights_.layers[layer].output, mixed_[4], x_, epilogue::add);
    matmul_(rows.tokens.size(), {&residual, 1});
  }

  void channel_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = weights_.layers[layer];
    const shift only{&p.ffn_x_k, &mixed_[0]};
    norm_and_shift(rows, p.ln2, slot_part(layer, 1), {&only, 1});
    const gemm key = make_gemm(p.ffn_key, mixed_[0], hidden_, epilogue::relu_squared);
    matmul_(rows.tokens.size(), {&key, 1});
  }

  void channel_mix_out(std::uint32_t layer, const batch& rows) override {
    const gemm residual = make_gemm(weights_.layers[layer].ffn_value, hidden_, x_, epilogue::add);
    matmul_(rows.tokens.size(), {&residual, 1});
  }

  void head(const batch&, std::span<const std::uint32_t> wanted, std::span<float> logits) override {
    check(wanted.size() <= std::min(max_rows_, max_logit_rows_));
    check(logits.size() == wanted.size() * dims_.vocab);
    pool_.run(wanted.size(),
              [&](std::size_t i, std::uint32_t) { normalise_row(weights_.ln_out, x_[wanted[i]], normed_[i]); });
    const gemm logits_of{&weights_.head, normed_[0], normed_.stride(), logits.data(), dims_.vocab};
    matmul_(wanted.size(), {&logits_of, 1});
  }

  std::size_t state_floats() const override { return dims_.layers * slot_.canonical_layer_floats(); }

  void clear_state(slot_id slot) override {
    std::ranges::fill(states_[slot].all(), 0.0f);
    for (std::uint32_t i = 0; i < dims_.layers; ++i)
      if (weights_.layers[i].time_state.size() > 0) write_heads(slot, i, weights_.layers[i].time_state.all());
  }

  void copy_state(slot_id from, slot_id to) override { std::ranges::copy(states_[from].all(), states_[to].data()); }

  void read_state(slot_id slot, std::span<float> out) const override {
    check(out.size() == state_floats());
    const std::size_t n = dims_.head_size;
    pool_.run(dims_.layers, [&](std::size_t i, std::uint32_t) {
      const auto canonical = out.subspan(i * slot_.canonical_layer_floats(), slot_.canonical_layer_floats());
      const float* state = states_[slot].data();
      std::copy_n(state + slot_part(i, 0), dims_.embd, canonical.data());
      std::copy_n(state + slot_part(i, 1), dims_.embd, canonical.data() + dims_.embd);
      for (std::size_t h = 0; h < dims_.heads; ++h)
        wkv7_state_out(n, state + slot_part(i, 2) + h * slot_.head_floats(),
                       canonical.subspan(2 * dims_.embd + h * n * n, n * n));
    });
  }

  void write_state(slot_id slot, std::span<const float> in) override {
    check(in.size() == state_floats());
    pool_.run(dims_.layers, [&](std::size_t i, std::uint32_t) {
      const auto canonical = in.subspan(i * slot_.canonical_layer_floats(), slot_.canonical_layer_floats());
      std::copy_n(canonical.data(), dims_.embd, states_[slot].data() + slot_part(i, 0));
      std::copy_n(canonical.data() + dims_.embd, dims_.embd, states_[slot].data() + slot_part(i, 1));
      write_heads(slot, i, canonical.subspan(2 * dims_.embd));
    });
  }

  void parallel_for(std::size_t count, range_body body, void* context) override {
    const std::size_t pieces = std::min<std::size_t>(count, 4 * pool_.threads());
    pool_.run(pieces, [&](std::size_t piece, std::uint32_t) {
      body(context, count * piece / pieces, count * (piece + 1) / pieces);
    });
  }

  memory_plan memory() const override {
    memory_plan taken;
    taken.slots = static_cast<std::uint32_t>(states_.size());
    taken.slot_bytes = states_.empty() ? 0 : allocated_bytes(states_.front().bytes());
    taken.weight_bytes = weights_.bytes;
    taken.activation_bytes = allocated_bytes(matmul_.scratch_bytes());
    for (const row_buffer& buffer : mixed_) taken.activation_bytes += allocated_bytes(buffer.bytes());
    for (const row_buffer* buffer :
         {&x_, &normed_, &before_, &r_, &k_, &v_, &v_first_, &inner_w_, &inner_a_, &inner_v_, &inner_g_, &hidden_})
      taken.activation_bytes += allocated_bytes(buffer->bytes());
    return taken;
  }

 private:
  /// One token shift: its mix and its output.
  struct shift {
    const vector* mix;
    const row_buffer* out;
  };

  void normalise_row(const norm& with, const float* x, float* out) const {
    layer_norm(x, with.weight.data(), with.bias.data(), layer_norm_eps, dims_.embd, out);
  }

  /// normed = layer_norm(x), out = token_shift(normed, normed of the row before) for each shift; then the last row of
  /// each run becomes the slot's x_prev, at offset `x_prev` (in floats) of the state.
  void norm_and_shift(const batch& rows, const norm& with, std::size_t x_prev, std::span<const shift> shifts) {
    constexpr std::size_t piece_rows = 8;  // the row before a piece is normalized twice: cheaper than a barrier
    const std::size_t count = rows.tokens.size();
    pool_.run((count + piece_rows - 1) / piece_rows, [&](std::size_t piece, std::uint32_t thread) {
      const std::size_t first = piece * piece_rows, end = std::min(first + piece_rows, count);
      auto run = std::ranges::upper_bound(rows.runs, first, {}, &sequence_run::first_row) - 1;
      for (std::size_t t = first; t < end; ++t) {
        if (t == run->first_row + run->rows) ++run;
        normalise_row(with, x_[t], normed_[t]);
        const float* before = t == first ? before_[thread] : normed_[t - 1];
        if (t == run->first_row)
          before = states_[run->slot].data() + x_prev;
        else if (t == first)
          normalise_row(with, x_[t - 1], before_[thread]);
        for (const shift& s : shifts) token_shift(normed_[t], before, s.mix->data(), dims_.embd, (*s.out)[t]);
      }
    });
    for (const sequence_run& run : rows.runs)
      std::copy_n(normed_[run.first_row + run.rows - 1], dims_.embd, states_[run.slot].data() + x_prev);
  }

  /// Offset in a slot's state of a layer's att.x_prev (0), ffn.x_prev (1) or heads (2).
  std::size_t slot_part(std::size_t layer, std::size_t part) const {
    return layer * slot_.layer_floats() + part * slot_.x_prev_floats();
  }

  void write_heads(slot_id slot, std::size_t layer, std::span<const float> canonical) {
    const std::size_t n = dims_.head_size;
    for (std::size_t h = 0; h < dims_.heads; ++h)
      wkv7_state_in(n, canonical.subspan(h * n * n, n * n),
                    states_[slot].data() + slot_part(layer, 2) + h * slot_.head_floats());
  }

  rwkv7_dims dims_;
  slot_layout slot_;
  std::size_t max_rows_, max_logit_rows_;
  mutable thread_pool pool_;  // read_state uses it too
  matmul matmul_;

  std::vector<vector> states_;
  row_buffer x_;       ///< the residual stream
  row_buffer normed_;  ///< after ln1, ln2 or ln_out
  row_buffer before_;  ///< per thread: the normalised row before a piece
  std::array<row_buffer, 6> mixed_;
  row_buffer r_, k_, v_, v_first_, inner_w_, inner_a_, inner_v_, inner_g_, hidden_;

  packed_rwkv7 weights_;  ///< last, so that all other memory is allocated before the slow packing starts
};

}  // namespace

}  // namespace skein::kernels::cpu

namespace skein::kernels {

namespace {

result<cpu::matrix_format> check_model(const rwkv7_weights& weights, dtype matrix_type) {
  if (const auto types = check_element_types(weights); !types) return types.error();
  const auto format = cpu::format_for(matrix_type);
  if (!format)
    return error{error_kind::unsupported, "dtype: the CPU does not support " + std::string(to_string(matrix_type)),
                 "dtype"};
  if (weights.dims.head_size > cpu::head_size_max)
    return error{error_kind::unsupported,
                 "head size: " + std::to_string(weights.dims.head_size) + " is not supported by the CPU; at most " +
                     std::to_string(cpu::head_size_max),
                 ""};
  return *format;
}

}  // namespace

result<memory_plan> plan_cpu_rwkv7(const rwkv7_weights& weights, dtype matrix_type, const stage_limits& limits) {
  const auto format = check_model(weights, matrix_type);
  if (!format) return format.error();
  return cpu::plan(weights, *format, limits);
}

result<std::unique_ptr<stages>> make_cpu_rwkv7(const rwkv7_weights& weights, dtype matrix_type,
                                               const stage_limits& limits, const load_progress& progress) {
  const auto format = check_model(weights, matrix_type);
  if (!format) return format.error();
  try {
    return std::make_unique<cpu::cpu_rwkv7>(weights, *format, limits, progress);
  } catch (const std::bad_alloc&) {
    return error{error_kind::unavailable, "not enough memory for weights, activations and states", ""};
  }
}

}  // namespace skein::kernels
