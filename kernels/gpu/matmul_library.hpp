#pragma once
#include <functional>
#include <memory>
#include <string>

#include "kernels/gpu/matmul.hpp"
#include "kernels/gpu/runtime/memory.hpp"

namespace skein::kernels::gpu {

/// What of a product decides how a library goes about it. Matrices are those of `product`.
struct library_shape {
  element type = element::f16;      ///< of matrix and inputs
  element out_type = element::f16;  ///< what the fp32 sums are rounded to
  bool adds = false;                ///< out += sum
  std::uint32_t outputs = 0, inputs = 0, in_stride = 0, out_stride = 0;
};

/// A product as a library does it.
class library_product {
 public:
  virtual ~library_product() = default;
  /// Ways to do it, the most promising first; at least one.
  [[nodiscard]] virtual std::size_t algorithms() const = 0;
  /// Queues the bare product of `rows` rows, no more than it was prepared for; may be recorded in a graph once it has
  /// run. `workspace` is that of matmul_library::prepare. One thread at a time.
  /// Errors: unsupported (that algorithm for so many rows), unavailable; then nothing is queued.
  [[nodiscard]] virtual result<void> queue(stream_handle in, std::size_t algorithm, const product& p,
                                           std::uint32_t rows, const device_buffer<std::byte>& workspace) = 0;
};

/// Somebody else's matrix product. Its bits may hang on the number of rows; sums are fp32 to the end, but what is
/// beyond an fp16 becomes an infinity.
class matmul_library {
 public:
  virtual ~matmul_library() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  /// Errors: unsupported.
  [[nodiscard]] virtual result<std::unique_ptr<library_product>> prepare(const library_shape& shape, std::uint32_t rows,
                                                                         std::size_t workspace_bytes) = 0;
};

/// NVIDIA's cuBLASLt, opened now and never linked: its 500 MB are not on every machine. $SKEIN_CUBLASLT names the file;
/// else the loader looks for libcublasLt.so.13, then /usr/local/cuda/lib64 is tried. For the device in use.
/// Errors: unavailable, with what the loader or the library said; unsupported by another runtime than CUDA.
[[nodiscard]] result<std::unique_ptr<matmul_library>> open_matmul_library();
using library_opener = std::function<result<std::unique_ptr<matmul_library>>()>;

}  // namespace skein::kernels::gpu
