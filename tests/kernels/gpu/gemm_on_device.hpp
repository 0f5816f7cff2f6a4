#pragma once
#include <cmath>

#include "kernels/gpu/types/gemm_rows.hpp"
#include "tests/kernels/gpu/device_values.hpp"

namespace skein::test {

/// The output of a GEMM on the device, `width` values a row: whole rows, or their sums in parts, which the device adds
/// and rounds: multiples of a half of it, so that no sum is rounded before. In fp32 it would be, so there all parts but
/// the last are 0. `kept` holds the memory.
inline kernels::gpu::gemm_rows gemm_on_device(const std::vector<float>& all, element as, std::uint32_t width,
                                              random_numbers& random, std::vector<device_values>& kept) {
  const std::uint32_t parts = random.below(4);
  if (parts == 0) return {kept.emplace_back(all, as).data(), width, 0, 0};
  const std::size_t part_stride = all.size() + 4 * random.below(3);
  std::vector<float> addends(parts * part_stride, std::nanf(""));
  for (std::size_t i = 0; i < all.size(); ++i) {
    float sum = 0;
    for (std::uint32_t p = 0; p + 1 < parts; ++p)
      sum += addends[p * part_stride + i] = as == element::f32 ? 0 : all[i] * static_cast<float>(random.below(5)) / 2;
    addends[(parts - 1) * part_stride + i] = all[i] - sum;
  }
  return {kept.emplace_back(addends, element::f32).data(), width, parts, part_stride};
}

}  // namespace skein::test
