#pragma once
#include <cstddef>

#include "base/tensor.hpp"
#include "kernels/cpu/aligned_buffer.hpp"
#include "kernels/cpu/matrix_format.hpp"
#include "kernels/cpu/thread_pool.hpp"

/// The storage format of a matrix (outputs, inputs) on the CPU. One layout serves every number of rows, from one token
/// to a whole prefill, so that the order of each sum never depends on the batch.
///
/// The outputs are divided into panels of 32 (the last one padded with zeros). A panel holds, for each input in order,
/// one line with the weights of its 32 outputs: a GEMM walks down a panel with 32 sums in registers and reads memory as
/// one stream. Lines by format:
///   f32   128 bytes  32 floats in output order
///   bf16   64 bytes  16 dwords; dword j has output j in its low and output j + 16 in its high half, since a shift and
///                    a mask widen that to two vectors in output order
///   f16    64 bytes  32 halves in output order
/// A format with block scales would append them to each panel; panel_bytes() is the only place that knows the size.
namespace skein::kernels::cpu {

inline constexpr std::size_t panel_outputs = 32;

[[nodiscard]] constexpr std::size_t line_bytes(matrix_format format) { return panel_outputs * element_bytes(format); }

class packed_matrix {
 public:
  packed_matrix() = default;  ///< no outputs, no inputs

  /// Copies a two-dimensional view, rounding to the format, with all threads of the pool. `transposed` views have the
  /// shape (inputs, outputs).
  packed_matrix(const tensor_view& view, bool transposed, matrix_format format, thread_pool& pool);

  [[nodiscard]] matrix_format format() const { return format_; }
  [[nodiscard]] std::size_t outputs() const { return outputs_; }
  [[nodiscard]] std::size_t inputs() const { return inputs_; }
  [[nodiscard]] std::size_t panels() const { return (outputs_ + panel_outputs - 1) / panel_outputs; }
  [[nodiscard]] std::size_t panel_bytes() const { return inputs_ * line_bytes(format_); }
  [[nodiscard]] const std::byte* panel(std::size_t p) const { return memory_.data() + p * panel_bytes(); }
  [[nodiscard]] std::size_t bytes() const { return panels() * panel_bytes(); }
  /// bytes() of a matrix made from `view`.
  [[nodiscard]] static std::size_t planned_bytes(const tensor_view& view, bool transposed, matrix_format format) {
    packed_matrix of;
    of.format_ = format;
    of.outputs_ = static_cast<std::size_t>(view.shape[transposed ? 1 : 0]);
    of.inputs_ = static_cast<std::size_t>(view.shape[transposed ? 0 : 1]);
    return of.bytes();
  }

 private:
  matrix_format format_ = matrix_format::f32;
  std::size_t outputs_ = 0, inputs_ = 0;
  aligned_buffer<std::byte> memory_;
};

}  // namespace skein::kernels::cpu
