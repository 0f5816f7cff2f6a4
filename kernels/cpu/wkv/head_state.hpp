#pragma once
#include <cstddef>
#include <span>

/// The state S of one head of versions 5, 6 and 7 as the CPU keeps it: [key][value], each key's line padded with zeros
/// to whole vectors. This is the transpose of the canonical order, so that vectors run over values: sums over keys (S
/// kk, S r) are sums of lines in a fixed order, without horizontal additions, and a head size that is no multiple of
/// the vector size only wastes lanes.
namespace skein::kernels::cpu {

inline constexpr std::size_t head_size_max = 256;

/// The distance in floats between the lines of two keys: the head size, rounded up to whole vectors.
[[nodiscard]] constexpr std::size_t state_line(std::size_t head_size) { return (head_size + 15) / 16 * 16; }
[[nodiscard]] constexpr std::size_t head_state_floats(std::size_t head_size) {
  return head_size * state_line(head_size);
}

/// Converts one head's state from and to the canonical order [value][key]. The padding stays zero.
void head_state_in(std::size_t head_size, std::span<const float> canonical, float* state);
void head_state_out(std::size_t head_size, const float* state, std::span<float> canonical);

}  // namespace skein::kernels::cpu
