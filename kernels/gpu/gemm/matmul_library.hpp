#pragma once
#include <functional>
#include <memory>
#include <string>

#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/gpu/runtime/memory.hpp"

namespace skein::kernels::gpu {

/// The properties of a GEMM by which a library chooses its algorithm. Matrices are laid out as in `product`.
struct library_shape {
  element type = element::f16;      ///< of matrix and inputs
  element out_type = element::f16;  ///< to which the fp32 sums are rounded
  bool adds = false;                ///< out += sum
  std::uint32_t outputs = 0, inputs = 0, in_stride = 0, out_stride = 0;
};

/// A GEMM that a library has prepared.
class library_gemm {
 public:
  virtual ~library_gemm() = default;
  /// The number of algorithms for it, the most promising first; at least one.
  [[nodiscard]] virtual std::size_t algorithms() const = 0;
  /// Queues the GEMM without epilogue for `rows` rows, at most the number that it was prepared for. It may be captured
  /// in a graph once it has run. `workspace` has the size given to matmul_library::prepare. One thread at a time.
  /// Errors: unsupported (that algorithm for this number of rows), unavailable; then nothing is queued.
  [[nodiscard]] virtual result<void> queue(stream_handle in, std::size_t algorithm, const gemm& p, std::uint32_t rows,
                                           const device_buffer<std::byte>& workspace) = 0;
};

/// A third-party GEMM library. Its bits may depend on the number of rows. Sums are fp32 until the end, but values
/// beyond the range of fp16 become infinities.
class matmul_library {
 public:
  virtual ~matmul_library() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  /// Errors: unsupported.
  [[nodiscard]] virtual result<std::unique_ptr<library_gemm>> prepare(const library_shape& shape, std::uint32_t rows,
                                                                      std::size_t workspace_bytes) = 0;
};

/// NVIDIA's cuBLASLt, opened at run time and never linked, because its 500 MB are not on every machine. $SKEIN_CUBLASLT
/// names the file; otherwise the loader searches for libcublasLt.so.13, then /usr/local/cuda/lib64 is tried. For the
/// current device.
/// Errors: unavailable, with the message of the loader or the library; unsupported (runtimes other than CUDA).
[[nodiscard]] result<std::unique_ptr<matmul_library>> open_matmul_library();
using library_opener = std::function<result<std::unique_ptr<matmul_library>>()>;

}  // namespace skein::kernels::gpu
