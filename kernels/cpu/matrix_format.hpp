#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/tensor.hpp"

namespace skein::kernels::cpu {

/// The floating types in which the CPU keeps embeddings and matrices that are not quantised.
enum class matrix_format : std::uint8_t { f32, bf16, f16 };

/// The format for a matrix type of the command line, if there is one.
[[nodiscard]] std::optional<matrix_format> format_for(dtype type);

[[nodiscard]] constexpr std::size_t element_bytes(matrix_format format) { return format == matrix_format::f32 ? 4 : 2; }

/// Elements of a checkpoint at a distance of `stride` bytes, possibly unaligned.
struct element_line {
  const std::byte* data;
  dtype type;
  std::ptrdiff_t stride;
  std::size_t count;
};

/// Writes the elements contiguously in the format: a plain copy if that is their type, else converted to fp32 and
/// rounded to nearest even. Floating types only (checked). False if an element that is finite as fp32 became infinite.
bool copy_elements(const element_line& from, matrix_format format, std::byte* out);

/// unsupported: a tensor has finite values that the format makes infinite.
[[nodiscard]] error beyond_format(std::string_view tensor, matrix_format format);

}  // namespace skein::kernels::cpu
