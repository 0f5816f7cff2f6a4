#include "kernels/weights/file_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.hpp"
#include "kernels/weights/e4m3.hpp"

namespace skein::kernels {

namespace {

constexpr std::uint8_t code_of_zero(code_type type) {
  return type == code_type::int4 ? 8 : type == code_type::nf4 ? 7 : 0;
}
static_assert(nf4_values[code_of_zero(code_type::nf4)] == 0);

}  // namespace

bool stored_in(weight_format format, const tensor_view& matrix) {
  if (format.group != code_blocks::elements || matrix.shape.size() != 2) return false;
  if (matrix.shape[1] % static_cast<std::int64_t>(code_blocks::elements) != 0) return false;
  return (format.element == weight_element::int8 && matrix.blocks.type == code_type::int8) ||
         (format.element == weight_element::int4 && matrix.blocks.type == code_type::int4);
}

float read_block(const tensor_view& matrix, std::size_t output, std::size_t input, std::span<std::uint8_t> codes) {
  constexpr std::size_t elements = code_blocks::elements;
  check(codes.size() == elements && input % elements == 0);
  const code_blocks& blocks = matrix.blocks;
  const std::size_t of_row = static_cast<std::size_t>(matrix.shape[1]) / elements;
  const std::byte* const block = blocks.data + (output * of_row + input / elements) * blocks.bytes();
  std::uint16_t scale;
  std::memcpy(&scale, block, sizeof scale);
  const std::byte* const bytes = block + sizeof scale;
  if (blocks.type == code_type::int8) {
    std::memcpy(codes.data(), bytes, elements);
  } else {
    for (std::size_t i = 0; i < elements / 2; ++i) {
      const auto pair = std::to_integer<std::uint8_t>(bytes[i]);
      codes[i] = pair & 15;
      codes[i + elements / 2] = pair >> 4;
    }
  }
  return f16_to_f32(scale) * blocks.factor;
}

float read_group(const tensor_view& matrix, std::size_t output, std::size_t input, std::span<std::uint8_t> codes) {
  const quantised_codes& of = matrix.codes;
  const auto columns = static_cast<std::size_t>(matrix.shape[1]);
  check(of.group > 0 && input % of.group == 0 && input < columns && codes.size() <= of.group);
  const std::byte* const row = matrix.data + output * of.row_bytes(columns);
  const std::size_t present = std::min(codes.size(), columns - input);
  if (fills_bytes(of.type)) {
    std::memcpy(codes.data(), row + input, present);
  } else {
    for (std::size_t i = 0; i < present; ++i) {  // groups begin at even inputs
      const auto pair = std::to_integer<std::uint8_t>(row[(input + i) / 2]);
      codes[i] = i % 2 == 0 ? pair & 15 : pair >> 4;
    }
  }
  std::ranges::fill(codes.subspan(present), code_of_zero(of.type));
  const std::size_t groups = (columns + of.group - 1) / of.group;
  std::uint16_t scale;
  std::memcpy(&scale, of.scales + (output * groups + input / of.group) * sizeof scale, sizeof scale);
  if (of.type == code_type::fp8 && std::ranges::any_of(codes, is_nan_of_e4m3)) {
    std::ranges::fill(codes, std::uint8_t{0});  // as quantise_group() does: kernels decode finite numbers only
    return std::numeric_limits<float>::quiet_NaN();
  }
  return of.scale_type == dtype::f16 ? f16_to_f32(scale) : bf16_to_f32(scale);
}

std::uint16_t read_row_scale(const tensor_view& matrix, std::size_t output) {
  const quantised_codes& of = matrix.codes;
  check(of.type == code_type::fp8 && of.group > 0);
  const auto columns = static_cast<std::size_t>(matrix.shape[1]), groups = (columns + of.group - 1) / of.group;
  const auto* const codes = reinterpret_cast<const std::uint8_t*>(matrix.data) + output * of.row_bytes(columns);
  if (std::any_of(codes, codes + columns, is_nan_of_e4m3)) return f32_to_bf16(std::numeric_limits<float>::quiet_NaN());
  std::uint16_t scale;
  std::memcpy(&scale, of.scales + output * groups * sizeof scale, sizeof scale);
  return scale;
}

tensor_view rows_of(const tensor_view& matrix, std::int64_t first, std::int64_t count) {
  tensor_view rows = matrix;
  rows.shape[0] = count;
  if (count == 0) return rows;  // `first` may be outside
  if (matrix.quantised()) {
    const auto columns = static_cast<std::size_t>(matrix.shape[1]), before = static_cast<std::size_t>(first);
    const std::size_t groups = (columns + matrix.codes.group - 1) / matrix.codes.group;
    rows.data += before * matrix.codes.row_bytes(columns);
    rows.codes.scales += before * groups * sizeof(std::uint16_t);
    return rows;
  }
  rows.data += first * matrix.stride[0] * static_cast<std::int64_t>(dtype_bytes(matrix.type));
  if (matrix.blocks.type != code_type::none)
    rows.blocks.data += static_cast<std::size_t>(first) *
                        (static_cast<std::size_t>(matrix.shape[1]) / code_blocks::elements) * matrix.blocks.bytes();
  return rows;
}

}  // namespace skein::kernels
