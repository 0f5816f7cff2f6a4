#include "base/tensor.hpp"

#include <bit>
#include <cstring>

#include "base/check.hpp"

namespace skein {

float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24 is exact in fp32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);  // NaN stays NaN
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);   // NaN
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {                                                    // subnormal: multiples of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;                 // exact
    const float rounded = (scaled + 0x1p23f) - 0x1p23f;                             // to nearest even integer
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(rounded));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

namespace {

template <typename T>
T load(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

float element(const std::byte* p, dtype type) {
  switch (type) {
    case dtype::f32: return load<float>(p);
    case dtype::bf16: return bf16_to_f32(load<std::uint16_t>(p));
    case dtype::f16: return f16_to_f32(load<std::uint16_t>(p));
    case dtype::f64: return static_cast<float>(load<double>(p));
    default: check(false, "a floating tensor was expected"); return 0;
  }
}

}  // namespace

void copy_to_f32(const tensor_view& view, std::span<float> out) {
  check(!view.quantised());
  const std::int64_t n = view.elements();
  check(static_cast<std::int64_t>(out.size()) == n);
  if (n == 0) return;
  const std::size_t bytes = dtype_bytes(view.type);
  if (view.row_major()) {
    if (view.type == dtype::f32) {
      std::memcpy(out.data(), view.data, out.size_bytes());
      return;
    }
    for (std::int64_t i = 0; i < n; ++i)
      out[static_cast<std::size_t>(i)] = element(view.data + static_cast<std::size_t>(i) * bytes, view.type);
    return;
  }
  std::vector<std::int64_t> index(view.shape.size(), 0);
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * view.stride[d];
    out[static_cast<std::size_t>(i)] = element(view.data + offset * static_cast<std::int64_t>(bytes), view.type);
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < view.shape[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace skein
