#pragma once
#include "kernels/gpu/gemm/matmul.hpp"

namespace skein::kernels::gpu {

/// Has the contract of matmul(), on the tensor cores of sm_90a, for matrices of fp16 and bf16, and for those of fp8
/// that round their inputs, whose `rounded` the caller has filled (round_rows.hpp). Its bits differ: one instruction
/// adds 16 products at once, and instructions follow each other in ascending order of inputs. Rows from *row_count up
/// to `rows_room` may be read and written, so every buffer has space for them; they do not affect other rows.
[[nodiscard]] result<void> matmul_hopper(stream_handle in, element type, std::span<const gemm> gemms,
                                         const std::uint32_t* row_count, std::uint32_t rows_room);

/// Whether sm_90a is among the targets of the build.
[[nodiscard]] bool hopper_is_built();

/// As matmul_functions::splits: whether the launch takes less time with tiles for each segment, and with the traffic of
/// their partial sums, than with blocks that sum all segments.
[[nodiscard]] bool hopper_splits(std::span<const gemm> gemms, std::uint32_t rows_room);

/// Whether pairs of blocks share the tiles of that launch, half of the segments each. They do if one block per tile
/// would leave SMs idle or require narrow tiles, and if exchanging the sums takes less time than that.
[[nodiscard]] bool hopper_pairs(std::span<const gemm> gemms, std::uint32_t rows_room, std::uint32_t sm_count);

/// The blocks of a launch of whole products, with more than 64 rows.
[[nodiscard]] std::uint32_t hopper_blocks(std::span<const gemm> gemms, std::uint32_t rows_room, std::uint32_t sm_count);

}  // namespace skein::kernels::gpu
