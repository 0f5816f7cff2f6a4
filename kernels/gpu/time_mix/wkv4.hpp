#pragma once
#include "kernels/gpu/runtime/runtime.hpp"
#include "kernels/gpu/types/batch.hpp"
#include "kernels/gpu/types/elements.hpp"
#include "kernels/gpu/types/gemm_rows.hpp"

namespace skein::kernels::gpu {

/// All of a layer's time mixing of RWKV-4 between its input and output GEMMs, channel by channel and token by token:
/// wkv4 of kernels/ops.hpp, then y = sigmoid(r) * y
/// r v   : rows of the element type, or partial sums
/// k     : rows of fp32, or partial sums: it goes into exponents
/// y     : [rows, width] of the element type;  vectors : [width] fp32
/// state : of slot 0 and this layer, [3, width] fp32 (aa, bb, pp), updated in place; slots are `slot_bytes` apart
/// Arithmetic is fp32.
struct wkv4_parameters {
  gemm_rows r, k, v;
  void* y = nullptr;
  const float *decay = nullptr, *bonus = nullptr;
  void* state = nullptr;
  std::size_t slot_bytes = 0;
  std::uint32_t width = 0;
};
[[nodiscard]] result<void> wkv4(stream_handle in, const device_batch& rows, element type, const wkv4_parameters& of);

}  // namespace skein::kernels::gpu
