#pragma once
#include <cstdint>
#include <random>
#include <vector>

#include "sampling/sampling_params.hpp"

namespace skein::sampling {

/// One draw with everything that can go wrong in it: see random_case.
struct sampling_case {
  std::vector<float> logits;
  std::vector<std::uint32_t> allowed;  ///< may be empty
  sampling_params params;
};

/// Random combinations of ties, NaN, infinities, masks, extreme temperatures and limits. `vocab` 0: a random small one.
[[nodiscard]] sampling_case random_case(std::uint32_t seed, std::uint32_t vocab = 0);

}  // namespace skein::sampling
