#pragma once
#include <cstddef>

#include "kernels/cpu/aligned_buffer.hpp"
#include "kernels/cpu/matmul.hpp"

namespace skein::kernels::cpu {

/// Activations [rows, width]. The row stride is an odd number of cache lines: a power of two would map the rows of a
/// tile to one set of the L1 cache.
class row_buffer {
 public:
  row_buffer(std::size_t rows, std::size_t width) : stride_(stride_for(width)), values_(rows * stride_) {}
  [[nodiscard]] float* operator[](std::size_t r) const { return values_.data() + r * stride_; }
  [[nodiscard]] std::size_t stride() const { return stride_; }
  [[nodiscard]] std::size_t bytes() const { return values_.bytes(); }

 private:
  friend class row_room;
  explicit row_buffer(std::size_t stride) : stride_(stride) {}
  static std::size_t stride_for(std::size_t width) {
    return (width + 15) / 16 * 16 + ((width + 15) / 16 % 2 == 0 ? 16 : 0);
  }

  std::size_t stride_;
  aligned_buffer<float> values_;
};

/// Makes the buffers of a model and counts their memory, or only counts it.
class row_room {
 public:
  row_room(std::size_t rows, bool only_count) : rows_(rows), only_count_(only_count) {}

  [[nodiscard]] row_buffer make(std::size_t width) { return make(rows_, width); }
  [[nodiscard]] row_buffer make(std::size_t rows, std::size_t width) {
    bytes_ += allocated_bytes(rows * row_buffer::stride_for(width) * sizeof(float));
    return only_count_ ? row_buffer(row_buffer::stride_for(width)) : row_buffer(rows, width);
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::size_t rows_;
  bool only_count_;
  std::size_t bytes_ = 0;
};

[[nodiscard]] inline gemm make_gemm(const packed_matrix& matrix, const row_buffer& in, const row_buffer& out,
                                    epilogue how = epilogue::store) {
  return {&matrix, in[0], in.stride(), out[0], out.stride(), how};
}

}  // namespace skein::kernels::cpu
