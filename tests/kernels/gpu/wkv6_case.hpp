#pragma once
#include <algorithm>
#include <cmath>

#include "kernels/gpu/time_mix/state.hpp"
#include "kernels/gpu/time_mix/wkv6.hpp"
#include "kernels/ops.hpp"
#include "tests/kernels/gpu/gemm_on_device.hpp"

/// Random inputs of the time mixing of one layer and one tick of versions 5 and 6, on the host and on the device, and
/// what the equations make of them in fp64.
namespace skein::test {

/// Which decays and magnitudes there are. `extreme`: the decays of channels go from 0 to 1, and those of version 6 jump
/// from token to token; some keys and values are large, and some tokens have none. `huge`: r, k and v are as large as
/// fp16 may be, where only finite results are demanded.
enum class wkv6_inputs : std::uint8_t { usual, extreme, huge };

struct wkv6_shape {
  element type = element::f32, state_type = element::f32;
  bool has_gate = true, has_w_out = true;
  std::uint32_t heads = 2;
  wkv6_inputs inputs = wkv6_inputs::usual;
};

/// On the host, rounded as the device stores them.
struct wkv6_case {
  using values = std::vector<float>;
  static constexpr std::uint32_t n = kernels::gpu::head_size;

  wkv6_case(random_numbers& random, const wkv6_shape& shape, std::uint32_t rows, std::uint32_t slots)
      : of(shape), width(of.heads * n) {
    const auto activations = [&] { return random_values(random, rows * width); };
    r = activations(), k = activations(), v = activations(), g = activations();
    w_out = random_values(random, rows * width, 1.5f);
    for (values* vector : {&decay, &bonus, &ln_x_weight, &ln_x_bias}) *vector = random_values(random, width);
    for (float& x : decay) x -= 2;
    states = random_values(random, std::size_t{slots} * width * n, 0.5f);
    if (of.inputs == wkv6_inputs::extreme) {
      // exp(-exp(x)) is 0, 1 - 2^-12, 2^-10, or 1.
      constexpr float extremes[] = {10, -8.3178f, 1.9363f, -40};
      for (float& x : decay)
        if (const std::uint32_t which = random.below(5); which < std::size(extremes)) x = extremes[which];
      for (float& x : w_out) x = random.below(8) == 0 ? 60 * static_cast<float>(random.below(3)) - 60 : x / 10;
      for (std::size_t i = 0; i < k.size(); i += 1 + random.below(50)) k[i] *= 100, v[i] *= 10, r[i] *= 1000;
      for (std::uint32_t row = 0; row < rows; row += 1 + random.below(20)) {  // nothing, or next to it
        const float scale = random.below(2) == 0 ? 0 : 1e-5f;
        for (values* vector : {&r, &k, &v})
          for (std::uint32_t c = 0; c < width; ++c) (*vector)[row * width + c] *= scale;
      }
    } else if (of.inputs == wkv6_inputs::huge) {
      for (values* vector : {&r, &k, &v})
        for (float& x : *vector) x = x < 0 ? -65504 : 65504;
    }
    if (!of.has_w_out)
      for (float& x : decay) x = std::exp(-std::exp(x));
    for (values* vector : {&r, &k, &v, &g}) *vector = rounded(*vector, of.type);
    w_out = rounded(w_out, kernels::gpu::gate_element(of.type));
  }

