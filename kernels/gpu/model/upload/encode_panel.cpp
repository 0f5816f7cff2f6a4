#include "kernels/gpu/model/upload/encode_panel.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "base/check.hpp"
#include "kernels/gpu/types/device_matrix.hpp"
#include "kernels/weights/file_blocks.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr std::size_t group_max = 128;

/// The 16 neighbouring bytes that have an output's codes of a step, or of two steps for codes of 4 bits: which inputs
/// each byte is made of. `low`: whose code it has, or of which codes of 4 bits its lower half. `high`: whose code of 4
/// bits its upper half is, or whose sign its highest bit in fp8.
template <weight_element code>
struct code_unit {
  static constexpr bool is_byte = code_bits(code) == 8;
  static constexpr std::uint32_t inputs = is_byte ? step_inputs : 2 * step_inputs, bytes = 16;
  std::array<std::uint8_t, bytes> low{}, high{};

  constexpr code_unit() {
    for (std::uint8_t input = 0; input < inputs; ++input) {
      const code_place at = place_of_code(code, 0, input);
      (at.bit == 0 ? low : high)[at.byte] = input;
      if (is_byte) high[code == weight_element::fp8 ? byte_of_sign(at.byte) : at.byte] = input;
    }
  }
};

/// Writes codes of an output, for inputs from `first` on, to a block; whole units.
template <weight_element code>
void put_codes(std::span<const std::uint8_t> codes, std::uint32_t first, std::uint32_t output, std::byte* block) {
  static constexpr code_unit<code> unit;
  for (std::size_t i = 0; i < codes.size(); i += unit.inputs) {
    std::array<std::uint8_t, unit.inputs> low, high;
    for (std::size_t n = 0; n < unit.inputs; ++n) {
      const std::uint8_t bits = codes[i + n];
      if constexpr (code == weight_element::int8) {
        low[n] = bits ^ 128, high[n] = 0;  // + 128
      } else if constexpr (code == weight_element::fp8) {
        low[n] = bits & 127, high[n] = bits & 128;
      } else {
        low[n] = bits, high[n] = static_cast<std::uint8_t>(bits << 4);
      }
    }
    std::array<std::uint8_t, unit.bytes> made;
    for (std::size_t n = 0; n < unit.bytes; ++n) made[n] = low[unit.low[n]] | high[unit.high[n]];
    const auto at = place_of_code(code, output, first + static_cast<std::uint32_t>(i)).byte;
    std::memcpy(block + at, made.data(), made.size());
  }
}

}  // namespace

std::size_t encode_panel(const tensor_view& from, element type, weight_format format, std::uint32_t width,
                         std::byte* panel, std::vector<float>& scratch) {
  check(!from.quantised() || format == format_of(from.codes));
  const std::uint32_t bytes = block_bytes(format);
  const bool has_codes = from.quantised() || stored_in(format, from);
  const bool one_scale = has_row_scale(format.element);
  std::size_t beyond = 0;
  for (std::uint32_t output = 0; output < panel_outputs; ++output) {
    const bool has_row = output < from.shape[0];
    if (!has_row || !has_codes || from.shape[1] < width) scratch.assign(width, 0.0f);
    if (has_row && !has_codes)
      copy_to_f32(rows_of(from, output, 1), std::span(scratch).first(static_cast<std::size_t>(from.shape[1])));
    const std::uint16_t of_row =
        one_scale && has_row && from.quantised() ? read_row_scale(from, output) : row_scale(format.element, scratch);
    for (std::uint32_t begin = 0; begin < width; begin += format.group) {
      std::array<std::uint8_t, group_max> codes;
      const std::uint32_t count = std::min<std::uint32_t>(format.group, width - begin);
      const auto of_group = std::span(codes).first(count);
      const bool in_file = has_row && begin < from.shape[1];
      float value =
          in_file && from.quantised() ? read_group(from, output, begin, of_group)
          : in_file && has_codes
              ? read_block(from, output, begin, of_group)
              : bf16_to_f32(quantise_group(format.element, std::span(scratch).subspan(begin, count), of_group, of_row));
      if (one_scale) value = bf16_to_f32(of_row);  // NaN also if the code of NaN is in another group
      std::uint16_t scale = f32_to_bf16(value);
      const float scale_max = type == element::f16 ? half_scale_max : bf16_scale_max;
      if (type != element::f32 && (value > scale_max || value < -scale_max)) ++beyond;
      if (type == element::f16)
        scale = f32_to_f16(std::clamp(value, -half_scale_max, half_scale_max) * half_scale_factor);
      for (std::uint32_t i = 0; i < count; i += std::min(count, block_inputs)) {
        const std::uint32_t input = begin + i, within = input % block_inputs;
        std::byte* const block = panel + std::size_t{input} / block_inputs * bytes;
        const std::uint32_t here = std::min(count, block_inputs);
        with_code(format,
                  [&]<weight_element code>() { put_codes<code>(of_group.subspan(i, here), within, output, block); });
        std::memcpy(block + place_of_scale(format, output, within), &scale, sizeof scale);
      }
    }
  }
  return beyond;
}

}  // namespace skein::kernels::gpu
