#pragma once
#include "kernels/gpu/time_mix/state.hpp"
#include "tests/kernels/gpu/gemm_on_device.hpp"
#include "tests/kernels/gpu/time_mix_case.hpp"

namespace skein::test {

/// A case on the device; its states come in through slots of one layer, as they do in a model.
class time_mix_on_device {
 public:
  /// Rounds the case's states as they are stored.
  time_mix_on_device(time_mix_case& given, random_numbers& random, element type, element state_type, bool first_layer,
                     std::uint32_t slots, const kernels::gpu::stream& in)
      : width_(given.width),
        layout_{1, slots, given.width, state_type, given.n},
        memory_(std::vector<float>((layout_.bytes() + sizeof(float) - 1) / sizeof(float)), element::f32),
        y_(std::vector<float>(given.r.size()), type),
        v_first_(given.v_first, type) {
    const std::size_t state_floats = layout_.wkv_floats();
    for (slot_id s = 0; s < slots; ++s) {
      std::vector<float> canonical(2 * width_, 0.0f);
      const auto state = std::span(given.states).subspan(s * state_floats, state_floats);
      canonical.insert(canonical.end(), state.begin(), state.end());
      const device_values on_device(canonical, state_type);
      require(kernels::gpu::state_from_canonical(in, layout_, on_device.data(), memory_.data(), s));
      std::ranges::copy(state_of(s, in), state.begin());
    }

    const element gate = kernels::gpu::gate_element(type);
    kept_.reserve(32);
    const auto gemm_of = [&](const std::vector<float>& all, element as) {
      return gemm_on_device(all, as, width_, random, kept_);
    };
    const auto gate_of = [&](const std::vector<float>& all) -> kernels::gpu::gemm_rows {
      return {kept_.emplace_back(all, gate).data(), width_, 0, 0};
    };
    const auto vector = [&](const std::vector<float>& all) { return kept_.emplace_back(all, element::f32).floats(); };
    of.r = gemm_of(given.r, type), of.k = gemm_of(given.k, type), of.v = gemm_of(given.v, type);
    of.w_out = gate_of(given.w_out), of.a_out = gate_of(given.a_out);
    of.v_out = gate_of(given.v_out), of.g_out = gate_of(given.g_out);
    of.v_first = v_first_.data(), of.y = y_.data();
    of.w0 = vector(given.w0), of.a0 = vector(given.a0), of.v0 = vector(given.v0);
    of.k_k = vector(given.k_k), of.k_a = vector(given.k_a), of.r_k = vector(given.r_k);
    of.ln_x_weight = vector(given.ln_x_weight), of.ln_x_bias = vector(given.ln_x_bias);
    of.state = static_cast<char*>(memory_.data()) + layout_.wkv(0), of.slot_bytes = layout_.wkv_bytes();
    of.width = width_, of.first_layer = first_layer;
  }

  [[nodiscard]] std::vector<float> y(const kernels::gpu::stream& in) const { return y_.read(in); }
  [[nodiscard]] std::vector<float> v_first(const kernels::gpu::stream& in) const { return v_first_.read(in); }
  /// [head, value, key]
  [[nodiscard]] std::vector<float> state_of(slot_id s, const kernels::gpu::stream& in) const {
    const device_values canonical(std::vector<float>(layout_.canonical_layer_floats()), layout_.type);
    require(kernels::gpu::state_to_canonical(in, layout_, memory_.data(), s, canonical.data()));
    const auto all = canonical.read(in);
    return {all.begin() + 2 * width_, all.end()};
  }

  void check_nothing_was_written_behind_the_states(const kernels::gpu::stream& in) const {
    static_cast<void>(memory_.read(in));  // looks at its guard
  }

  kernels::gpu::time_mix_parameters of;

 private:
  std::uint32_t width_;
  kernels::gpu::slot_layout layout_;
  device_values memory_, y_, v_first_;
  std::vector<device_values> kept_;
};

}  // namespace skein::test
