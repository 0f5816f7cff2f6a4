#include "kernels/gpu/model/encode_panel.hpp"

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

/// The places of the codes of a block.
template <weight_element code>
constexpr auto places_of() {
  std::array<std::array<code_place, block_inputs>, panel_outputs> places{};
  for (std::uint32_t output = 0; output < panel_outputs; ++output)
    for (std::uint32_t input = 0; input < block_inputs; ++input)
      places[output][input] = place_of_code(code, output, input);
  return places;
}
template <weight_element code>
constexpr auto places = places_of<code>();

/// Writes codes of an output, for inputs from `first` on, to a block in which those are 0 before.
template <weight_element code>
void put_codes(std::span<const std::uint8_t> codes, std::uint32_t first, std::uint32_t output, std::byte* block) {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const code_place at = places<code>[output][first + i];
    if constexpr (code == weight_element::int8) {
      const int q = static_cast<std::int8_t>(codes[i]);
      block[at.byte] |= static_cast<std::byte>(std::min(q < 0 ? -q : q, 127));  // a file may have -128
      if (q < 0) block[byte_of_sign(at.byte)] |= std::byte{128};
    } else if constexpr (code == weight_element::fp8) {
      block[at.byte] |= static_cast<std::byte>(codes[i] & 127);
      block[byte_of_sign(at.byte)] |= static_cast<std::byte>(codes[i] & 128);
    } else {
      block[at.byte] |= static_cast<std::byte>(static_cast<unsigned>(codes[i]) << at.bit);
    }
  }
}

}  // namespace

std::size_t encode_panel(const tensor_view& from, element type, weight_format format, std::uint32_t width,
                         std::byte* panel, std::vector<float>& scratch) {
  check(!from.quantised() || format == format_of(from.codes));
  const std::uint32_t bytes = block_bytes(format);
  std::memset(panel, 0, std::size_t{width} / block_inputs * bytes);
  std::size_t beyond = 0;
  for (std::uint32_t output = 0; output < panel_outputs; ++output) {
    const bool has_row = output < from.shape[0];
    scratch.assign(width, 0.0f);
    if (has_row && !from.quantised()) {
      copy_to_f32(rows_of(from, output, 1), std::span(scratch).first(static_cast<std::size_t>(from.shape[1])));
    }
    for (std::uint32_t begin = 0; begin < width; begin += format.group) {
      std::array<std::uint8_t, group_max> codes;
      const std::uint32_t count = std::min<std::uint32_t>(format.group, width - begin);
      const auto of_group = std::span(codes).first(count);
      const bool in_file = has_row && begin < from.shape[1];
      const float value =
          in_file && from.quantised() ? read_group(from, output, begin, of_group)
          : in_file && stored_in(format, from)
              ? read_block(from, output, begin, of_group)
              : bf16_to_f32(quantise_group(format.element, std::span(scratch).subspan(begin, count), of_group));
      std::uint16_t scale = f32_to_bf16(value);
      if (type == element::f16) {
        if (value > half_scale_max || value < -half_scale_max) ++beyond;
        scale = f32_to_f16(std::clamp(value, -half_scale_max, half_scale_max) * half_scale_factor);
      }
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
