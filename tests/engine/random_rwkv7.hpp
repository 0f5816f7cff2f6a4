#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "kernels/rwkv7_weights.hpp"

namespace skein::test {

/// A small RWKV-7 model with random fp32 weights in its own memory: for tests of what runs the real arithmetic.
class random_rwkv7 {
 public:
  random_rwkv7(const kernels::rwkv7_dims& dims, std::uint64_t seed);
  [[nodiscard]] const kernels::rwkv7_weights& weights() const { return weights_; }

 private:
  [[nodiscard]] tensor_view tensor(std::vector<std::int64_t> shape, float low, float high);

  std::uint64_t random_state_;
  std::deque<std::vector<float>> values_;  // a deque: views stay valid while it grows
  kernels::rwkv7_weights weights_;
};

}  // namespace skein::test
