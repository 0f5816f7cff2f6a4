#pragma once
#include <cstdint>
#include <span>

#include "base/tensor.hpp"
#include "kernels/weights/weight_format.hpp"

namespace skein::kernels {

/// Whether the file stores this matrix in this format, so that its codes and scales can be used as they are.
[[nodiscard]] bool stored_in(weight_format format, const tensor_view& matrix);

/// Reads the block of 32 inputs of an output: writes its codes as quantise_group() does and returns the scale, which is
/// exact in fp16.
float read_block(const tensor_view& matrix, std::size_t output, std::size_t input, std::span<std::uint8_t> codes);

/// Reads a group of a row of a matrix that is quantised in the file, which begins at `input`: writes its codes as
/// quantise_group() does and returns the scale, which is exact in codes.scale_type. Codes beyond the row mean 0.
[[nodiscard]] float read_group(const tensor_view& matrix, std::size_t output, std::size_t input,
                               std::span<std::uint8_t> codes);

/// The scale of a row of a matrix whose file has one for all groups of it (fp8), as row_scale() returns it: NaN also if
/// a code is NaN.
[[nodiscard]] std::uint16_t read_row_scale(const tensor_view& matrix, std::size_t output);

/// The view of some rows of a matrix.
[[nodiscard]] tensor_view rows_of(const tensor_view& matrix, std::int64_t first, std::int64_t count);

}  // namespace skein::kernels
