#include "kernels/weights/weight_format.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "base/weight_format_names.hpp"
#include "kernels/weights/e4m3.hpp"

namespace skein::kernels {
namespace {

struct named_element {
  std::string_view name;
  weight_element element;
};
constexpr named_element elements[] = {{"fp32", weight_element::f32}, {"bf16", weight_element::bf16},
                                      {"fp16", weight_element::f16}, {"int8", weight_element::int8},
                                      {"fp8", weight_element::fp8},  {"int4", weight_element::int4},
                                      {"nf4", weight_element::nf4}};

constexpr bool is_quantised(weight_element element) { return element >= weight_element::int8; }
constexpr bool has_group_sizes(weight_element element) { return is_quantised(element) && !has_row_scale(element); }

struct group_ending {
  std::string_view text;
  std::uint16_t group;
};
constexpr group_ending group_endings[] = {{"", default_group}, {"-32", 32}, {"-128", 128}};

/// Whether a list has the names of all formats, in this order.
constexpr bool lists_all_formats(std::string_view list) {
  const auto begins_with = [&list](std::string_view name, std::string_view ending) {
    if (!list.starts_with(name) || !list.substr(name.size()).starts_with(ending)) return false;
    list.remove_prefix(name.size() + ending.size());
    if (list.starts_with(", ")) list.remove_prefix(2);
    return true;
  };
  for (const auto& each : elements)
    for (const auto& [ending, group] : group_endings)
      if ((ending.empty() || has_group_sizes(each.element)) && !begins_with(each.name, ending)) return false;
  return list.empty();
}
static_assert(lists_all_formats(weight_format_names), "base/weight_format_names.hpp must list each format once");

/// The nearest integer. Adding 1.5 * 2^23 leaves no bits for fractions; unlike std::nearbyint, loops of it vectorise.
float rounded(float x) { return (x + 12582912.0f) - 12582912.0f; }

float largest_magnitude(std::span<const float> weights) {
  float largest = 0;
  for (const float w : weights) largest = std::max(largest, std::abs(w));
  return largest;
}

/// The bf16 value of the same sign that is at least as large in magnitude.
std::uint16_t bf16_away_from_zero(float value) {
  const std::uint16_t nearest = f32_to_bf16(value);
  return std::abs(bf16_to_f32(nearest)) < std::abs(value) ? static_cast<std::uint16_t>(nearest + 1) : nearest;
}

constexpr std::size_t group_max = 128;

/// The weights of a group, at most 1 in magnitude, followed by zeros: loops over whole vectors of 8, with a partial sum
/// in each lane, vectorise without reordering a sum.
constexpr std::size_t lanes = 8;
struct unit_group {
  alignas(32) float weights[group_max] = {};
  std::size_t padded = 0;  ///< size, rounded up to whole vectors
};

struct lane_sums {
  float lane[lanes] = {};
  [[nodiscard]] float total() const {
    float sum = 0;
    for (const float each : lane) sum += each;
    return sum;
  }
};

struct int4_codes {
  /// Writes q for each weight.
  static void encode(const unit_group& of, float scale, float* q) {
    const float inverse = 1 / scale;
    for (std::size_t i = 0; i < of.padded; ++i) {
      const float nearest = rounded(of.weights[i] * inverse);
      const float above = nearest < -8.0f ? -8.0f : nearest;
      q[i] = above > 7.0f ? 7.0f : above;
    }
  }
  static void decode(const float* q, std::size_t count, float* values) { std::copy_n(q, count, values); }
  static constexpr int offset = 8;
  static constexpr std::uint8_t zero = 8;
  static constexpr bool symmetric = false;
  /// The largest weight becomes the outermost code, with a sign that lets -8 represent it, or a little less or more.
  static constexpr float candidates[] = {-8.5f, -8.0f, -7.6f, -7.1f, 7.2f};
};

struct nf4_codes {
  static void encode(const unit_group& of, float scale, float* q) {
    constexpr auto& v = nf4_values;
    for (std::size_t i = 0; i < of.padded; ++i) q[i] = 0;
    for (std::size_t code = 0; code + 1 < v.size(); ++code) {
      const float threshold = (v[code] + v[code + 1]) / 2 * scale;
      for (std::size_t i = 0; i < of.padded; ++i) q[i] += of.weights[i] > threshold ? 1.0f : 0.0f;
    }
  }
  static void decode(const float* q, std::size_t count, float* values) {
    for (std::size_t i = 0; i < count; ++i) values[i] = nf4_values[static_cast<std::size_t>(q[i])];
  }
  static constexpr int offset = 0;
  static constexpr std::uint8_t zero = 7;
  static constexpr bool symmetric = true;
  static constexpr float candidates[] = {1.0f, 1.1f, 0.95f};
};

/// Tries a scale for each candidate c: first largest / c, then the scale that minimises the squared error for the codes
/// that this one gives. `largest` is the weight with the largest magnitude.
template <typename Codes>
float best_scale(const unit_group& of, float largest) {
  alignas(32) float q[group_max], values[group_max];
  float best_error = std::numeric_limits<float>::infinity(), best = 0;
  lane_sums product, square;
  const auto try_scale = [&](float scale) {
    const float kept = bf16_to_f32(f32_to_bf16(scale));
    Codes::encode(of, kept, q);
    Codes::decode(q, of.padded, values);
    lane_sums error;
    product = square = {};
    for (std::size_t i = 0; i < of.padded; i += lanes) {
      for (std::size_t l = 0; l < lanes; ++l) {
        const float w = of.weights[i + l], v = values[i + l], off = w - kept * v;
        error.lane[l] += off * off;
        product.lane[l] += w * v;
        square.lane[l] += v * v;
      }
    }
    if (error.total() < best_error) best_error = error.total(), best = kept;
  };
  for (const float candidate : Codes::candidates) {
    try_scale(largest / candidate);
    if (product.total() != 0) try_scale(product.total() / square.total());
  }
  return best;
}

template <typename Codes>
std::uint16_t search(std::span<const float> weights, std::span<std::uint8_t> codes) {
  int exponent = 0;
  std::frexp(largest_magnitude(weights), &exponent);
  // The weights divided by a power of two, which rounds nothing. Two factors, because one could overflow.
  const float factor = std::ldexp(1.0f, -exponent / 2), other = std::ldexp(1.0f, -(exponent - exponent / 2));
  unit_group unit;
  unit.padded = (weights.size() + lanes - 1) / lanes * lanes;
  float largest = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    unit.weights[i] = weights[i] * factor * other;
    if (std::abs(unit.weights[i]) > std::abs(largest)) largest = unit.weights[i];
  }
  if (Codes::symmetric) largest = std::abs(largest);
  const float scale = largest == 0 ? 0 : best_scale<Codes>(unit, largest);
  const std::uint16_t bits = f32_to_bf16(std::ldexp(scale, exponent));
  const bool vanishes = scale == 0 || (bits & 0x7fff) == 0;  // also if the scale is below the smallest bf16
  alignas(32) float q[group_max];
  if (!vanishes) Codes::encode(unit, scale, q);
  for (std::size_t i = 0; i < weights.size(); ++i)
    codes[i] = vanishes ? Codes::zero : static_cast<std::uint8_t>(static_cast<int>(q[i]) + Codes::offset);
  return vanishes ? 0 : bits;
}

/// The code of each weight in units of the scale; zeros if that or its reciprocal is no finite number above 0.
template <typename Encode>
void encode_by_scale(std::span<const float> weights, std::span<std::uint8_t> codes, float scale, Encode encode) {
  const float inverse = scale > 0 && std::isfinite(1 / scale) ? 1 / scale : 0;
  for (std::size_t i = 0; i < weights.size(); ++i) codes[i] = encode(weights[i] * inverse);
}

std::uint16_t quantise_int8(std::span<const float> weights, std::span<std::uint8_t> codes) {
  const std::uint16_t scale = bf16_away_from_zero(largest_magnitude(weights) / 127);
  encode_by_scale(weights, codes, bf16_to_f32(scale), [](float w) {
    return static_cast<std::uint8_t>(static_cast<int>(std::clamp(rounded(w), -127.0f, 127.0f)));
  });
  return scale;
}

std::uint16_t quantise_fp8(std::span<const float> weights, std::span<std::uint8_t> codes, std::uint16_t scale) {
  if (std::isnan(bf16_to_f32(scale)))
    std::ranges::fill(codes, std::uint8_t{0});  // kernels decode finite numbers only
  else
    encode_by_scale(weights, codes, bf16_to_f32(scale), f32_to_e4m3);
  return scale;
}

bool all_finite(std::span<const float> weights) {
  return std::ranges::all_of(weights, [](float w) { return std::isfinite(w); });
}

std::uint16_t nan_scale() { return f32_to_bf16(std::numeric_limits<float>::quiet_NaN()); }

}  // namespace

