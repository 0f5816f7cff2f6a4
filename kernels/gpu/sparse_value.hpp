#pragma once
#include <span>
#include <vector>

#include "kernels/gpu/device_weights.hpp"
#include "kernels/gpu/runtime/memory.hpp"

namespace skein::kernels::gpu {

/// The product that ends channel mixing, for rows of which most inputs are zeros, as relu squared leaves them: only the
/// weights of the others are read. That needs the matrices once more, turned round, and so memory; and the sum has
/// another order than matmul's. Its own order is fixed: inputs ascend within segments of 512, and segments follow each
/// other; no bit hangs on the other rows.
class sparse_values {
 public:
  /// With more rows their inputs that are not zero come to read most of the matrix.
  static constexpr std::uint32_t rows_max = 2;

  /// Takes the memory and turns the value matrices of all layers, whose weights must be on the device or under way in
  /// that stream. Throws device_failure.
  sparse_values(std::span<const device_layer> layers, element type, stream_handle in);

  /// x[t, o] += sum over i of ffn_value[o, i] * hidden[t, i], for *row_count rows, a device address; `rows_room`, at
  /// most rows_max, is what blocks are launched for. hidden : [rows, padded(inputs)] of the element type;  x : [rows,
  /// outputs] fp32
  [[nodiscard]] result<void> add(stream_handle in, std::uint32_t layer, const void* hidden,
                                 const std::uint32_t* row_count, std::uint32_t rows_room, float* x) const;

  [[nodiscard]] std::size_t bytes() const;
  /// The same before one is made, for so many layers.
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
