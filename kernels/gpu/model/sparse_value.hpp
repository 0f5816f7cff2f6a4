#pragma once
#include <span>
#include <vector>

#include "kernels/gpu/model/device_weights.hpp"
#include "kernels/gpu/runtime/memory.hpp"

namespace skein::kernels::gpu {

/// The GEMM that ends channel mixing, for rows in which most inputs are zero, as relu squared leaves them: it reads
/// only the weights of the other inputs. It needs a transposed copy of the matrices, so it takes memory, and its sums
/// have another order than those of matmul. That order is fixed: inputs ascend within segments of 512, and segments are
/// added in order, so the results are batch-invariant.
class sparse_values {
 public:
  /// With more rows, their nonzero inputs together would select most of the matrix.
  static constexpr std::uint32_t rows_max = 2;

  /// Allocates the memory and transposes the value matrices of all layers, whose weights must be on the device or
  /// queued to be copied in that stream. Throws device_failure.
  sparse_values(std::span<const device_layer> layers, element type, stream_handle in);

  /// x[t, o] += sum over i of ffn_value[o, i] * hidden[t, i]
  /// For *row_count rows, a device address; `rows_room`, at most rows_max, is the number that blocks are launched for.
  /// hidden : [rows, padded(inputs)] of the element type;  x : [rows, outputs] fp32
  [[nodiscard]] result<void> add(stream_handle in, std::uint32_t layer, const void* hidden,
                                 const std::uint32_t* row_count, std::uint32_t rows_room, float* x) const;

  [[nodiscard]] std::size_t bytes() const;
  /// What bytes() will return, without constructing an object.
  [[nodiscard]] static std::size_t planned_bytes(std::uint32_t layers, std::uint32_t outputs, std::uint32_t inputs,
                                                 element type);

 private:
  const element type_;
  const std::uint32_t outputs_, inputs_;
  std::vector<device_buffer<std::byte>> turned_;  // by layer: [padded(inputs), padded(outputs)]
  const device_buffer<float> parts_;              // [rows_max, segments, padded(outputs)]
  const device_buffer<std::uint32_t> finished_;   // [rows_max, column tiles]
};

}  // namespace skein::kernels::gpu
