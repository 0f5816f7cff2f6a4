#include "kernels/cpu/packed_matrix.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/check.hpp"
#include "kernels/cpu/matrix_format.hpp"
#include "kernels/weights/file_blocks.hpp"

namespace skein::kernels::cpu {

namespace {

constexpr std::size_t block_inputs = 64;  // 32 x 64 floats: 8 KiB of L1 between reading rows and writing lines
constexpr std::size_t half_panel = panel_outputs / 2;

/// The floating format of an element that is not quantised.
matrix_format floating(weight_element element) {
  switch (element) {
    case weight_element::bf16: return matrix_format::bf16;
    case weight_element::f16: return matrix_format::f16;
    default: return matrix_format::f32;
  }
}

/// The position in its line of an output of a panel, for lines of dwords with outputs j and j + 16.
std::size_t place_in_pairs(std::size_t output) {
  return output < half_panel ? 2 * output : 2 * (output - half_panel) + 1;
}

std::size_t place_in_line(matrix_format format, std::size_t output) {
  return format == matrix_format::bf16 ? place_in_pairs(output) : output;
}

/// Transposes [place][input] to lines [input][place].
template <typename Element>
void write_lines(const std::byte* from, std::size_t count, std::byte* lines) {
  for (std::size_t i = 0; i < count; ++i, lines += panel_outputs * sizeof(Element)) {
    Element line[panel_outputs];
    for (std::size_t place = 0; place < panel_outputs; ++place)
      std::memcpy(&line[place], from + (place * block_inputs + i) * sizeof(Element), sizeof(Element));
    std::memcpy(lines, line, sizeof line);
  }
}

constexpr std::size_t group_max = 128;

/// Writes a line of a quantised panel, beginning at one input of a group; int8 codes become unsigned.
void write_codes(const std::uint8_t (&codes)[panel_outputs][group_max], std::size_t input, weight_element element,
                 std::byte* line) {
  for (std::size_t at = 0; at < coded_line_bytes; ++at) {
    const std::size_t output = at / 16 * 4 + at % 8 / 2 + (at % 16 < 8 ? 0 : half_panel), i = input + at % 2;
    const std::uint8_t *of = codes[output], *in_order = codes[at / 2];
    line[at] = element == weight_element::fp8    ? std::byte{in_order[i]}
               : element == weight_element::int8 ? static_cast<std::byte>(of[i] ^ 0x80)
                                                 : static_cast<std::byte>(of[i] | of[i + 2] << 4);
  }
}

/// Reads parts of rows (outputs) of a view.
class row_reader {
 public:
  row_reader(const tensor_view& view, bool transposed) : view_(view) {
    const auto bytes = static_cast<std::ptrdiff_t>(dtype_bytes(view.type));
    output_stride_ = view.stride[transposed ? 1 : 0] * bytes;
    input_stride_ = view.stride[transposed ? 0 : 1] * bytes;
  }
  [[nodiscard]] element_line part(std::size_t output, std::size_t first_input, std::size_t inputs) const {
    return {view_.data + static_cast<std::ptrdiff_t>(output) * output_stride_ +
                static_cast<std::ptrdiff_t>(first_input) * input_stride_,
            view_.type, input_stride_, inputs};
  }

