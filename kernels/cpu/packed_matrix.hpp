#pragma once
#include <cstddef>

#include "base/tensor.hpp"
#include "kernels/cpu/aligned_buffer.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/weights/weight_format.hpp"

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
/// Quantised formats have lines of 64 bytes for several inputs, four times 16 bytes b with the outputs 4b to 4b + 3 and
/// then those plus 16, each output with two inputs side by side, as the multiplication of pairs takes them:
///   int8   two inputs   a code a byte, plus 128
///   int4   four inputs  the first two in the low, the other two in the high halves of bytes; plus 8
///   nf4    four inputs  as int4
///   fp8    two inputs   a code a byte; 32 times two bytes in output order, also the scales
/// Each group of inputs begins with a line of 32 scales, as 16 dwords like a line of bf16: bf16, or fp16 if codes and
/// scales are those of a GGUF file or of a conversion of one.
namespace skein::kernels::cpu {

inline constexpr std::size_t panel_outputs = 32;
inline constexpr std::size_t scale_line_bytes = 2 * panel_outputs;
inline constexpr std::size_t coded_line_bytes = 2 * panel_outputs;

/// The bytes of one input of a panel.
[[nodiscard]] constexpr std::size_t line_bytes(weight_element element) {
  switch (element) {
    case weight_element::f32: return 4 * panel_outputs;
    case weight_element::bf16:
    case weight_element::f16: return 2 * panel_outputs;
    case weight_element::int8:
    case weight_element::fp8: return panel_outputs;
    case weight_element::int4:
    case weight_element::nf4: break;
  }
  return panel_outputs / 2;
}

class packed_matrix {
 public:
  packed_matrix() = default;  ///< no outputs, no inputs

  /// Copies a two-dimensional view, rounding to the format, with all threads of the pool. `transposed` views have the
  /// shape (inputs, outputs). Codes and scales of a matrix that its file stores in the same format are the file's.
  packed_matrix(const tensor_view& view, bool transposed, weight_format format, thread_pool& pool);

  [[nodiscard]] weight_format format() const { return format_; }
  /// False if a finite element of the view became infinite in the format.
  [[nodiscard]] bool fits() const { return fits_; }
  [[nodiscard]] bool half_scales() const { return half_scales_; }
  [[nodiscard]] std::size_t outputs() const { return outputs_; }
  [[nodiscard]] std::size_t inputs() const { return inputs_; }
  [[nodiscard]] std::size_t panels() const { return (outputs_ + panel_outputs - 1) / panel_outputs; }
  /// Where the lines of an input begin; in a quantised format those of the first of a group, with the scales.
  [[nodiscard]] std::size_t offset_of(std::size_t input) const {
    return input * line_bytes(format_.element) + (format_.quantised() ? input / format_.group * scale_line_bytes : 0);
  }
  [[nodiscard]] std::size_t panel_bytes() const {
    if (!format_.quantised()) return inputs_ * line_bytes(format_.element);
    const std::size_t groups = (inputs_ + format_.group - 1) / format_.group;
    return (inputs_ + 3) / 4 * 4 * line_bytes(format_.element) + groups * scale_line_bytes;
  }
  [[nodiscard]] const std::byte* panel(std::size_t p) const { return memory_.data() + p * panel_bytes(); }
  [[nodiscard]] std::size_t bytes() const { return panels() * panel_bytes(); }
  /// bytes() of a matrix made from `view`.
  [[nodiscard]] static std::size_t planned_bytes(const tensor_view& view, bool transposed, weight_format format) {
    packed_matrix of;
    of.format_ = format;
    of.outputs_ = static_cast<std::size_t>(view.shape[transposed ? 1 : 0]);
    of.inputs_ = static_cast<std::size_t>(view.shape[transposed ? 0 : 1]);
    return of.bytes();
  }

 private:
  bool pack_panel(const tensor_view& view, bool transposed, std::size_t panel);
  void quantise_panel(const tensor_view& view, bool transposed, std::size_t panel);

  weight_format format_;
  bool half_scales_ = false, fits_ = true;
  std::size_t outputs_ = 0, inputs_ = 0;
  aligned_buffer<std::byte> memory_;
};

}  // namespace skein::kernels::cpu
