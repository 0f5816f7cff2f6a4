#include "kernels/cpu/packed_matrix.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace skein::kernels::cpu {

namespace {

constexpr std::size_t block_inputs = 64;  // 32 x 64 floats: 8 KiB of L1 between reading rows and writing lines

/// The position in its line of an output of a panel.
std::size_t place_in_line(matrix_format format, std::size_t output) {
  if (format != matrix_format::bf16) return output;
  constexpr std::size_t half = panel_outputs / 2;
  return output < half ? 2 * output : 2 * (output - half) + 1;
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

}  // namespace

packed_matrix::packed_matrix(const tensor_view& view, bool transposed, matrix_format format, thread_pool& pool)
    : format_(format) {
  check(view.shape.size() == 2);
  const std::size_t output_dim = transposed ? 1 : 0, input_dim = 1 - output_dim;
  const auto view_bytes = static_cast<std::ptrdiff_t>(dtype_bytes(view.type));
  const std::ptrdiff_t output_stride = view.stride[output_dim] * view_bytes;
  const std::ptrdiff_t input_stride = view.stride[input_dim] * view_bytes;
  outputs_ = static_cast<std::size_t>(view.shape[output_dim]);
  inputs_ = static_cast<std::size_t>(view.shape[input_dim]);
  memory_ = aligned_buffer<std::byte>(bytes());

  pool.run(panels(), [&](std::size_t p, std::uint32_t) {
    const std::size_t first = p * panel_outputs, count = std::min(panel_outputs, outputs_ - first);
    alignas(64) std::byte block[panel_outputs * block_inputs * sizeof(float)] = {};  // absent outputs stay zero
    for (std::size_t input = 0; input < inputs_; input += block_inputs) {
      const std::size_t inputs = std::min(block_inputs, inputs_ - input);
      for (std::size_t j = 0; j < count; ++j)
        copy_elements({view.data + static_cast<std::ptrdiff_t>(first + j) * output_stride +
                           static_cast<std::ptrdiff_t>(input) * input_stride,
                       view.type, input_stride, inputs},
                      format_, block + place_in_line(format_, j) * block_inputs * element_bytes(format_));
      std::byte* const lines = memory_.data() + p * panel_bytes() + input * line_bytes(format_);
      if (format_ == matrix_format::f32)
        write_lines<std::uint32_t>(block, inputs, lines);
      else
        write_lines<std::uint16_t>(block, inputs, lines);
    }
  });
}

}  // namespace skein::kernels::cpu
