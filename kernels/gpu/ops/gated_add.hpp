#pragma once
#include "kernels/gpu/runtime/runtime.hpp"
#include "kernels/gpu/types/batch.hpp"
#include "kernels/gpu/types/elements.hpp"
#include "kernels/gpu/types/gemm_rows.hpp"

namespace skein::kernels::gpu {

/// x[t] += gate[t] * value[t]
/// x    : [rows, width] fp32; width is a multiple of 64
/// gate : [rows, gate_stride] fp32;  value : rows of fp32, or partial sums
[[nodiscard]] result<void> gated_add(stream_handle in, const device_batch& rows, const float* gate,
                                     std::uint32_t gate_stride, const gemm_rows& value, float* x, std::uint32_t width);

}  // namespace skein::kernels::gpu
