#pragma once
#include "kernels/gpu/runtime/runtime.hpp"
#include "kernels/gpu/types/batch.hpp"
#include "kernels/gpu/types/elements.hpp"

namespace skein::kernels::gpu {

/// The layout of the states of all slots in device memory, layer by layer because a kernel processes one layer of many
/// slots:
///   att.x_prev : [slots, width];  ffn.x_prev : the same
///   wkv        : [slots, A / N, N * N]; heads of 64 in the order of head_state.cuh, others as [key, value]
///   wkv of version 4, which has no heads: [slots, 3, A], the arrays aa, bb and pp; always fp32
/// The others have the type `type`. If width and A are multiples of 64, all parts begin at multiples of 128 bytes.
struct slot_layout {
  std::uint32_t layers = 0, slots = 0, width = 0;
  element type = element::f32;
  std::uint32_t head_size = 64;  ///< N, or 0 without heads; copy_state needs multiples of 64, others take any width
  std::uint32_t attention = 0;   ///< A, the width of the attention; 0: as `width`

  [[nodiscard]] constexpr std::size_t wkv_floats() const {
    return std::size_t{attention == 0 ? width : attention} * (head_size == 0 ? 3 : head_size);
  }
  /// The distance between slots.
  [[nodiscard]] constexpr std::size_t x_prev_bytes() const { return width * element_bytes(type); }
  [[nodiscard]] constexpr std::size_t wkv_bytes() const { return wkv_floats() * element_bytes(wkv_type()); }
  [[nodiscard]] constexpr element wkv_type() const { return head_size == 0 ? element::f32 : type; }

  /// The size of one slot, and of all.
  [[nodiscard]] constexpr std::size_t slot_bytes() const { return layers * (2 * x_prev_bytes() + wkv_bytes()); }
  [[nodiscard]] constexpr std::size_t bytes() const { return slots * slot_bytes(); }

  /// The offsets of a layer's parts, for slot 0.
  [[nodiscard]] constexpr std::size_t att_x_prev(std::uint32_t layer) const { return layer * (bytes() / layers); }
  [[nodiscard]] constexpr std::size_t ffn_x_prev(std::uint32_t layer) const {
    return att_x_prev(layer) + slots * x_prev_bytes();
  }
  [[nodiscard]] constexpr std::size_t wkv(std::uint32_t layer) const {
    return ffn_x_prev(layer) + slots * x_prev_bytes();
  }

  /// The canonical order of model/state_layout: one slot alone, layer by layer the same parts in the same types, heads
  /// as [value, key]. So a state has slot_bytes() there too.
  [[nodiscard]] constexpr std::size_t canonical_layer_floats() const { return 2 * std::size_t{width} + wkv_floats(); }
  [[nodiscard]] constexpr std::size_t canonical_layer_bytes() const { return 2 * x_prev_bytes() + wkv_bytes(); }
};

/// Copy between a slot of `states` and slot_bytes() in the canonical order, bit for bit; both are on the device.
[[nodiscard]] result<void> state_to_canonical(stream_handle in, const slot_layout& layout, const void* states,
                                              slot_id slot, void* canonical);
[[nodiscard]] result<void> state_from_canonical(stream_handle in, const slot_layout& layout, const void* canonical,
                                                void* states, slot_id slot);
/// Copies one slot to another.
[[nodiscard]] result<void> copy_state(stream_handle in, const slot_layout& layout, void* states, slot_id from,
                                      slot_id to);

}  // namespace skein::kernels::gpu
