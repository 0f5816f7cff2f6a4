#pragma once
#include "kernels/gpu/gemm/matmul.hpp"

namespace skein::kernels::gpu {

inline constexpr std::uint32_t rounded_inputs_max = 65536;  ///< of a row: a block keeps it in registers

/// Rounds the inputs of products to e4m3, each row with the smallest power of two as scale for which no number is
/// beyond the type's range; see gemm::rounded. Those of products that do not round theirs stay. Products that share
/// `rounded` have the same inputs, which are rounded once. Up to eight inputs; *row_count as for matmul(). A row with
/// NaN or infinity gives NaN.
[[nodiscard]] result<void> round_rows(stream_handle in, element type, std::span<const gemm> gemms,
                                      const std::uint32_t* row_count, std::uint32_t rows_room);

}  // namespace skein::kernels::gpu
