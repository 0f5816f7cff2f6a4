#include "kernels/cpu/model/packing.hpp"

#include "base/check.hpp"

namespace skein::kernels::cpu {
namespace {

/// Of a format that is not quantised, as those of embeddings.
matrix_format floating_format(weight_format format) {
  switch (format.element) {
    case weight_element::f32: return matrix_format::f32;
    case weight_element::bf16: return matrix_format::bf16;
    case weight_element::f16: return matrix_format::f16;
    default: break;
  }
  check(false, "a quantised embedding");
  return matrix_format::f32;
}

}  // namespace

void packer::pack(const tensor_view& view, bool, weight_format, aligned_buffer<float>& to) {
  to = aligned_buffer<float>(static_cast<std::size_t>(view.elements()));
  copy_to_f32(view, to.all());
  count(view, allocated_bytes(to.bytes()));
}

void packer::pack(const tensor_view& view, bool, weight_format format, embedding& to) {
  to = embedding(view, floating_format(format), pool_);
  require(to.fits(), to.format());
  count(view, allocated_bytes(to.bytes()));
}

void packer::pack(const tensor_view& view, bool transposed, weight_format format, packed_matrix& to) {
  to = packed_matrix(view, transposed, format, pool_);
  if (!format.quantised()) require(to.fits(), floating_format(format));
  count(view, allocated_bytes(to.bytes()));
}

void packer::pack(const tensor_view& view, bool transposed, weight_format format, std::vector<packed_matrix>& to) {
  to.resize(static_cast<std::size_t>(view.shape[0]));
  for (std::size_t i = 0; i < to.size(); ++i) pack(matrix_of(view, i), transposed, format, to[i]);
}

void packer::count(const tensor_view& view, std::size_t bytes) {
  bytes_ += bytes;
  done_ += source_bytes(view);
  if (progress_.report) progress_.report(progress_.context, done_, total_);
}

std::size_t planned_bytes(const tensor_view& view, bool, weight_format, const aligned_buffer<float>*) {
  return allocated_bytes(static_cast<std::size_t>(view.elements()) * sizeof(float));
}

std::size_t planned_bytes(const tensor_view& view, bool, weight_format format, const embedding*) {
  return allocated_bytes(embedding::planned_bytes(view, floating_format(format)));
}

std::size_t planned_bytes(const tensor_view& view, bool transposed, weight_format format, const packed_matrix*) {
  return allocated_bytes(packed_matrix::planned_bytes(view, transposed, format));
}

std::size_t planned_bytes(const tensor_view& view, bool transposed, weight_format format,
                          const std::vector<packed_matrix>*) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.shape[0]); ++i)
    bytes += allocated_bytes(packed_matrix::planned_bytes(matrix_of(view, i), transposed, format));
  return bytes;
}

}  // namespace skein::kernels::cpu
