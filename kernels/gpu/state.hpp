#pragma once
#include "kernels/gpu/elements.hpp"
#include "kernels/gpu/runtime/runtime.hpp"

namespace skein::kernels::gpu {

/// How the state of one slot lies in device memory: layer by layer att.x_prev and ffn.x_prev, fp32 [width] each, then
/// the heads of the wkv state in `type`, 64 x 64 each in the order of device/head_state.cuh. All parts begin at
/// multiples of 256 bytes.
struct slot_layout {
  std::uint32_t layers = 0, width = 0;
  element type = element::f32;

  [[nodiscard]] constexpr std::size_t x_prev_bytes() const { return width * sizeof(float); }
  [[nodiscard]] constexpr std::size_t wkv_floats() const { return std::size_t{width} * 64; }
  [[nodiscard]] constexpr std::size_t layer_bytes() const {
    return 2 * x_prev_bytes() + wkv_floats() * element_bytes(type);
  }
  [[nodiscard]] constexpr std::size_t bytes() const { return layers * layer_bytes(); }
  [[nodiscard]] constexpr std::size_t att_x_prev(std::uint32_t layer) const { return layer * layer_bytes(); }
  [[nodiscard]] constexpr std::size_t ffn_x_prev(std::uint32_t layer) const {
    return att_x_prev(layer) + x_prev_bytes();
  }
  [[nodiscard]] constexpr std::size_t wkv(std::uint32_t layer) const { return att_x_prev(layer) + 2 * x_prev_bytes(); }

  /// The canonical order of model/state_layout: the same parts as fp32, heads as [value, key].
  [[nodiscard]] constexpr std::size_t canonical_layer_floats() const { return 2 * std::size_t{width} + wkv_floats(); }
  [[nodiscard]] constexpr std::size_t canonical_floats() const { return layers * canonical_layer_floats(); }
};

/// Between a slot's memory and the canonical order; both on the device.
[[nodiscard]] result<void> state_to_canonical(stream_handle in, const slot_layout& layout, const void* slot,
                                              float* canonical);
[[nodiscard]] result<void> state_from_canonical(stream_handle in, const slot_layout& layout, const float* canonical,
                                                void* slot);

}  // namespace skein::kernels::gpu
