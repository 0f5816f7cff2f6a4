// RWKV-7 on the CPU.
#include <algorithm>
#include <array>

#include "kernels/cpu/model/cpu_stages.hpp"
#include "kernels/cpu/wkv/wkv7.hpp"

namespace skein::kernels::cpu {
namespace {

struct rwkv7_rows {
  std::array<row_buffer, 6> mixed;
  row_buffer r, k, v, v_first, inner_w, inner_a, inner_v, inner_g, hidden;

  rwkv7_rows(const model_dims& dims, row_room& room)
      : mixed{{room.make(dims.embd), room.make(dims.embd), room.make(dims.embd), room.make(dims.embd),
               room.make(dims.embd), room.make(dims.embd)}},
        r(room.make(dims.embd)),
        k(room.make(dims.embd)),
        v(room.make(dims.embd)),
        v_first(room.make(dims.embd)),
        inner_w(room.make(dims.rank_w)),
        inner_a(room.make(dims.rank_a)),
        inner_v(room.make(dims.rank_v)),
        inner_g(room.make(dims.rank_g)),
        hidden(room.make(dims.ffn)) {}
};

class rwkv7_stages final : public cpu_stages {
 public:
  rwkv7_stages(const rwkv7_weights& weights, const weight_plan& plan, const stage_limits& limits,
               const load_progress& progress)
      : cpu_stages(weights.dims, limits), rows_(weights.dims, room_) {
    load(weights, plan, progress, layers_);
    make_states();
  }

  void time_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    const bool first = layer == 0;
    const auto& mixed = rows_.mixed;
    const std::array<shift, 6> shifts = {{{&p.x_r, &mixed[0]},
                                          {&p.x_k, &mixed[1]},
                                          {&p.x_v, &mixed[2]},
                                          {&p.x_w, &mixed[3]},
                                          {&p.x_a, &mixed[4]},
                                          {&p.x_g, &mixed[5]}}};
    norm_and_shift(rows, p.ln1_weight, p.ln1_bias, slot_.att_x_prev(layer), shifts);
    const std::array<gemm, 7> gemms = {
        make_gemm(p.receptance, mixed[0], rows_.r),
        make_gemm(p.key, mixed[1], rows_.k),
        make_gemm(p.value, mixed[2], first ? rows_.v_first : rows_.v),
        make_gemm(p.g1, mixed[5], rows_.inner_g, epilogue::sigmoid),
        make_gemm(p.w1, mixed[3], rows_.inner_w, epilogue::tanh),
        make_gemm(p.a1, mixed[4], rows_.inner_a),
        make_gemm(p.v1, mixed[2], rows_.inner_v),
    };
    matmul_(rows.tokens.size(), std::span(gemms).first(first ? 6 : 7));
  }

  void time_mix_state(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    const bool first = layer == 0;
    // The shifted inputs are not needed any more; their memory is reused for the low-rank outputs and for y.
    const row_buffer &w = rows_.mixed[0], &a = rows_.mixed[1], &g = rows_.mixed[2], &v_mix = rows_.mixed[3];
    const row_buffer& y = rows_.mixed[4];
    const std::array<gemm, 4> gemms = {
        make_gemm(p.g2, rows_.inner_g, g),
        make_gemm(p.w2, rows_.inner_w, w),
        make_gemm(p.a2, rows_.inner_a, a),
        make_gemm(p.v2, rows_.inner_v, v_mix),
    };
    matmul_(rows.tokens.size(), std::span(gemms).first(first ? 3 : 4));

    const std::size_t n = dims_.head_size, heads = dims_.heads;
    pool_.run(rows.runs.size() * heads, [&](std::size_t task, std::uint32_t) {
      const sequence_run& run = rows.runs[task / heads];
      const std::size_t h = task % heads, c = h * n;
      const auto at = [&](const row_buffer& buffer) { return buffer[run.first_row] + c; };
      const auto of = [&](const vector& all) { return all.data() + c; };
      wkv7({of(p.w0), of(p.a0), first ? nullptr : of(p.v0), of(p.k_k), of(p.k_a), of(p.r_k), of(p.ln_x_weight),
            of(p.ln_x_bias), n},
           {at(rows_.r), at(rows_.k), at(first ? rows_.v_first : rows_.v), at(w), at(a), at(v_mix), at(g),
            at(rows_.v_first), at(y), y.stride(), run.rows},
           state(run.slot) + slot_.head(layer, h));
    });
  }

  void time_mix_out(std::uint32_t layer, const batch& rows) override {
    add_product(rows, layers_[layer].output, rows_.mixed[4]);
  }

  void channel_mix_in(std::uint32_t layer, const batch& rows) override {
    const auto& p = layers_[layer];
    const shift only{&p.ffn_x_k, &rows_.mixed[0]};
    norm_and_shift(rows, p.ln2_weight, p.ln2_bias, slot_.ffn_x_prev(layer), {&only, 1});
    const gemm key = make_gemm(p.ffn_key, rows_.mixed[0], rows_.hidden, epilogue::relu_squared);
    matmul_(rows.tokens.size(), {&key, 1});
  }

  void channel_mix_out(std::uint32_t layer, const batch& rows) override {
    add_product(rows, layers_[layer].ffn_value, rows_.hidden);
  }

 private:
  void set_initial(std::uint32_t layer, std::span<float> memory) const override {
    std::ranges::copy(layers_[layer].time_state.all(), memory.begin());
  }

  const rwkv7_rows rows_;
  std::vector<rwkv7_layer_of<packed_types>> layers_;
};

}  // namespace

std::unique_ptr<stages> make(const rwkv7_weights& weights, const weight_plan& plan, const stage_limits& limits,
                             const load_progress& progress) {
  return std::make_unique<rwkv7_stages>(weights, plan, limits, progress);
}

memory_plan plan(const rwkv7_weights& weights, const weight_plan& formats, const stage_limits& limits) {
  row_room counted(limits.max_rows, true);
  const rwkv7_rows rows(weights.dims, counted);
  return cpu_stages::plan(weights.dims, formats, limits, planned_weight_bytes(weights, formats), counted.bytes());
}

}  // namespace skein::kernels::cpu
