#pragma once
#include <cstddef>

#include "kernels/cpu/aligned_buffer.hpp"
#include "kernels/cpu/matrix_format.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace skein::kernels::cpu {

/// The embedding table (vocabulary, width), stored row by row because rows are only looked up, never multiplied.
class embedding {
 public:
  embedding() = default;  ///< no rows

  /// Copies a two-dimensional view, rounding to the format, with all threads of the pool.
  embedding(const tensor_view& view, matrix_format format, thread_pool& pool);

  /// False if a finite element of the view became infinite.
  [[nodiscard]] bool fits() const { return fits_; }
  [[nodiscard]] matrix_format format() const { return format_; }
  /// Writes the row of a token to `out` as fp32, `width` floats.
  void read(std::size_t token, float* out) const;
  [[nodiscard]] std::size_t bytes() const { return memory_.size(); }
  /// bytes() of an embedding made from `view`.
  [[nodiscard]] static std::size_t planned_bytes(const tensor_view& view, matrix_format format) {
    return static_cast<std::size_t>(view.elements()) * element_bytes(format);
  }

 private:
  [[nodiscard]] std::size_t row_bytes() const { return width_ * element_bytes(format_); }

  matrix_format format_ = matrix_format::f32;
  bool fits_ = true;
  std::size_t width_ = 0;
  aligned_buffer<std::byte> memory_;
};

}  // namespace skein::kernels::cpu
