#pragma once
#include "kernels/gpu/gemm/matmul.hpp"

namespace skein::kernels::gpu {

/// Applies an epilogue in place to the sums in `out`, for GEMM libraries that do not have it:
/// out[t, o] = finish(out[t, o]) for t < rows, o < outputs; sigmoid, tanh or relu_squared, in fp32, rounded to `type`
/// Outputs, stride and address are multiples of 16 bytes (checked).
[[nodiscard]] result<void> epilogue_rows(stream_handle in, element type, const gemm& p, std::uint32_t rows);

}  // namespace skein::kernels::gpu
