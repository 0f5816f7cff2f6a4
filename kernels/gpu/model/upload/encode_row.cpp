#include "kernels/gpu/model/upload/encode_row.hpp"

#include <algorithm>
#include <cstring>

#include "base/finite_half.hpp"
#include "kernels/weights/file_blocks.hpp"
#include "kernels/weights/weight_format.hpp"

namespace skein::kernels::gpu {

float encode_fp8_row(const tensor_view& from, std::size_t output, std::span<std::byte> codes,
                     std::vector<float>& scratch) {
  const auto inputs = static_cast<std::size_t>(from.shape[1]);
  const auto bytes = std::span(reinterpret_cast<std::uint8_t*>(codes.data()), codes.size());
  std::ranges::fill(bytes.subspan(inputs), std::uint8_t{0});
  if (!from.quantised()) {
    scratch.resize(inputs);
    copy_to_f32(rows_of(from, static_cast<std::int64_t>(output), 1), scratch);
  }
  const std::uint16_t scale = from.quantised() ? read_row_scale(from, output) : row_scale(weight_element::fp8, scratch);
  for (std::size_t begin = 0; begin < inputs; begin += default_group) {
    const auto of_group = bytes.subspan(begin, std::min<std::size_t>(default_group, inputs - begin));
    if (from.quantised())
      static_cast<void>(read_group(from, output, begin, of_group));
    else
      static_cast<void>(
          quantise_group(weight_element::fp8, std::span(scratch).subspan(begin, of_group.size()), of_group, scale));
  }
  return bf16_to_f32(scale);
}

}  // namespace skein::kernels::gpu
