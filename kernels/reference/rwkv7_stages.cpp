// RWKV-7 from the primitives of ops.hpp, one token at a time, in the notation of the paper. States are stored in the
// canonical order of model/state_layout, so reading one is a copy.
#include <algorithm>
#include <cmath>
#include <new>
#include <vector>

#include "base/check.hpp"
#include "kernels/ops.hpp"
#include "kernels/rwkv7_weights.hpp"

namespace skein::kernels {

namespace {

std::vector<float> load(const tensor_view& view) {
  std::vector<float> values(static_cast<std::size_t>(view.elements()));
  copy_to_f32(view, values);
  return values;
}

struct norm {
  std::vector<float> weight, bias;
};

/// The two factors of a low-rank map.
struct low_rank {
  dense_matrix first, second;
};

low_rank load_low_rank(const tensor_view& first, const tensor_view& second) {
  return {load_dense(first, true), load_dense(second, true)};
}

struct layer {
  norm ln1, ln2, ln_x;
  std::vector<float> x_r, x_w, x_k, x_v, x_a, x_g, w0, a0, v0, k_k, k_a, r_k, ffn_x_k;
  low_rank w, a, v, g;
  dense_matrix receptance, key, value, output, ffn_key, ffn_value;
  std::vector<float> time_state;  ///< empty: zeros
};

layer load_layer(const rwkv7_layer& from, bool first) {
  layer l;
  l.ln1 = {load(from.ln1_weight), load(from.ln1_bias)};
  l.ln2 = {load(from.ln2_weight), load(from.ln2_bias)};
  l.ln_x = {load(from.ln_x_weight), load(from.ln_x_bias)};
  l.x_r = load(from.x_r), l.x_w = load(from.x_w), l.x_k = load(from.x_k);
  l.x_v = load(from.x_v), l.x_a = load(from.x_a), l.x_g = load(from.x_g);
  l.w0 = load(from.w0), l.w = load_low_rank(from.w1, from.w2);
  l.a0 = load(from.a0), l.a = load_low_rank(from.a1, from.a2);
  if (!first) l.v0 = load(from.v0), l.v = load_low_rank(from.v1, from.v2);
  l.g = load_low_rank(from.g1, from.g2);
  l.k_k = load(from.k_k), l.k_a = load(from.k_a), l.r_k = load(from.r_k);
  l.receptance = load_dense(from.receptance, false), l.key = load_dense(from.key, false);
  l.value = load_dense(from.value, false), l.output = load_dense(from.output, false);
  l.ffn_x_k = load(from.ffn_x_k);
  l.ffn_key = load_dense(from.ffn_key, false), l.ffn_value = load_dense(from.ffn_value, false);
  if (from.time_state.data) l.time_state = load(from.time_state);
  return l;
}

/// The results of a stage for the next one, [T, width].
class row_buffer {
 public:
  row_buffer(std::size_t rows, std::size_t width) : width_(width), values_(rows * width) {}
  [[nodiscard]] std::span<float> operator[](std::size_t r) { return std::span(values_).subspan(r * width_, width_); }
  [[nodiscard]] std::size_t bytes() const { return values_.size() * sizeof(float); }

 private:
  std::size_t width_;
  std::vector<float> values_;
};

class reference_rwkv7 final : public stages {
 public:
  reference_rwkv7(const rwkv7_weights& weights, const stage_limits& limits)
      : dims_(weights.dims),
        max_logit_rows_(limits.max_logit_rows),
        emb_(load_dense(weights.emb, false)),
        head_(load_dense(weights.head, false)),
        ln0_{load(weights.ln0_weight), load(weights.ln0_bias)},
        ln_out_{load(weights.ln_out_weight), load(weights.ln_out_bias)},
        states_(limits.slots, std::vector<float>(state_floats())),
        x_(limits.max_rows, dims_.embd),
        r_(limits.max_rows, dims_.embd),
        k_(limits.max_rows, dims_.embd),
        v_(limits.max_rows, dims_.embd),
        v_first_(limits.max_rows, dims_.embd),
        y_(limits.max_rows, dims_.embd),
        inner_w_(limits.max_rows, dims_.rank_w),
        inner_a_(limits.max_rows, dims_.rank_a),
        inner_v_(limits.max_rows, dims_.rank_v),
        inner_g_(limits.max_rows, dims_.rank_g),
        hidden_(limits.max_rows, dims_.ffn) {
    for (std::uint32_t i = 0; i < dims_.layers; ++i) layers_.push_back(load_layer(weights.layers[i], i == 0));
    for (const tensor_view* view : all_views(weights))
      weight_bytes_ += static_cast<std::size_t>(view->elements()) * sizeof(float);
    for (slot_id slot = 0; slot < limits.slots; ++slot) clear_state(slot);
  }

