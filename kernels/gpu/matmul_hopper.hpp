#pragma once
#include "kernels/gpu/matmul.hpp"

namespace skein::kernels::gpu {

/// True where the tensor cores of sm_90a are, for matrices of that type.
[[nodiscard]] result<bool> has_hopper_matmul(int device, element type);

/// Whether the products of several segments in that launch are stored in parts (finish::store_parts) for so many rows:
/// as long as there would be too few blocks if each summed all segments. Never above split_rows_max.
[[nodiscard]] bool splits(std::span<const product> products, std::uint32_t rows);
inline constexpr std::uint32_t split_rows_max = 512;

/// The contract of matmul() on those tensor cores, for fp16 and bf16. The bits are its own: an instruction adds 16
/// products at once, and those follow each other in ascending order. Rows beyond `rows` up to `rows_room` may be read
/// and written, so every buffer has room for them; they touch no others.
[[nodiscard]] result<void> matmul_hopper(stream_handle in, element type, std::span<const product> products,
                                         std::uint32_t rows_room);

}  // namespace skein::kernels::gpu
