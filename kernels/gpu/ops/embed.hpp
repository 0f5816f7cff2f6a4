#pragma once
#include "kernels/gpu/runtime/runtime.hpp"
#include "kernels/gpu/types/batch.hpp"
#include "kernels/gpu/types/elements.hpp"
#include "kernels/gpu/types/gemm_rows.hpp"

namespace skein::kernels::gpu {

inline constexpr std::uint32_t width_max = 6144;  ///< the widest row that a block can hold in registers

/// Weight and bias of a layer norm, [C] each.
struct norm_weights {
  const float* weight = nullptr;
  const float* bias = nullptr;
};

/// What a layer norm takes from a row: norm = (x - mean) * scale * weight + bias.
struct row_statistics {
  float mean, scale;
};

/// The residual stream, [rows, C] fp32, and the partial sums of the preceding GEMM that are yet to be added to it (0
/// parts: nothing to add), times a gate if there is one.
struct residual {
  const float* x = nullptr;
  gemm_rows added;
  const float* gate = nullptr;  ///< [rows, gate_stride]; not with added.adds_each
  std::uint32_t gate_stride = 0;
};

/// x[t] = layer_norm(table[token[t]], ln0)
/// table : [V, table_stride] of `type`;  x : [rows, width] fp32
[[nodiscard]] result<void> embed(stream_handle in, const device_batch& rows, element type, const void* table,
                                 std::uint32_t table_stride, norm_weights ln0, float* x, std::uint32_t width);

/// out[i] = layer_norm(x[wanted[i]] + added[wanted[i]], ln_out), the input of the head
/// out : [wanted, out_stride] of `type`
[[nodiscard]] result<void> norm_wanted(stream_handle in, const device_batch& rows, element type, const residual& from,
                                       norm_weights ln_out, void* out, std::uint32_t out_stride, std::uint32_t width);

}  // namespace skein::kernels::gpu
