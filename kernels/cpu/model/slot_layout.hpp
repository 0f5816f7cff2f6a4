#pragma once
#include <cstddef>

#include "kernels/cpu/wkv/head_state.hpp"
#include "kernels/weights/tensor_spec.hpp"

namespace skein::kernels::cpu {

/// The layout of a layer in the state of a slot: x_prev of both mixes, then the memory of the time mixing: the heads in
/// the format of head_state.hpp, or aa, bb and pp of version 4. Arrays of channels are padded to whole cache lines.
class slot_layout {
 public:
  explicit slot_layout(const model_dims& dims)
      : layers_(dims.layers), embd_(dims.embd), att_(dims.att()), heads_(dims.heads), head_size_(dims.head_size) {}

  [[nodiscard]] std::size_t floats() const { return layers_ * layer_floats(); }
  [[nodiscard]] std::size_t layer_floats() const { return 2 * padded(embd_) + memory_floats(); }
  /// Offsets in a slot.
  [[nodiscard]] std::size_t att_x_prev(std::size_t layer) const { return layer * layer_floats(); }
  [[nodiscard]] std::size_t ffn_x_prev(std::size_t layer) const { return att_x_prev(layer) + padded(embd_); }
  [[nodiscard]] std::size_t head(std::size_t layer, std::size_t head) const {
    return memory(layer) + head * head_state_floats(head_size_);
  }
  /// Array `index` of version 4: aa, bb, pp.
  [[nodiscard]] std::size_t channels(std::size_t layer, std::size_t index) const {
    return memory(layer) + index * padded(att_);
  }

  /// Of a layer in the canonical order of model/state_layout.
  [[nodiscard]] std::size_t canonical_floats() const { return 2 * embd_ + canonical_memory_floats(); }
  [[nodiscard]] std::size_t canonical_memory_floats() const {
    return heads_ > 0 ? heads_ * head_size_ * head_size_ : 3 * att_;
  }
  /// Convert a layer of a slot from and to the canonical order.
  void layer_in(std::size_t layer, const float* canonical, float* slot) const;
  void layer_out(std::size_t layer, const float* slot, float* canonical) const;
  /// The same without the two x_prev.
  void memory_in(std::size_t layer, const float* canonical, float* slot) const;

 private:
  static std::size_t padded(std::size_t floats) { return (floats + 15) / 16 * 16; }
  [[nodiscard]] std::size_t memory_floats() const {
    return heads_ > 0 ? heads_ * head_state_floats(head_size_) : 3 * padded(att_);
  }
  [[nodiscard]] std::size_t memory(std::size_t layer) const { return ffn_x_prev(layer) + padded(embd_); }
  void memory_out(std::size_t layer, const float* slot, float* canonical) const;

  std::size_t layers_, embd_, att_, heads_, head_size_;
};

}  // namespace skein::kernels::cpu
