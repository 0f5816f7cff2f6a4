#include "model/nonfinite.hpp"

#include <cstdint>
#include <cstring>

#include "model/tensor_lookup.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/nonfinite.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skein::model::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// `exponent` has the exponent bits of one element in each lane of a word, `lowest` the lowest of them. Their sum
// reaches the lane's sign bit exactly when all exponent bits are set, and never the next lane.
std::uint64_t exponents_of_ones(const std::byte* bytes, std::size_t count, std::uint64_t exponent,
                                std::uint64_t lowest) {
  const hn::ScalableTag<std::uint64_t> d;
  const auto all = hn::Set(d, exponent), one = hn::Set(d, lowest);
  auto seen = hn::Zero(d);
  const std::size_t step = hn::Lanes(d) * sizeof(std::uint64_t);
  std::size_t at = 0;
  for (; at + step <= count; at += step) {
    const auto words = hn::LoadU(d, reinterpret_cast<const std::uint64_t*>(bytes + at));
    seen = hn::Or(seen, hn::Add(hn::And(words, all), one));
  }
  HWY_ALIGN std::uint64_t lane[hn::MaxLanes(d)];
  hn::Store(seen, d, lane);
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) found |= lane[i];
  while (at < count) {
    std::uint64_t word = 0;  // zeros are finite
    const std::size_t rest = count - at < sizeof word ? count - at : sizeof word;
    std::memcpy(&word, bytes + at, rest);
    found |= (word & exponent) + lowest;
    at += rest;
  }
  return found;
}

}  // namespace skein::model::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein::model {

HWY_EXPORT(exponents_of_ones);

namespace {

struct lanes {
  std::uint64_t exponent, lowest, sign;
};

constexpr std::uint64_t times_4 = 0x0001'0001'0001'0001, times_2 = 0x0000'0001'0000'0001;
constexpr std::uint64_t times_8 = 0x0101'0101'0101'0101;
constexpr lanes e4m3_lanes{0x7f * times_8, 0x01 * times_8, 0x80 * times_8};  // NaN has ones in the mantissa too
constexpr lanes bf16_lanes{0x7f80 * times_4, 0x0080 * times_4, 0x8000 * times_4};
constexpr lanes f16_lanes{0x7c00 * times_4, 0x0400 * times_4, 0x8000 * times_4};
constexpr lanes f32_lanes{0x7f80'0000 * times_2, 0x0080'0000 * times_2, 0x8000'0000 * times_2};
constexpr lanes f64_lanes{0x7ff0'0000'0000'0000, 0x0010'0000'0000'0000, 0x8000'0000'0000'0000};

bool holds(std::span<const std::byte> bytes, const lanes& type) {
  return (HWY_DYNAMIC_DISPATCH(exponents_of_ones)(bytes.data(), bytes.size(), type.exponent, type.lowest) &
          type.sign) != 0;
}

}  // namespace

bool holds_nonfinite(std::span<const std::byte> bytes, dtype type) {
  if (bytes.empty()) return false;
  switch (type) {
    case dtype::bf16: return holds(bytes, bf16_lanes);
    case dtype::f16: return holds(bytes, f16_lanes);
    case dtype::f32: return holds(bytes, f32_lanes);
    case dtype::f64: return holds(bytes, f64_lanes);
    case dtype::i8:
    case dtype::u8:
    case dtype::i32:
    case dtype::i64: return false;
  }
  return false;
}

bool holds_nan_of_e4m3(std::span<const std::byte> codes) { return !codes.empty() && holds(codes, e4m3_lanes); }

bool is_unused(std::string_view tensor) {
  return tensor == "blocks.0.att.v0" || tensor == "blocks.0.att.v1" || tensor == "blocks.0.att.v2";
}

error nonfinite_tensor(const checkpoint& file, std::string_view name) {
  return misfit(file, name, "has NaN or infinity; only finite values are accepted (--allow-nonfinite loads it anyway)");
}

}  // namespace skein::model
#endif  // HWY_ONCE
