#pragma once
#include <optional>

#include "kernels/gpu/gemm/matmul.hpp"
#include "kernels/gpu/types/device_profile.hpp"

namespace skein::kernels::gpu {

/// Has the contract of matmul(), on tensor cores by mma.sync: fp16 from sm_75 on, bf16 from sm_80 on. Its bits differ
/// from those of other kernels: one instruction adds 16 products (8 on sm_75) at once, and instructions follow each
/// other in ascending order of inputs. Rows from *row_count up to `rows_room` may be read and written, so every buffer
/// has space for them; they do not affect other rows. destination::add_f32 adds the sum of each segment by itself, in
/// order.
[[nodiscard]] result<void> matmul_mma(stream_handle in, element type, std::span<const gemm> gemms,
                                      const std::uint32_t* row_count, std::uint32_t rows_room);

/// As matmul_functions::splits: true while there would be too few blocks if each block summed all segments.
[[nodiscard]] bool mma_splits(std::span<const gemm> gemms, std::uint32_t rows_room);

/// Tiles, outputs by rows: 64 x 8, 64 x 16, 64 x 32, 64 x 64, 64 x 128, 128 x 128, 128 x 192, 128 x 256.
enum class mma_shape : std::uint8_t { rows_8, rows_16, rows_32, small, flat, square, broad, wide };
/// The tiles of that shape for a product of `outputs` by `rows`; none if the shape needs more shared memory than there
/// is.
[[nodiscard]] std::optional<std::uint32_t> mma_tiles(mma_shape shape, const device_profile& profile,
                                                     std::uint32_t outputs, std::uint32_t rows);
/// Replaces the choice for more than 64 rows, for measurements; the shape must fit the device.
void impose_shape(std::optional<mma_shape> shape);

}  // namespace skein::kernels::gpu
