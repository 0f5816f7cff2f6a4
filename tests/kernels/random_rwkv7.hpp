#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <vector>

#include "kernels/weights/model_weights.hpp"
#include "model/state_layout.hpp"

namespace skein::test {

/// The small generator behind random weights and activations: the same numbers everywhere from one seed.
class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint32_t bits() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 32);
  }
  /// Evenly in -1 .. 1.
  float value() { return static_cast<float>(static_cast<std::int32_t>(bits())) * 0x1p-31f; }
  std::uint32_t below(std::uint32_t end) { return bits() % end; }

 private:
  std::uint64_t state_;
};

/// The layout of the states of such a model.
[[nodiscard]] inline model::state_layout layout_of(const kernels::model_dims& dims) {
  return {dims.layers, dims.embd, dims.heads, dims.head_size, dims.heads == 0 ? dims.att() : 0};
}

/// Random weights in memory, as if read from a checkpoint: matrices of one element type, vectors in fp32. Scaled so
/// that activations keep a sane size and every term of the equations matters.
class random_rwkv7 {
 public:
  random_rwkv7(const kernels::model_dims& dims, dtype matrix_type, std::uint64_t seed, bool with_time_state = false);
  random_rwkv7(const random_rwkv7&) = delete;  // the views point into it
  random_rwkv7& operator=(const random_rwkv7&) = delete;

  [[nodiscard]] const kernels::rwkv7_weights& weights() const { return weights_; }
  [[nodiscard]] const kernels::model_dims& dims() const { return weights_.dims; }

 private:
  tensor_view tensor(std::initializer_list<std::int64_t> shape, float centre, float spread, dtype type);
  tensor_view matrix(std::int64_t rows, std::int64_t columns, std::int64_t inputs);
  tensor_view vector(float centre, float spread);

  random_numbers random_;
  dtype matrix_type_;
  std::deque<std::vector<std::byte>> memory_;
  kernels::rwkv7_weights weights_;
};

/// `count` values written as elements of `type`, with the view of them: shape (rows, columns), row-major.
[[nodiscard]] std::vector<std::byte> encode(const std::vector<float>& values, dtype type);
[[nodiscard]] tensor_view view_of(const std::vector<std::byte>& bytes, dtype type,
                                  std::initializer_list<std::int64_t> shape);

}  // namespace skein::test