std::optional<weight_format> format_of(dtype type) {
  switch (type) {
    case dtype::f32: return weight_format{weight_element::f32, 0};
    case dtype::bf16: return weight_format{weight_element::bf16, 0};
    case dtype::f16: return weight_format{weight_element::f16, 0};
    default: return std::nullopt;
  }
}

weight_format format_of(const quantised_codes& codes) {
  switch (codes.type) {
    case code_type::int8: return {weight_element::int8, codes.group};
    case code_type::int4: return {weight_element::int4, codes.group};
    case code_type::nf4: return {weight_element::nf4, codes.group};
    case code_type::fp8: return {weight_element::fp8, codes.group};
    case code_type::none: break;
  }
  check(false, "codes of a matrix that is not quantised");
  return {};
}

std::string to_string(weight_format format) {
  for (const auto& each : elements) {
    if (each.element != format.element) continue;
    const bool plain = !format.quantised() || format.group == default_group;
    return std::string(each.name) + (plain ? "" : '-' + std::to_string(format.group));
  }
  return "?";
}

std::optional<weight_format> parse_weight_format(std::string_view text) {
  for (const auto& each : elements) {
    if (!text.starts_with(each.name)) continue;
    const std::string_view rest = text.substr(each.name.size());
    if (!has_group_sizes(each.element)) {
      const std::uint16_t group = is_quantised(each.element) ? default_group : 0;
      return rest.empty() ? std::optional(weight_format{each.element, group}) : std::nullopt;
    }
    if (rest == "-64") return weight_format{each.element, 64};
    for (const auto& [ending, group] : group_endings)
      if (rest == ending) return weight_format{each.element, group};
  }
  return std::nullopt;
}

