#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace skein {

/// Element types of tensors in checkpoints.
enum class dtype : std::uint8_t { f32, bf16, f16, f64, i8, u8, i32, i64 };

[[nodiscard]] constexpr std::size_t dtype_bytes(dtype t) {
  switch (t) {
    case dtype::f64:
    case dtype::i64: return 8;
    case dtype::f32:
    case dtype::i32: return 4;
    case dtype::bf16:
    case dtype::f16: return 2;
    case dtype::i8:
    case dtype::u8: return 1;
  }
  return 0;
}

/// "fp32", "bf16", "fp16", ... as on the command line.
[[nodiscard]] constexpr std::string_view to_string(dtype t) {
  switch (t) {
    case dtype::f32: return "fp32";
    case dtype::bf16: return "bf16";
    case dtype::f16: return "fp16";
    case dtype::f64: return "fp64";
    case dtype::i8: return "int8";
    case dtype::u8: return "uint8";
    case dtype::i32: return "int32";
    case dtype::i64: return "int64";
  }
  return "?";
}

/// How the elements of a quantised matrix are stored: kernels/weights/weight_format.hpp has the meaning of codes.
enum class code_type : std::uint8_t { none, int8, int4, nf4, fp8 };
/// Whether each code has a byte; else two share one.
[[nodiscard]] constexpr bool fills_bytes(code_type type) { return type == code_type::int8 || type == code_type::fp8; }

struct quantised_codes {
  code_type type = code_type::none;
  std::uint16_t group = 0;            ///< elements of a row that share a scale; the last group may be shorter
  const std::byte* scales = nullptr;  ///< (rows, groups of a row), row-major
  dtype scale_type = dtype::bf16;     ///< or f16: those of ggml's blocks

  /// Of the codes of one row: one code a byte, or two, of which the first is in the low half.
  [[nodiscard]] std::size_t row_bytes(std::size_t columns) const {
    return fills_bytes(type) ? columns : (columns + 1) / 2;
  }
};

/// A row-major matrix as ggml stores it: blocks of 32 elements of a row, each with a scale in fp16 and 32 codes. int8
/// (Q8_0): one a byte. int4 (Q4_0): code + 8, in 16 bytes; the low halves have the first 16 elements.
struct code_blocks {
  static constexpr std::size_t elements = 32;
  code_type type = code_type::none;
  const std::byte* data = nullptr;
  float factor = 1;  ///< of all scales; a power of two

  [[nodiscard]] std::size_t bytes() const { return type == code_type::int8 ? 34 : 18; }  ///< of a block
};

/// A non-owning view of a tensor, usually part of a memory-mapped checkpoint, which need not be aligned. The code that
/// creates a view must check that every element reachable by shape and strides lies inside the file.
struct tensor_view {
  const std::byte* data = nullptr;  ///< first element; unaligned
  dtype type = dtype::f32;
  std::vector<std::int64_t> shape;   ///< outermost first
  std::vector<std::int64_t> stride;  ///< in elements, one per dimension; row-major unless the file says otherwise
  /// Of a quantised matrix, which is row-major: then `data` has its codes, row by row, and `type` says in which type a
  /// model keeps the matrices that are not quantised. Only those who know this member may read such a view.
  quantised_codes codes = {};
  /// Of a matrix that the file stores in blocks: the same matrix there. `data` has its elements, rounded to `type`, so
  /// a reader need not know this member. Code that changes elements, shape or strides of a view clears it.
  code_blocks blocks = {};

  [[nodiscard]] bool quantised() const { return codes.type != code_type::none; }
  [[nodiscard]] std::int64_t elements() const {
    std::int64_t n = 1;
    for (auto d : shape) n *= d;
    return n;
  }
  [[nodiscard]] bool row_major() const {
    std::int64_t expected = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (shape[i] != 1 && stride[i] != expected) return false;
      expected *= shape[i];
    }
    return true;
  }
};

/// fp32 value of a bfloat16 and of an IEEE half, and back with round to nearest even.
[[nodiscard]] inline float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
[[nodiscard]] float f16_to_f32(std::uint16_t bits);
[[nodiscard]] std::uint16_t f32_to_bf16(float value);
[[nodiscard]] std::uint16_t f32_to_f16(float value);

/// Copies all elements, row-major, as fp32 into `out` (elements() floats). Floating types only (checked).
void copy_to_f32(const tensor_view& view, std::span<float> out);

}  // namespace skein
