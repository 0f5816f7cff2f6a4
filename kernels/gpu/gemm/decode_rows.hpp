#pragma once
#include "kernels/gpu/gemm/matmul.hpp"

namespace skein::kernels::gpu {

/// Writes quantised matrices as the rows of `type` that device_matrix describes, with the numbers that all kernels
/// decode. Up to eight.
struct decoding {
  device_matrix from;
  void* to;
};
[[nodiscard]] result<void> decode_rows(stream_handle in, element type, std::span<const decoding> matrices);

}  // namespace skein::kernels::gpu
