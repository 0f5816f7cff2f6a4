#pragma once
#include "kernels/gpu/gemm/matmul.hpp"

namespace skein::kernels::gpu {

inline constexpr std::uint32_t few_rows_max = 32;

/// Has the contract and the bits of matmul_hopper, for up to few_rows_max rows.
[[nodiscard]] result<void> matmul_few_rows(stream_handle in, element type, std::span<const gemm> gemms,
                                           std::uint32_t rows_room);

}  // namespace skein::kernels::gpu
