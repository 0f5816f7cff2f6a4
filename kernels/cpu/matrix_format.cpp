#include "kernels/cpu/matrix_format.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/matrix_format.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skein::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using words = hn::CappedTag<std::uint32_t, 16>;
using word_vector = hn::Vec<words>;

// f32_to_bf16 of base/tensor for a vector of floats, given as bits.
struct to_bf16 {
  static constexpr std::uint32_t beyond = 0x7f7f8000u;  // the least magnitude that is rounded to infinity
  static HWY_INLINE word_vector round(words d, word_vector bits) {
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffffffu));
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(d, 0x7fffu)), odd);
    const auto quiet_nan = hn::Or(bits, hn::Set(d, 0x400000u));
    return hn::ShiftRight<16>(hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7f800000u)), quiet_nan, rounded));
  }
};

// f32_to_f16 of base/tensor.
struct to_f16 {
  static constexpr std::uint32_t beyond = 0x477ff000u;  // 65520
  static HWY_INLINE word_vector round(words d, word_vector bits) {
    const hn::RebindToFloat<words> df;
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000u));
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffffffu));
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1));
    const auto sum = hn::Add(hn::Add(magnitude, hn::Set(d, 0xfffu)), odd);
    const auto normal = hn::ShiftRight<13>(hn::Sub(sum, hn::Set(d, 0x38000000u)));
    // Subnormal halves are multiples of 2^-24. Adding 0.5 puts them, rounded, into the low bits of a float. A subnormal
    // input rounds to 0.
    const auto half = hn::Set(df, 0.5f);
    const auto small = hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(df, magnitude), half)), hn::BitCast(d, half));
    auto result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x38800000u)), small, normal);
    result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x477fefffu)), hn::Set(d, 0x7c00u), result);
    result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7f800000u)), hn::Set(d, 0x7e00u), result);
    return hn::Or(result, sign);
  }
};

template <class Format>
HWY_INLINE bool round_all(const float* from, std::size_t count, std::byte* out) {
  const words d;
  const hn::Rebind<std::uint16_t, words> halves;
  const hn::RebindToSigned<words> integers;
  HWY_ALIGN std::uint16_t rounded[hn::MaxLanes(words())];
  auto largest = hn::Zero(d);  // of the finite magnitudes
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto bits = hn::BitCast(d, hn::Load(hn::RebindToFloat<words>(), from + i));
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffffffu));
    largest = hn::Max(largest, hn::IfThenElseZero(hn::Lt(magnitude, hn::Set(d, 0x7f800000u)), magnitude));
    hn::Store(hn::DemoteTo(halves, hn::BitCast(integers, Format::round(d, bits))), halves, rounded);
    std::memcpy(out + i * 2, rounded, 2 * std::min(hn::Lanes(d), count - i));
  }
  return hn::AllTrue(d, hn::Lt(largest, hn::Set(d, Format::beyond)));
}

bool round_bf16(const float* from, std::size_t count, std::byte* out) { return round_all<to_bf16>(from, count, out); }
bool round_f16(const float* from, std::size_t count, std::byte* out) { return round_all<to_f16>(from, count, out); }

}  // namespace skein::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein::kernels::cpu {

namespace {

HWY_EXPORT(round_bf16);
HWY_EXPORT(round_f16);

constexpr std::size_t chunk_elements = 256;  // a KiB of floats: stays in L1

template <typename T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <typename T, typename Convert>
void convert_all(const element_line& from, float* out, const Convert& convert) {
  if (from.stride == sizeof(T)) {  // the usual case, separate so that the compiler vectorizes it
    for (std::size_t i = 0; i < from.count; ++i) out[i] = convert(load<T>(from.data + i * sizeof(T)));
  } else {
    for (std::size_t i = 0; i < from.count; ++i)
      out[i] = convert(load<T>(from.data + static_cast<std::ptrdiff_t>(i) * from.stride));
  }
}

void widen(const element_line& from, float* out) {
  switch (from.type) {
    case dtype::f32: return convert_all<float>(from, out, [](float v) { return v; });
    case dtype::bf16: return convert_all<std::uint16_t>(from, out, [](std::uint16_t v) { return bf16_to_f32(v); });
    case dtype::f16: return convert_all<std::uint16_t>(from, out, [](std::uint16_t v) { return f16_to_f32(v); });
    case dtype::f64: return convert_all<double>(from, out, [](double v) { return static_cast<float>(v); });
    default: check(false, "a floating tensor was expected");
  }
}

void copy_unchanged(const element_line& from, std::size_t bytes, std::byte* out) {
  if (from.stride == static_cast<std::ptrdiff_t>(bytes)) {
    std::memcpy(out, from.data, from.count * bytes);
  } else {
    for (std::size_t i = 0; i < from.count; ++i)
      std::memcpy(out + i * bytes, from.data + static_cast<std::ptrdiff_t>(i) * from.stride, bytes);
  }
}

}  // namespace

std::optional<matrix_format> format_for(dtype type) {
  switch (type) {
    case dtype::f32: return matrix_format::f32;
    case dtype::bf16: return matrix_format::bf16;
    case dtype::f16: return matrix_format::f16;
    default: return std::nullopt;
  }
}

bool copy_elements(const element_line& from, matrix_format format, std::byte* out) {
  const std::size_t bytes = element_bytes(format);
  if (format_for(from.type) == format) {
    copy_unchanged(from, bytes, out);
    return true;
  }
  bool fits = true;
  alignas(64) float chunk[chunk_elements] = {};  // for every target; HWY_ALIGN would align for the baseline only
  for (std::size_t begin = 0; begin < from.count; begin += chunk_elements, out += chunk_elements * bytes) {
    const std::size_t count = std::min(chunk_elements, from.count - begin);
    widen({from.data + static_cast<std::ptrdiff_t>(begin) * from.stride, from.type, from.stride, count}, chunk);
    switch (format) {
      case matrix_format::f32: std::memcpy(out, chunk, count * sizeof(float)); break;
      case matrix_format::bf16: fits &= HWY_DYNAMIC_DISPATCH(round_bf16)(chunk, count, out); break;
      case matrix_format::f16: fits &= HWY_DYNAMIC_DISPATCH(round_f16)(chunk, count, out); break;
    }
  }
  return fits;
}

error beyond_format(std::string_view tensor, matrix_format format) {
  const bool half = format == matrix_format::f16;
  return {error_kind::unsupported,
          "tensor " + std::string(tensor) + " has values beyond the range of " +
              (half ? "fp16 (65504); accepted: bf16, fp32" : "bf16 (3.39e38); accepted: fp32"),
          "dtype"};
}

}  // namespace skein::kernels::cpu
#endif