std::uint16_t row_scale(weight_element element, std::span<const float> row) {
  if (!has_row_scale(element)) return 0;
  if (!all_finite(row)) return nan_scale();
  const float largest = largest_magnitude(row);
  if (largest < std::numeric_limits<float>::min()) return 0;
  int exponent = 0, exponent_of_max = 0;
  const bool fits = std::frexp(largest, &exponent) <= std::frexp(e4m3_max, &exponent_of_max);
  // Subnormal weights then have the code 0, also in threads that do not flush them to zero.
  constexpr int least = -116;
  return f32_to_bf16(std::ldexp(1.0f, std::max(exponent - exponent_of_max + (fits ? 0 : 1), least)));
}

std::uint16_t quantise_group(weight_element element, std::span<const float> weights, std::span<std::uint8_t> codes,
                             std::uint16_t of_row) {
  check(weights.size() <= group_max && codes.size() == weights.size());
  if (element == weight_element::fp8) return quantise_fp8(weights, codes, of_row);
  if (!all_finite(weights)) {
    std::ranges::fill(codes, std::uint8_t{0});
    return nan_scale();
  }
  switch (element) {
    case weight_element::int4: return search<int4_codes>(weights, codes);
    case weight_element::nf4: return search<nf4_codes>(weights, codes);
    default: return quantise_int8(weights, codes);
  }
}

float dequantise(weight_element element, std::uint8_t code, float scale) {
  switch (element) {
    case weight_element::int4: return scale * static_cast<float>(static_cast<int>(code) - 8);
    case weight_element::nf4: return scale * nf4_values[code & 15];
    case weight_element::fp8: return scale * e4m3_to_f32(code);
    default: return scale * static_cast<float>(static_cast<std::int8_t>(code));
  }
}

}  // namespace skein::kernels
