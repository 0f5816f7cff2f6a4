#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/tensor.hpp"

namespace skein::kernels {

/// The elements of a stored matrix.
enum class weight_element : std::uint8_t { f32, bf16, f16, int8, int4, nf4, fp8 };

/// How a matrix (outputs, inputs) is stored. Quantised formats divide the inputs of each output (a row) into groups; a
/// group has one bf16 scale and a code for each weight:
///   int8  q in -127 .. 127,  weight = scale * q
///   int4  q in   -8 .. 7,    weight = scale * q
///   nf4   q in    0 .. 15,   weight = scale * nf4_values[q]  (NormalFloat, arXiv 2305.14314, appendix E)
///   fp8   q of type e4m3,    weight = scale * e4m3_to_f32(q)  (e4m3.hpp); the same power of two in all groups of a row
/// The last group of a row may be shorter.
struct weight_format {
  weight_element element = weight_element::f32;
  std::uint16_t group = 0;  ///< inputs that share a scale: 32, 64 or 128; 0 if not quantised

  [[nodiscard]] constexpr bool quantised() const { return group != 0; }
  bool operator==(const weight_format&) const = default;
};

inline constexpr std::uint16_t default_group = 64;

inline constexpr std::array<float, 16> nf4_values = {
    -1.0f,       -0.6961928f, -0.52507305f, -0.3949175f, -0.28444138f, -0.18477343f, -0.091050036f, 0.0f,
    0.07958029f, 0.1609302f,  0.2461123f,   0.33791524f, 0.44070983f,  0.562617f,    0.72295684f,   1.0f};

/// Whether all groups of a row have the scale row_scale(). Such a format has groups of default_group.
[[nodiscard]] constexpr bool has_row_scale(weight_element element) { return element == weight_element::fp8; }

/// The size of a code of a quantised format.
[[nodiscard]] constexpr std::uint32_t code_bits(weight_element element) {
  return element == weight_element::int8 || element == weight_element::fp8 ? 8 : 4;
}

/// The format of a floating type; nullopt for others.
[[nodiscard]] std::optional<weight_format> format_of(dtype type);
/// The format of quantised weights in a file.
[[nodiscard]] weight_format format_of(const quantised_codes& codes);
/// "fp32", "bf16", "fp16", "int8", "fp8", "int4", "nf4", and with another group size than 64 "int4-32" and the like;
/// fp8 has no other group size.
[[nodiscard]] std::string to_string(weight_format format);
/// The inverse of to_string; nullopt for other texts.
[[nodiscard]] std::optional<weight_format> parse_weight_format(std::string_view text);

/// The scale of a row whose groups share one, as bf16 bits: the smallest power of two from 2^-116 on by which no weight
/// exceeds 448; 0 if all are 0 or subnormal, NaN if one is not finite. 0 for elements without has_row_scale().
[[nodiscard]] std::uint16_t row_scale(weight_element element, std::span<const float> row);
/// Quantises one group of a row: writes a code for each weight (int8 as two's complement, int4 as q + 8) and returns
/// the scale as bf16 bits. fp8 has the scale `of_row`, which is row_scale(). int8 covers the largest weight; int4 and
/// nf4 have the scale of the smallest squared error among several.
[[nodiscard]] std::uint16_t quantise_group(weight_element element, std::span<const float> weights,
                                           std::span<std::uint8_t> codes, std::uint16_t of_row);
/// The weight of a code.
[[nodiscard]] float dequantise(weight_element element, std::uint8_t code, float scale);

}  // namespace skein::kernels