  void embed(const batch& rows) override {
    for (std::size_t t = 0; t < rows.tokens.size(); ++t) {
      const auto token = static_cast<std::size_t>(rows.tokens[t]);
      layer_norm(row(emb_.values).subspan(token * dims_.embd, dims_.embd), ln0_.weight, ln0_.bias, layer_norm_eps,
                 x_[t]);
    }
  }

  void time_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    std::vector<float> now(dims_.embd), mixed(dims_.embd);
    for_each_row(rows, [&](slot_id slot, std::size_t t) {
      const std::span<float> before = att_x_prev(slot, layer);
      layer_norm(x_[t], p.ln1.weight, p.ln1.bias, layer_norm_eps, now);
      const auto project = [&](row mix, const dense_matrix& matrix, row_out out) {
        token_shift(now, before, mix, mixed);
        linear(matrix, mixed, out);
      };
      project(p.x_r, p.receptance, r_[t]);
      project(p.x_k, p.key, k_[t]);
      project(p.x_v, p.value, v_[t]);
      project(p.x_w, p.w.first, inner_w_[t]);
      for (float& value : inner_w_[t]) value = std::tanh(value);
      project(p.x_a, p.a.first, inner_a_[t]);
      if (layer > 0) project(p.x_v, p.v.first, inner_v_[t]);
      project(p.x_g, p.g.first, inner_g_[t]);
      for (float& value : inner_g_[t]) value = sigmoid(value);
      std::copy(now.begin(), now.end(), before.begin());
    });
  }

  void time_mix_state(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    const std::size_t width = dims_.embd, n = dims_.head_size;
    std::vector<float> w(width), a(width), v_mix(width), g(width), kk(width);
    for_each_row(rows, [&](slot_id slot, std::size_t t) {
      const auto k = k_[t], v = v_[t], v_first = v_first_[t], y = y_[t];
      linear(p.w.second, inner_w_[t], w);
      for (std::size_t i = 0; i < width; ++i) w[i] = decay(p.w0[i] + w[i]);
      linear(p.a.second, inner_a_[t], a);
      for (std::size_t i = 0; i < width; ++i) a[i] = sigmoid(p.a0[i] + a[i]);
      linear(p.g.second, inner_g_[t], g);

      for (std::size_t i = 0; i < width; ++i) kk[i] = k[i] * p.k_k[i];  // from k before a changes it
      for (std::size_t i = 0; i < width; ++i) k[i] *= 1 + (a[i] - 1) * p.k_a[i];
      if (layer == 0) {
        std::copy(v.begin(), v.end(), v_first.begin());
      } else {
        linear(p.v.second, inner_v_[t], v_mix);
        for (std::size_t i = 0; i < width; ++i) v[i] += (v_first[i] - v[i]) * sigmoid(p.v0[i] + v_mix[i]);
      }

      for (std::size_t h = 0; h < dims_.heads; ++h) {
        const auto of_head = [&](std::span<const float> all) { return all.subspan(h * n, n); };
        normalise(std::span(kk).subspan(h * n, n));
        wkv7({of_head(r_[t]), of_head(w), of_head(k), of_head(v), of_head(kk), of_head(a)},
             wkv(slot, layer).subspan(h * n * n, n * n), y.subspan(h * n, n));
      }
      group_norm(y, dims_.heads, p.ln_x.weight, p.ln_x.bias, group_norm_eps, y);
      for (std::size_t h = 0; h < dims_.heads; ++h) {
        const auto of_head = [&](std::span<const float> all) { return all.subspan(h * n, n); };
        add_bonus(of_head(r_[t]), of_head(k), of_head(v), of_head(p.r_k), y.subspan(h * n, n));
      }
      for (std::size_t i = 0; i < width; ++i) y[i] *= g[i];
    });
  }

  void time_mix_out(std::uint32_t layer, const batch& rows) override { add_linear(layers_[layer].output, y_, rows); }

  void channel_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    std::vector<float> now(dims_.embd), mixed(dims_.embd);
    for_each_row(rows, [&](slot_id slot, std::size_t t) {
      const std::span<float> before = ffn_x_prev(slot, layer);
      layer_norm(x_[t], p.ln2.weight, p.ln2.bias, layer_norm_eps, now);
      token_shift(now, before, p.ffn_x_k, mixed);
      linear(p.ffn_key, mixed, hidden_[t]);
      relu_squared(hidden_[t]);
      std::copy(now.begin(), now.end(), before.begin());
    });
  }

