#include "kernels/cpu/model/packing.hpp"

namespace skein::kernels::cpu {

void packer::pack(const tensor_view& view, bool, aligned_buffer<float>& to) {
  to = aligned_buffer<float>(static_cast<std::size_t>(view.elements()));
  copy_to_f32(view, to.all());
  count(view, allocated_bytes(to.bytes()));
}

void packer::pack(const tensor_view& view, bool, embedding& to) {
  to = embedding(view, format_, pool_);
  count(view, allocated_bytes(to.bytes()));
}

void packer::pack(const tensor_view& view, bool transposed, packed_matrix& to) {
  to = packed_matrix(view, transposed, format_, pool_);
  count(view, allocated_bytes(to.bytes()));
}

void packer::pack(const tensor_view& view, bool transposed, std::vector<packed_matrix>& to) {
  to.resize(static_cast<std::size_t>(view.shape[0]));
  for (std::size_t i = 0; i < to.size(); ++i) pack(matrix_of(view, i), transposed, to[i]);
}

void packer::count(const tensor_view& view, std::size_t bytes) {
  bytes_ += bytes;
  done_ += source_bytes(view);
  if (progress_.report) progress_.report(progress_.context, done_, total_);
}

std::size_t planned_bytes(const tensor_view& view, bool, matrix_format, const aligned_buffer<float>*) {
  return allocated_bytes(static_cast<std::size_t>(view.elements()) * sizeof(float));
}

std::size_t planned_bytes(const tensor_view& view, bool, matrix_format format, const embedding*) {
  return allocated_bytes(embedding::planned_bytes(view, format));
}

std::size_t planned_bytes(const tensor_view& view, bool transposed, matrix_format format, const packed_matrix*) {
  return allocated_bytes(packed_matrix::planned_bytes(view, transposed, format));
}

std::size_t planned_bytes(const tensor_view& view, bool transposed, matrix_format format,
                          const std::vector<packed_matrix>*) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.shape[0]); ++i)
    bytes += allocated_bytes(packed_matrix::planned_bytes(matrix_of(view, i), transposed, format));
  return bytes;
}

}  // namespace skein::kernels::cpu
