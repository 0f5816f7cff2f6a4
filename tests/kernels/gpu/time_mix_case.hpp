#pragma once
#include "kernels/gpu/time_mix/time_mix.hpp"
#include "kernels/ops.hpp"
#include "tests/kernels/gpu/element_values.hpp"

/// Random inputs of the time mixing of one layer and one tick, and what the primitives of kernels/reference make of
/// them.
namespace skein::test {

/// Inputs on the host, rounded as the device stores them. `extreme` makes a third of the decays 1 and a third the
/// smallest there is, and some keys and values large.
struct time_mix_case {
  using values = std::vector<float>;

  time_mix_case(random_numbers& random, element type, std::uint32_t heads, std::uint32_t rows, std::uint32_t slots,
                bool extreme = false, std::uint32_t head_size = kernels::gpu::head_size)
      : n(head_size), width(heads * n) {
    const auto activations = [&] { return rounded(random_values(random, rows * width), type); };
    r = activations(), k = activations(), v = activations(), v_first = activations();
    for (values* out : {&w_out, &a_out, &v_out, &g_out})
      *out = rounded(random_values(random, rows * width, 1.5f), kernels::gpu::gate_element(type));
    for (values* vector : {&w0, &a0, &v0, &k_k, &k_a, &r_k, &ln_x_weight, &ln_x_bias})
      *vector = random_values(random, width);
    states = random_values(random, std::size_t{slots} * width * n, 0.5f);  // [slot, head, value, key]
    if (!extreme) return;
    for (float& w : w0) w = 30 * static_cast<float>(random.below(3)) - 30;
    for (std::size_t i = 0; i < k.size(); i += 1 + random.below(50)) k[i] *= 32, v[i] *= 8;
  }

  /// Token t of a run through the whole of it, as the reference stages do it; y is [rows, width]. Not twice for a row.
  void take_token(slot_id slot, std::uint32_t t, bool first_layer, values& y) {
    values w(width), a(width), kk(width), out(width);
    const auto of_token = [&](values& all) { return std::span(all).subspan(t * width, width); };
    const auto r_t = of_token(r), k_t = of_token(k), v_t = of_token(v), first = of_token(v_first);
    for (std::uint32_t c = 0; c < width; ++c) {
      w[c] = kernels::decay(w0[c] + of_token(w_out)[c]);
      a[c] = kernels::sigmoid(a0[c] + of_token(a_out)[c]);
      kk[c] = k_t[c] * k_k[c];
      k_t[c] *= 1 + (a[c] - 1) * k_a[c];
      if (first_layer)
        first[c] = v_t[c];
      else
        v_t[c] += (first[c] - v_t[c]) * kernels::sigmoid(v0[c] + of_token(v_out)[c]);
    }
    const std::uint32_t heads = width / n;
    for (std::uint32_t h = 0; h < heads; ++h) {
      const auto of_head = [&](std::span<const float> all) { return all.subspan(h * n, n); };
      kernels::normalise(std::span(kk).subspan(h * n, n));
      kernels::wkv7({of_head(r_t), of_head(w), of_head(k_t), of_head(v_t), of_head(kk), of_head(a)},
                    std::span(states).subspan((slot * heads + h) * n * n, n * n), std::span(out).subspan(h * n, n));
    }
    kernels::group_norm(out, heads, ln_x_weight, ln_x_bias, kernels::group_norm_eps, out);
    for (std::uint32_t h = 0; h < heads; ++h) {
      const auto of_head = [&](std::span<const float> all) { return all.subspan(h * n, n); };
      kernels::add_bonus(of_head(r_t), of_head(k_t), of_head(v_t), of_head(r_k), std::span(out).subspan(h * n, n));
    }
    for (std::uint32_t c = 0; c < width; ++c) y[t * width + c] = out[c] * of_token(g_out)[c];
  }

  std::uint32_t n, width;
  values r, k, v, v_first, w_out, a_out, v_out, g_out;
  values w0, a0, v0, k_k, k_a, r_k, ln_x_weight, ln_x_bias, states;
};

}  // namespace skein::test
