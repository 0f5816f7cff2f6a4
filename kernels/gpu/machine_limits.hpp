#pragma once
#include <string>

#include "base/result.hpp"

namespace skein::kernels::gpu {

/// What a device can do at most, by measurement: the scale for the figures of a benchmark.
struct machine_limits {
  double read_bytes_per_s = 0;   ///< streaming reads of memory that no cache holds
  double matrix_flop_per_s = 0;  ///< fp16 products with fp32 sums; 0: not measured
  std::string matrix_by;         ///< what multiplied, or why nothing did
};

/// Measures both; takes a second, and 4 to 8 GiB of device memory meanwhile. CUDA only.
/// Errors: unsupported by another runtime, unavailable (device, memory).
[[nodiscard]] result<machine_limits> measure_limits(int device);

}  // namespace skein::kernels::gpu
