#include "kernels/cpu/wkv/head_state.hpp"

namespace skein::kernels::cpu {

void head_state_in(std::size_t head_size, std::span<const float> canonical, float* state) {
  const std::size_t line = state_line(head_size);
  for (std::size_t key = 0; key < head_size; ++key)  // contiguous writes; the strided reads stay in the L1 cache
    for (std::size_t value = 0; value < head_size; ++value)
      state[key * line + value] = canonical[value * head_size + key];
}

void head_state_out(std::size_t head_size, const float* state, std::span<float> canonical) {
  const std::size_t line = state_line(head_size);
  for (std::size_t value = 0; value < head_size; ++value)
    for (std::size_t key = 0; key < head_size; ++key) canonical[value * head_size + key] = state[key * line + value];
}

}  // namespace skein::kernels::cpu
