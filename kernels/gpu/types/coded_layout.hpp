#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/weights/weight_format.hpp"

/// How a quantised matrix is laid out on a device: in blocks of 16 outputs by 64 inputs. The blocks of a panel of 16
/// outputs follow each other in order of inputs, and panels in order of outputs. A block begins with its codes, in the
/// order in which the lanes of a warp hold them as an operand of a matrix instruction (device/fragments.cuh): for each
/// step of 16 inputs, for each lane, its eight codes. Register j of a lane has the codes c(2j) and c(2j + 1):
///   int8  a byte each, q + 128, from c(0) up
///   int4  a nibble each, q + 8: c(2j) at bit 4j, c(2j + 1) at bit 16 + 4j
///   nf4   a nibble each, from c(0) up
/// The scales follow: for each group of inputs in the block (one, or two of 32) eight pairs, of outputs i and i + 8.
/// fp16 has 256 times the scale, so that small scales do not become subnormal; bf16 and fp32 have the scale as bf16.
namespace skein::kernels::gpu {

inline constexpr std::uint32_t panel_outputs = 16;
inline constexpr std::uint32_t block_inputs = 64;
inline constexpr std::uint32_t step_inputs = 16;
inline constexpr float half_scale_factor = 256;
/// fp16 cannot hold 256 times a larger scale.
inline constexpr float half_scale_max = 255;

[[nodiscard]] constexpr std::uint32_t code_bits(weight_element e) { return e == weight_element::int8 ? 8 : 4; }
[[nodiscard]] constexpr std::uint32_t code_bytes_of_block(weight_element e) {
  return panel_outputs * block_inputs * code_bits(e) / 8;
}
inline constexpr std::uint32_t scale_bytes_of_group = panel_outputs * 2;
[[nodiscard]] constexpr std::uint32_t scale_groups_of_block(weight_format f) { return f.group < block_inputs ? 2 : 1; }
[[nodiscard]] constexpr std::uint32_t block_bytes(weight_format f) {
  return code_bytes_of_block(f.element) + scale_groups_of_block(f) * scale_bytes_of_group;
}
/// Both sizes padded to whole tiles of 64.
[[nodiscard]] constexpr std::size_t coded_bytes(weight_format f, std::uint32_t outputs, std::uint32_t inputs) {
  return std::size_t{outputs} / panel_outputs * (inputs / block_inputs) * block_bytes(f);
}

/// Where the code of an output (of a panel) and an input (of a block) is: a byte of the block, and a bit of that byte.
struct code_place {
  std::uint32_t byte, bit;
};
[[nodiscard]] constexpr code_place place_of_code(weight_element e, std::uint32_t output, std::uint32_t input) {
  const std::uint32_t step = input / step_inputs, within = input % step_inputs;
  const std::uint32_t lane = output % 8 * 4 + within % 8 / 2;
  const std::uint32_t j = output / 8 + within / 8 * 2, c = 2 * j + within % 2;
  if (e == weight_element::int8) return {(step * 32 + lane) * 8 + c, 0};
  const std::uint32_t bit = e == weight_element::nf4 ? 4 * c : 4 * j + within % 2 * 16;
  return {(step * 32 + lane) * 4 + bit / 8, bit % 8};
}
[[nodiscard]] constexpr std::uint32_t place_of_scale(weight_format f, std::uint32_t output, std::uint32_t input) {
  const std::uint32_t group = f.group < block_inputs ? input / 32 : 0;
  return code_bytes_of_block(f.element) + group * scale_bytes_of_group + (output % 8 * 2 + output / 8) * 2;
}

}  // namespace skein::kernels::gpu