 private:
  const tensor_view& view_;
  std::ptrdiff_t output_stride_, input_stride_;
};

using scale_line = std::array<std::uint16_t, panel_outputs>;

/// The scales of the rows of `count` outputs; 0 for absent ones.
scale_line row_scales(const row_reader& rows, weight_element element, std::size_t first, std::size_t count,
                      std::size_t inputs) {
  scale_line scales{};
  std::vector<float> row(inputs);
  for (std::size_t j = 0; j < count; ++j) {
    copy_elements(rows.part(first + j, 0, inputs), matrix_format::f32, reinterpret_cast<std::byte*>(row.data()));
    scales[j] = row_scale(element, row);
  }
  return scales;
}

}  // namespace

packed_matrix::packed_matrix(const tensor_view& view, bool transposed, weight_format format, thread_pool& pool)
    : format_(format) {
  check(view.shape.size() == 2);
  outputs_ = static_cast<std::size_t>(view.shape[transposed ? 1 : 0]);
  inputs_ = static_cast<std::size_t>(view.shape[transposed ? 0 : 1]);
  check(!view.quantised() || (!transposed && format == format_of(view.codes)));
  half_scales_ = !transposed && (stored_in(format, view) || (view.quantised() && view.codes.scale_type == dtype::f16));
  memory_ = aligned_buffer<std::byte>(bytes());
  std::atomic<bool> beyond{false};
  pool.run(panels(), [&](std::size_t p, std::uint32_t) {
    if (format_.quantised())
      quantise_panel(view, transposed, p);
    else if (!pack_panel(view, transposed, p))
      beyond = true;
  });
  fits_ = !beyond;
}

bool packed_matrix::pack_panel(const tensor_view& view, bool transposed, std::size_t panel) {
  const row_reader rows(view, transposed);
  const matrix_format format = floating(format_.element);
  const std::size_t first = panel * panel_outputs, count = std::min(panel_outputs, outputs_ - first);
  bool fits = true;
  alignas(64) std::byte block[panel_outputs * block_inputs * sizeof(float)] = {};  // absent outputs stay zero
  for (std::size_t input = 0; input < inputs_; input += block_inputs) {
    const std::size_t inputs = std::min(block_inputs, inputs_ - input);
    for (std::size_t j = 0; j < count; ++j)
      fits &= copy_elements(rows.part(first + j, input, inputs), format,
                            block + place_in_line(format, j) * block_inputs * element_bytes(format));
    std::byte* const lines = memory_.data() + panel * panel_bytes() + offset_of(input);
    if (format == matrix_format::f32)
      write_lines<std::uint32_t>(block, inputs, lines);
    else
      write_lines<std::uint16_t>(block, inputs, lines);
  }
  return fits;
}

void packed_matrix::quantise_panel(const tensor_view& view, bool transposed, std::size_t panel) {
  const row_reader rows(view, transposed);
  const std::size_t first = panel * panel_outputs, count = std::min(panel_outputs, outputs_ - first);
  const std::size_t line_inputs = coded_line_bytes / line_bytes(format_.element);
  const auto place_of_scale = [&](std::size_t output) {
    return format_.element == weight_element::fp8 ? output : place_in_pairs(output);
  };
  alignas(64) float weights[group_max];
  std::uint8_t codes[panel_outputs][group_max];
  const bool of_rows = has_row_scale(format_.element) && !view.quantised();
  const auto row = of_rows ? row_scales(rows, format_.element, first, count, inputs_) : scale_line{};
  for (std::size_t input = 0; input < inputs_; input += format_.group) {
    const std::size_t inputs = std::min<std::size_t>(format_.group, inputs_ - input);
    scale_line scales{};  // absent outputs have the scale 0
    std::memset(codes, 0, sizeof codes);
    for (std::size_t j = 0; j < count; ++j) {
      const auto of_group = std::span(codes[j]).first(inputs);
      if (view.quantised() || half_scales_) {
        const float scale = view.quantised() ? read_group(view, first + j, input, of_group)
                                             : read_block(view, first + j, input, of_group);
        scales[place_of_scale(j)] = half_scales_ ? f32_to_f16(scale) : f32_to_bf16(scale);
        continue;
      }
      copy_elements(rows.part(first + j, input, inputs), matrix_format::f32, reinterpret_cast<std::byte*>(weights));
      scales[place_of_scale(j)] = quantise_group(format_.element, std::span(weights).first(inputs), of_group, row[j]);
    }
    std::byte* lines = memory_.data() + panel * panel_bytes() + offset_of(input);
    std::memcpy(lines, scales.data(), sizeof scales);
    lines += scale_line_bytes;
    for (std::size_t i = 0; i < inputs; i += line_inputs, lines += coded_line_bytes)
      write_codes(codes, i, format_.element, lines);
  }
}

}  // namespace skein::kernels::cpu
