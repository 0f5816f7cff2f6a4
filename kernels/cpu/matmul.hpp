#pragma once
#include <cstddef>
#include <cstdint>
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

/// How products of integers are added up, with quantised weights other than fp8. The sums are the same.
enum class integer_products : std::uint8_t {
  best,      ///< by vpdpwssd on x86 CPUs that have it (AVX512_VNNI, AVX-VNNI)
  separate,  ///< by two instructions, as on other CPUs
};

/// GEMMs over one set of rows, computed together in one phase of the pool.
///
/// Every sum runs over the inputs in order, by fused multiply-add into one fp32 accumulator. With quantised weights it
/// runs over the sums of their groups: exact ones, of activations rounded to 16-bit integers (coded_rows.hpp), and with
/// fp8 weights fp32 sums. Rows, panels, threads and blocks only determine when that happens, so a row's result is
/// bitwise independent of batch composition.
class matmul {
 public:
  explicit matmul(thread_pool& pool, integer_products products = integer_products::best);
  /// At most 8 GEMMs, whose outputs overlap neither each other nor any input.
  void operator()(std::size_t rows, std::span<const gemm> gemms);
  /// Makes room for coded rows, of which GEMMs with quantised weights otherwise allocate more as they need it.
  void reserve_coded(std::size_t bytes);
  /// The largest room that rows with this number of inputs take.
  [[nodiscard]] static std::size_t coded_bytes(std::size_t rows, std::size_t inputs);
  [[nodiscard]] std::size_t scratch_bytes() const {
    return allocated_bytes(sums_.bytes()) + (coded_.size() == 0 ? 0 : allocated_bytes(coded_.bytes()));
  }
  /// scratch_bytes() for a pool with this number of threads.
  [[nodiscard]] static std::size_t planned_bytes(std::uint32_t threads);

 private:
  void code_inputs(std::size_t rows, std::span<const gemm> gemms, std::span<std::size_t> from);

  thread_pool& pool_;
  integer_products products_;
  aligned_buffer<std::byte> coded_;  ///< the inputs of GEMMs with quantised weights
  aligned_buffer<float> sums_;       ///< per thread: the sums of one task, carried from one block of inputs to the next
};

}  // namespace skein::kernels::cpu
