#pragma once
#include "kernels/gpu/matmul.hpp"

namespace skein::kernels::gpu {

/// The finish of a product whose bare sums lie in `out` already, in place: for who multiplies and knows no finish.
/// out[t, o] = finish(out[t, o]) for t < rows, o < outputs; sigmoid, tanh or relu_squared, in fp32, rounded to `type`
/// Outputs, stride and address are multiples of 16 bytes (checked).
[[nodiscard]] result<void> finish_rows(stream_handle in, element type, const product& p, std::uint32_t rows);

}  // namespace skein::kernels::gpu
