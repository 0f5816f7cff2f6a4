#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/weights/weight_format.hpp"

/// How a quantised matrix is laid out on a device: in blocks of 16 outputs by 64 inputs. The blocks of a panel of 16
/// outputs follow each other in order of inputs, and panels in order of outputs. A block begins with its codes, in
/// words of 4 bytes that the lanes of a warp hold as operands of a matrix instruction (device/fragments.cuh). Of 16
/// inputs (a step) a lane has four codes for an output of the lower eight and four for one of the upper eight: c(0) and
/// c(1) for neighbouring inputs of the first half of the step, c(2) and c(3) for the same of the second half.
///   int8  a word has the four codes of a step: [step][lower, upper][lane], each a byte, q + 128: c(2q + i) is byte
///         2i + q
///   fp8   the same words. Sign and magnitude are apart, so that a mask extracts a pair: exponent and mantissa are the
///         lower seven bits of the byte, and the sign is the highest bit of the byte beside it (number xor 1)
///   int4  a word has the codes of two steps: [pair of steps][lower, upper][lane], each a nibble, q + 8: c(2q + i) of
///         step s at bit 8 (s % 2) + 4q + 16i
///   nf4   the same words; c(n) of step s at bit 16 (s % 2) + 4n
/// The scales follow: for each group of inputs in the block (one, or two of 32) eight pairs, of outputs i and i + 8.
/// fp16 has 256 times the scale, so that small scales do not become subnormal; bf16 and fp32 have the scale as bf16.
namespace skein::kernels::gpu {

inline constexpr std::uint32_t panel_outputs = 16;
inline constexpr std::uint32_t block_inputs = 64;
inline constexpr std::uint32_t step_inputs = 16;
inline constexpr float half_scale_factor = 256;
/// Up to this scale all weights, up to 448 times the scale in fp8, are finite in fp16.
inline constexpr float half_scale_max = 146;
/// Up to this scale group_decoder (device/codes.cuh) decodes to bf16.
inline constexpr float bf16_scale_max = 16384;

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
/// fp8: the byte of the magnitude.
struct code_place {
  std::uint32_t byte, bit;
};
[[nodiscard]] constexpr code_place place_of_code(weight_element e, std::uint32_t output, std::uint32_t input) {
  const std::uint32_t step = input / step_inputs, within = input % step_inputs, upper = output / 8;
  const std::uint32_t lane = output % 8 * 4 + within % 8 / 2, q = within / 8, i = within % 2;
  if (code_bits(e) == 8) return {((step * 2 + upper) * 32 + lane) * 4 + 2 * i + q, 0};
  const std::uint32_t bit = e == weight_element::nf4 ? step % 2 * 16 + 8 * q + 4 * i : step % 2 * 8 + 4 * q + 16 * i;
  return {((step / 2 * 2 + upper) * 32 + lane) * 4 + bit / 8, bit % 8};
}
/// The byte of the sign of an fp8 code, from that of its magnitude.
[[nodiscard]] constexpr std::uint32_t byte_of_sign(std::uint32_t byte) { return byte ^ 1; }

[[nodiscard]] constexpr std::uint32_t place_of_scale(weight_format f, std::uint32_t output, std::uint32_t input) {
  const std::uint32_t group = f.group < block_inputs ? input / 32 : 0;
  return code_bytes_of_block(f.element) + group * scale_bytes_of_group + (output % 8 * 2 + output / 8) * 2;
}

}  // namespace skein::kernels::gpu