  void channel_mix_out(std::uint32_t layer, const batch& rows) override {
    add_linear(layers_[layer].ffn_value, hidden_, rows);
  }

  void head(const batch&, std::span<const std::uint32_t> wanted, std::span<float> logits) override {
    check(wanted.size() <= max_logit_rows_);
    check(logits.size() == wanted.size() * dims_.vocab);
    std::vector<float> normed(dims_.embd);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      layer_norm(x_[wanted[i]], ln_out_.weight, ln_out_.bias, layer_norm_eps, normed);
      linear(head_, normed, logits.subspan(i * dims_.vocab, dims_.vocab));
    }
  }

  std::size_t state_floats() const override { return dims_.layers * layer_floats(); }

  void clear_state(slot_id slot) override {
    std::fill(states_[slot].begin(), states_[slot].end(), 0.0f);
    for (std::uint32_t i = 0; i < dims_.layers; ++i)
      std::copy(layers_[i].time_state.begin(), layers_[i].time_state.end(), wkv(slot, i).begin());
  }
  void copy_state(slot_id from, slot_id to) override { states_[to] = states_[from]; }
  void read_state(slot_id slot, std::span<float> out) const override {
    check(out.size() == state_floats());
    std::copy(states_[slot].begin(), states_[slot].end(), out.begin());
  }
  void write_state(slot_id slot, std::span<const float> in) override {
    check(in.size() == state_floats());
    std::copy(in.begin(), in.end(), states_[slot].begin());
  }

  void parallel_for(std::size_t count, range_body body, void* context) override {
    if (count > 0) body(context, 0, count);
  }

  memory_plan memory() const override {
    memory_plan taken;
    taken.slots = static_cast<std::uint32_t>(states_.size());
    taken.slot_bytes = state_floats() * sizeof(float);
    taken.weight_bytes = weight_bytes_;
    for (const row_buffer* b :
         {&x_, &r_, &k_, &v_, &v_first_, &y_, &inner_w_, &inner_a_, &inner_v_, &inner_g_, &hidden_})
      taken.activation_bytes += b->bytes();
    return taken;
  }

 private:
  /// body(slot, row) for all rows, each sequence in order.
  template <typename Body>
  static void for_each_row(const batch& rows, const Body& body) {
    for (const sequence_run& run : rows.runs)
      for (std::uint32_t i = 0; i < run.rows; ++i) body(run.slot, run.first_row + i);
  }

  void add_linear(const dense_matrix& matrix, row_buffer& in, const batch& rows) {
    std::vector<float> sum(dims_.embd);
    for (std::size_t t = 0; t < rows.tokens.size(); ++t) {
      linear(matrix, in[t], sum);
      for (std::size_t i = 0; i < sum.size(); ++i) x_[t][i] += sum[i];
    }
  }

  std::size_t wkv_floats() const { return static_cast<std::size_t>(dims_.heads) * dims_.head_size * dims_.head_size; }
  std::size_t layer_floats() const { return 2 * static_cast<std::size_t>(dims_.embd) + wkv_floats(); }
  std::span<float> part(slot_id slot, std::uint32_t layer, std::size_t offset, std::size_t floats) {
    return std::span(states_[slot]).subspan(layer * layer_floats() + offset, floats);
  }
  std::span<float> att_x_prev(slot_id slot, std::uint32_t layer) { return part(slot, layer, 0, dims_.embd); }
  std::span<float> ffn_x_prev(slot_id slot, std::uint32_t layer) { return part(slot, layer, dims_.embd, dims_.embd); }
  std::span<float> wkv(slot_id slot, std::uint32_t layer) { return part(slot, layer, 2 * dims_.embd, wkv_floats()); }

  rwkv7_dims dims_;
  std::size_t max_logit_rows_;
  std::size_t weight_bytes_ = 0;
  dense_matrix emb_, head_;
  norm ln0_, ln_out_;
  std::vector<layer> layers_;
  std::vector<std::vector<float>> states_;
  row_buffer x_, r_, k_, v_, v_first_, y_, inner_w_, inner_a_, inner_v_, inner_g_, hidden_;
};

}  // namespace

result<std::unique_ptr<stages>> make_reference_rwkv7(const rwkv7_weights& weights, const stage_limits& limits) {
  if (const auto types = check_element_types(weights); !types) return types.error();
  try {
    return std::make_unique<reference_rwkv7>(weights, limits);
  } catch (const std::bad_alloc&) {
    return error{error_kind::unavailable, "not enough memory for the model in fp32", ""};
  }
}

}  // namespace skein::kernels
