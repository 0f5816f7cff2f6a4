#pragma once
#include "kernels/gpu/gemm/matmul.hpp"

namespace skein::kernels::gpu {

/// Applies the activation of an epilogue in place to the sums in `out`, for GEMM libraries that do not have it:
/// out[t, o] = activation(out[t, o]) for t < rows, o < outputs, of output_type(p.how, type); `how` has an activation
/// Outputs, stride and address are multiples of 16 bytes (checked).
[[nodiscard]] result<void> epilogue_rows(stream_handle in, element type, const gemm& p, std::uint32_t rows);

}  // namespace skein::kernels::gpu
