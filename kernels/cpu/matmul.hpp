#pragma once
#include <cstddef>
#include <span>

#include "kernels/cpu/aligned_buffer.hpp"
#include "kernels/cpu/packed_matrix.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace skein::kernels::cpu {

/// The epilogue of a GEMM, applied to each sum.
enum class epilogue : std::uint8_t {
  store,         ///< out = sum
  add,           ///< out += sum
  tanh,          ///< out = tanh(sum)
  sigmoid,       ///< out = sigmoid(sum)
  silu,          ///< out = sum * sigmoid(sum)
  relu_squared,  ///< out = max(sum, 0)^2
  add_gated,     ///< out += gate * sum
};

/// out[t, o] = finish(sum over i of matrix[o, i] * in[t, i]), fp32.
struct gemm {
  const packed_matrix* matrix;
  const float* in;         ///< [rows, inputs]
  std::size_t in_stride;   ///< floats from row to row; with a multiple of 4 KiB, rows compete for one set of the L1
  float* out;              ///< [rows, outputs]
  std::size_t out_stride;  ///< floats from row to row
  epilogue how = epilogue::store;
  const float* gate = nullptr;  ///< of add_gated: [rows, outputs]
  std::size_t gate_stride = 0;
};

/// GEMMs over one set of rows, computed together in one phase of the pool.
///
/// Every sum runs over the inputs in order, by fused multiply-add into one fp32 accumulator. Rows, panels, threads and
/// blocks only determine when that happens, so a row's result is bitwise independent of batch composition.
class matmul {
 public:
  explicit matmul(thread_pool& pool);
  /// At most 8 GEMMs, whose outputs overlap neither each other nor any input.
  void operator()(std::size_t rows, std::span<const gemm> gemms);
  [[nodiscard]] std::size_t scratch_bytes() const { return sums_.bytes(); }
  /// scratch_bytes() for a pool with this number of threads.
  [[nodiscard]] static std::size_t planned_bytes(std::uint32_t threads);

 private:
  thread_pool& pool_;
  aligned_buffer<float> sums_;  ///< per thread: the sums of one task, carried from one block of inputs to the next
};

}  // namespace skein::kernels::cpu
