#pragma once
#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/gpu/runtime/runtime.hpp"

namespace skein::kernels::gpu {

/// NVIDIA's matrix library, opened when it is asked for and never linked: its 500 MB are not on every machine. What was
/// opened stays to the end of the process.
class cublas_lt {
 public:
  /// $SKEIN_CUBLASLT names the file; else the loader looks for libcublasLt.so.13, then /usr/local/cuda/lib64 is tried.
  /// Errors: unavailable, with what the loader or the library said.
  [[nodiscard]] static result<cublas_lt> open();

  [[nodiscard]] std::string name() const;  ///< "cuBLASLt 130100"

 private:
  friend class half_product;
  struct functions;
  explicit cublas_lt(std::shared_ptr<const functions> f) : f_(std::move(f)) {}
  std::shared_ptr<const functions> f_;  // shared with what multiplies
};

/// The product of two square fp16 matrices with fp32 sums, by any of the algorithms that the library proposes for it.
class half_product {
 public:
  /// Throws device_failure when the library has no way to do it.
  half_product(const cublas_lt& library, std::uint32_t size, std::size_t workspace_bytes);
  ~half_product();
  half_product(const half_product&) = delete;  // owns handles of the library
  half_product& operator=(const half_product&) = delete;

  [[nodiscard]] std::size_t algorithms() const { return proposed_.size(); }
  /// out = transpose(a) * b, all on the device.
  [[nodiscard]] result<void> queue(std::size_t algorithm, const void* a, const void* b, void* out, void* workspace,
                                   stream_handle in) const;

 private:
  void destroy() const;

  const std::shared_ptr<const cublas_lt::functions> f_;
  const std::size_t workspace_bytes_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t square_ = nullptr;
  std::vector<cublasLtMatmulHeuristicResult_t> proposed_;
};

}  // namespace skein::kernels::gpu
