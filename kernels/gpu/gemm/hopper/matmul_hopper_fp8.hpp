#pragma once
#include "kernels/gpu/gemm/matmul.hpp"

namespace skein::kernels::gpu {

enum class takes;
struct launch_place;

/// launch_hopper_tiles of matmul_hopper.cuh for launches with products that round their inputs, which have been
/// rounded.
[[nodiscard]] result<void> launch_fp8_tiles(takes work, std::uint32_t columns, stream_handle in, element type,
                                            std::span<const gemm> gemms, std::uint32_t rows, const launch_place& place);

/// The same for up to few_rows_max rows.
[[nodiscard]] result<void> matmul_few_rows_fp8(stream_handle in, element type, std::span<const gemm> gemms,
                                               std::uint32_t rows_room);

}  // namespace skein::kernels::gpu
