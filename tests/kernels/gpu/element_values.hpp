#pragma once
#include <vector>

#include "kernels/gpu/types/elements.hpp"
#include "tests/kernels/random_rwkv7.hpp"

/// Random values as element types hold them.
namespace skein::test {

using kernels::gpu::element;

[[nodiscard]] constexpr dtype stored_as(element e) {
  return e == element::f32 ? dtype::f32 : e == element::f16 ? dtype::f16 : dtype::bf16;
}

[[nodiscard]] inline std::vector<float> random_values(random_numbers& random, std::size_t count, float spread = 1) {
  std::vector<float> values(count);
  for (float& value : values) value = spread * random.value();
  return values;
}

/// What `values` are once they were stored as `type`.
[[nodiscard]] inline std::vector<float> rounded(const std::vector<float>& values, element type) {
  const auto bytes = encode(values, stored_as(type));
  std::vector<float> back(values.size());
  copy_to_f32(view_of(bytes, stored_as(type), {static_cast<std::int64_t>(values.size())}), back);
  return back;
}

}  // namespace skein::test
