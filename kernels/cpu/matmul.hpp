#pragma once
#include <cstddef>
#include <span>

#include "kernels/cpu/aligned_buffer.hpp"
#include "kernels/cpu/packed_matrix.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace skein::kernels::cpu {

/// What becomes of a finished sum.
enum class finish : std::uint8_t {
  store,         ///< out = sum
  add,           ///< out += sum
  tanh,          ///< out = tanh(sum)
  sigmoid,       ///< out = sigmoid(sum)
  relu_squared,  ///< out = max(sum, 0)^2
};

/// out[t, o] = finish(sum over i of matrix[o, i] * in[t, i]), fp32.
struct product {
  const packed_matrix* matrix;
  const float* in;         ///< [rows, inputs]
  std::size_t in_stride;   ///< floats from row to row; a multiple of 4 KiB makes rows fight over one set of the L1
  float* out;              ///< [rows, outputs]
  std::size_t out_stride;  ///< floats from row to row
  finish how = finish::store;
};

/// Products of one set of rows, computed together: one phase of the pool for all of them.
///
/// Every sum runs over the inputs in order, by fused multiply-add into one fp32 accumulator. Rows, panels, threads and
/// blocks only decide when that happens: a row's result is the same bits alone and in any company.
class matmul {
 public:
  explicit matmul(thread_pool& pool);
  /// At most 8 products; an output belongs to one product and is no product's input.
  void operator()(std::size_t rows, std::span<const product> products);
  [[nodiscard]] std::size_t scratch_bytes() const { return sums_.bytes(); }
  /// The same before one is made, for so many threads.
  [[nodiscard]] static std::size_t planned_bytes(std::uint32_t threads);

 private:
  thread_pool& pool_;
  aligned_buffer<float> sums_;  ///< per thread: the sums of one task, carried from block to block of inputs
};

}  // namespace skein::kernels::cpu