  /// Token t through the state of a slot; y is [rows, width].
  void take_token(slot_id slot, std::uint32_t t, values& y) {
    const std::size_t row = std::size_t{t} * width;
    for (std::uint32_t h = 0; h < of.heads; ++h) {
      const std::size_t first = h * n;
      float* const state = states.data() + (std::size_t{slot} * of.heads + h) * n * n;  // [value, key]
      double sum[n], w[n], of_bonus = 0, mean = 0, variance = 0;
      for (std::uint32_t c = 0; c < n; ++c) {
        const double x = decay[first + c];
        w[c] = of.has_w_out ? std::exp(-std::exp(x + w_out[row + first + c])) : x;
        of_bonus += double{r[row + first + c]} * k[row + first + c] * bonus[first + c];
      }
      for (std::uint32_t value = 0; value < n; ++value) {
        const double now = v[row + first + value];
        sum[value] = of_bonus * now;
        for (std::uint32_t key = 0; key < n; ++key) {
          float& s = state[value * n + key];
          sum[value] += double{s} * r[row + first + key];
          s = static_cast<float>(s * w[key] + now * k[row + first + key]);
        }
        mean += sum[value] / n;
      }
      for (const double x : sum) variance += (x - mean) * (x - mean) / n;
      const double scale = 1 / std::sqrt(variance + kernels::group_norm_eps);
      for (std::uint32_t c = 0; c < n; ++c) {
        const double normed = (sum[c] - mean) * scale * ln_x_weight[first + c] + ln_x_bias[first + c];
        const double gate = g[row + first + c];
        y[row + first + c] = static_cast<float>(of.has_gate ? normed * gate / (1 + std::exp(-gate)) : normed);
      }
    }
  }

  wkv6_shape of;
  std::uint32_t width;
  values r, k, v, g, w_out, decay, bonus, ln_x_weight, ln_x_bias, states;  ///< states: [slot, head, value, key]
};

/// A case on the device; its states come in through slots of one layer, as they do in a model.
class wkv6_on_device {
 public:
  /// Rounds the case's states as they are stored.
  wkv6_on_device(wkv6_case& given, random_numbers& random, std::uint32_t slots, const kernels::gpu::stream& in)
      : width_(given.width),
        layout_{1, slots, given.width, given.of.state_type, given.n},
        memory_(std::vector<float>((layout_.bytes() + sizeof(float) - 1) / sizeof(float)), element::f32),
        y_(std::vector<float>(given.r.size()), given.of.type) {
    const std::size_t state_floats = layout_.wkv_floats();
    for (slot_id s = 0; s < slots; ++s) {
      std::vector<float> canonical(2 * width_, 0.0f);
      const auto state = std::span(given.states).subspan(s * state_floats, state_floats);
      canonical.insert(canonical.end(), state.begin(), state.end());
      const device_values on_device(canonical, layout_.type);
      require(kernels::gpu::state_from_canonical(in, layout_, on_device.data(), memory_.data(), s));
      std::ranges::copy(state_of(s, in), state.begin());
    }
    kept_.reserve(16);
    const element type = given.of.type;
    const auto gemm_of = [&](const std::vector<float>& all) {
      return gemm_on_device(all, type, width_, random, kept_);
    };
    const auto vector = [&](const std::vector<float>& all) { return kept_.emplace_back(all, element::f32).floats(); };
    of.r = gemm_of(given.r), of.k = gemm_of(given.k), of.v = gemm_of(given.v);
    if (given.of.has_gate) of.g = {kept_.emplace_back(given.g, type).data(), width_, 0, 0};
    if (given.of.has_w_out)
      of.w_out = {kept_.emplace_back(given.w_out, kernels::gpu::gate_element(type)).data(), width_, 0, 0};
    of.y = y_.data();
    of.decay = vector(given.decay), of.bonus = vector(given.bonus);
    of.ln_x_weight = vector(given.ln_x_weight), of.ln_x_bias = vector(given.ln_x_bias);
    of.state = static_cast<char*>(memory_.data()) + layout_.wkv(0), of.slot_bytes = layout_.wkv_bytes();
    of.width = width_;
  }

  [[nodiscard]] std::vector<float> y(const kernels::gpu::stream& in) const { return y_.read(in); }
  /// [head, value, key]
  [[nodiscard]] std::vector<float> state_of(slot_id s, const kernels::gpu::stream& in) const {
    const device_values canonical(std::vector<float>(layout_.canonical_layer_floats()), layout_.type);
    require(kernels::gpu::state_to_canonical(in, layout_, memory_.data(), s, canonical.data()));
    const auto all = canonical.read(in);
    return {all.begin() + 2 * width_, all.end()};
  }

  kernels::gpu::wkv6_parameters of;

 private:
  std::uint32_t width_;
  kernels::gpu::slot_layout layout_;
  device_values memory_, y_;
  std::vector<device_values> kept_;
};

}  // namespace skein::test
