#pragma once
#include "kernels/gpu/matmul.hpp"

namespace skein::kernels::gpu {

/// The contract of matmul() on the tensor cores of sm_90a, for fp16 and bf16. The bits are its own: an instruction adds
/// 16 products at once, and those follow each other in ascending order. Rows beyond *row_count up to `rows_room` may be
/// read and written, so every buffer has room for them; they touch no others.
[[nodiscard]] result<void> matmul_hopper(stream_handle in, element type, std::span<const product> products,
                                         const std::uint32_t* row_count, std::uint32_t rows_room);

/// As matmul_functions::splits: as long as there would be too few blocks if each summed all segments.
[[nodiscard]] bool hopper_splits(std::span<const product> products, std::uint32_t rows_room);

/// Whether pairs of blocks share that launch's tiles, half of the segments each: where one block a tile would leave
/// multiprocessors idle or have to take narrow tiles, and the exchange of sums takes less time than that.
[[nodiscard]] bool hopper_pairs(std::span<const product> products, std::uint32_t rows_room,
                                std::uint32_t multiprocessors);

}  // namespace skein::kernels::gpu
