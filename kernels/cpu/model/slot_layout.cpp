#include "kernels/cpu/model/slot_layout.hpp"

#include <algorithm>

namespace skein::kernels::cpu {

void slot_layout::layer_in(std::size_t layer, const float* canonical, float* slot) const {
  std::copy_n(canonical, embd_, slot + att_x_prev(layer));
  std::copy_n(canonical + embd_, embd_, slot + ffn_x_prev(layer));
  memory_in(layer, canonical + 2 * embd_, slot);
}

void slot_layout::layer_out(std::size_t layer, const float* slot, float* canonical) const {
  std::copy_n(slot + att_x_prev(layer), embd_, canonical);
  std::copy_n(slot + ffn_x_prev(layer), embd_, canonical + embd_);
  memory_out(layer, slot, canonical + 2 * embd_);
}

void slot_layout::memory_in(std::size_t layer, const float* canonical, float* slot) const {
  const std::size_t matrix = head_size_ * head_size_;
  for (std::size_t h = 0; h < heads_; ++h)
    head_state_in(head_size_, {canonical + h * matrix, matrix}, slot + head(layer, h));
  if (heads_ > 0) return;
  for (std::size_t array = 0; array < 3; ++array)
    std::copy_n(canonical + array * att_, att_, slot + channels(layer, array));
}

void slot_layout::memory_out(std::size_t layer, const float* slot, float* canonical) const {
  const std::size_t matrix = head_size_ * head_size_;
  for (std::size_t h = 0; h < heads_; ++h)
    head_state_out(head_size_, slot + head(layer, h), {canonical + h * matrix, matrix});
  if (heads_ > 0) return;
  for (std::size_t array = 0; array < 3; ++array)
    std::copy_n(slot + channels(layer, array), att_, canonical + array * att_);
}

}  // namespace skein::kernels::cpu
