#pragma once
#include <string>

#include "base/result.hpp"

namespace skein::kernels::gpu {

/// Measured peak rates of a device, to which benchmarks compare their figures.
struct machine_limits {
  double read_bytes_per_s = 0;   ///< streaming reads of device memory that miss all caches
  double matrix_flop_per_s = 0;  ///< fp16 GEMM with fp32 accumulation; 0: not measured
  std::string matrix_by;         ///< the GEMM library that was measured, or why none was
};

/// Measures both rates. Takes about a second, and 4 to 8 GiB of device memory meanwhile. CUDA only.
/// Errors: unsupported (runtimes other than CUDA), unavailable (device, memory).
[[nodiscard]] result<machine_limits> measure_limits(int device);

}  // namespace skein::kernels::gpu
