#pragma once
#include <cmath>

#include "kernels/gpu/state.hpp"
#include "kernels/gpu/time_mix.hpp"
#include "kernels/ops.hpp"
#include "tests/kernels/gpu/device_values.hpp"

/// Random inputs of the time mixing of one layer and one tick, what the primitives of kernels/reference make of them,
/// and the same inputs on the device.
namespace skein::test {

/// Inputs on the host, rounded as the device stores them. `extreme` makes a third of the decays 1 and a third the
/// smallest there is, and some keys and values large.
struct time_mix_case {
  static constexpr std::uint32_t n = kernels::gpu::head_size;
  using values = std::vector<float>;

  time_mix_case(random_numbers& random, element type, std::uint32_t heads, std::uint32_t rows, std::uint32_t slots,
                bool extreme = false)
      : width(heads * n) {
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

  std::uint32_t width;
  values r, k, v, v_first, w_out, a_out, v_out, g_out;
  values w0, a0, v0, k_k, k_a, r_k, ln_x_weight, ln_x_bias, states;
};

/// A case on the device; its states come in through slots of one layer, as they do in a model.
class time_mix_on_device {
 public:
  /// Rounds the case's states as they are stored.
  time_mix_on_device(time_mix_case& given, random_numbers& random, element type, element state_type, bool first_layer,
                     std::uint32_t slots, const kernels::gpu::stream& in)
      : width_(given.width),
        layout_{1, given.width, state_type},
        memory_(std::vector<float>(slots * layout_.bytes() / sizeof(float)), element::f32),
        y_(std::vector<float>(given.r.size()), type),
        v_first_(given.v_first, type) {
    const std::size_t state_floats = layout_.wkv_floats();
    for (slot_id s = 0; s < slots; ++s) {
      std::vector<float> canonical(2 * width_, 0.0f);
      const auto state = std::span(given.states).subspan(s * state_floats, state_floats);
      canonical.insert(canonical.end(), state.begin(), state.end());
      const device_values on_device(canonical, element::f32);
      require(kernels::gpu::state_from_canonical(in, layout_, on_device.floats(), slot(s)));
      std::ranges::copy(state_of(s, in), state.begin());
    }

    const element gate = kernels::gpu::gate_element(type);
    kept_.reserve(32);
    // Of a product: whole rows, or their sums in parts, which the device adds and rounds. In fp32 nothing is left to
    // round, so there all parts but the last are 0.
    const auto product_of = [&](const std::vector<float>& all, element as) -> kernels::gpu::product_rows {
      const std::uint32_t parts = random.below(4);
      if (parts == 0) return {kept_.emplace_back(all, as).data(), width_, 0, 0};
      const std::size_t part_stride = all.size() + 4 * random.below(3);
      std::vector<float> addends(parts * part_stride, std::nanf(""));
      for (std::size_t i = 0; i < all.size(); ++i) {
        float sum = 0;
        for (std::uint32_t p = 0; p + 1 < parts; ++p)
          sum += addends[p * part_stride + i] = as == element::f32 ? 0 : std::round(16 * random.value()) / 16;
        addends[(parts - 1) * part_stride + i] = all[i] - sum;
      }
      return {kept_.emplace_back(addends, element::f32).data(), width_, parts, part_stride};
    };
    const auto vector = [&](const std::vector<float>& all) { return kept_.emplace_back(all, element::f32).floats(); };
    of.r = product_of(given.r, type), of.k = product_of(given.k, type), of.v = product_of(given.v, type);
    of.w_out = product_of(given.w_out, gate), of.a_out = product_of(given.a_out, gate);
    of.v_out = product_of(given.v_out, gate), of.g_out = product_of(given.g_out, gate);
    of.v_first = v_first_.data(), of.y = y_.data();
    of.w0 = vector(given.w0), of.a0 = vector(given.a0), of.v0 = vector(given.v0);
    of.k_k = vector(given.k_k), of.k_a = vector(given.k_a), of.r_k = vector(given.r_k);
    of.ln_x_weight = vector(given.ln_x_weight), of.ln_x_bias = vector(given.ln_x_bias);
    of.state = static_cast<char*>(memory_.data()) + layout_.wkv(0), of.slot_bytes = layout_.bytes();
    of.width = width_, of.first_layer = first_layer;
  }

  [[nodiscard]] std::vector<float> y(const kernels::gpu::stream& in) const { return y_.read(in); }
  [[nodiscard]] std::vector<float> v_first(const kernels::gpu::stream& in) const { return v_first_.read(in); }
  /// [head, value, key]
  [[nodiscard]] std::vector<float> state_of(slot_id s, const kernels::gpu::stream& in) const {
    const device_values canonical(std::vector<float>(layout_.canonical_floats()), element::f32);
    require(kernels::gpu::state_to_canonical(in, layout_, slot(s), canonical.floats()));
    const auto all = canonical.read(in);
    return {all.begin() + 2 * width_, all.end()};
  }

  kernels::gpu::time_mix_parameters of;

 private:
  [[nodiscard]] char* slot(slot_id s) const { return static_cast<char*>(memory_.data()) + s * layout_.bytes(); }

  std::uint32_t width_;
  kernels::gpu::slot_layout layout_;
  device_values memory_, y_, v_first_;
  std::vector<device_values> kept_;
};

}  // namespace skein::test
