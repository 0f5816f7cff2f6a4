#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "kernels/weights/model_weights.hpp"
#include "tests/kernels/random_rwkv7.hpp"

namespace skein::test {

/// Random weights of any version in memory, as if read from a checkpoint: matrices of one element type, vectors in
/// fp32. Scaled so that activations keep a sane size and every term of the equations matters.
class random_weights {
 public:
  enum class version : std::uint8_t { v4, v5_1, v5_1_log, v5_2, v6, v7 };

  /// Version 5.1 has a gate, or with `v5_1_log` none and a bonus stored as its logarithm. `with_time_state`: not v4.
  random_weights(version of, const kernels::model_dims& dims, dtype matrix_type, std::uint64_t seed,
                 bool with_time_state = false);
  random_weights(const random_weights&) = delete;  // the views point into it
  random_weights& operator=(const random_weights&) = delete;

  [[nodiscard]] const kernels::model_weights& weights() const { return weights_; }
  [[nodiscard]] const kernels::model_dims& dims() const { return kernels::dims_of(weights_); }

 private:
  template <template <typename> typename Layer>
  void fill(const kernels::model_dims& dims);
  tensor_view made(const kernels::tensor_spec& spec, const kernels::model_dims& dims);
  [[nodiscard]] bool present(const kernels::tensor_spec& spec, std::uint32_t layer) const;

  version version_;
  dtype matrix_type_;
  random_numbers random_;
  bool with_time_state_;
  std::deque<std::vector<std::byte>> memory_;
  kernels::model_weights weights_;
};

}  // namespace skein::test
