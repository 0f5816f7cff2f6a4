#include "kernels/cpu/coded_rows.hpp"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/coded_rows.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/vector_math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace skein::kernels::cpu::HWY_NAMESPACE {

// The integers of `count` inputs; behind them come zeros up to a whole vector.
coded_group code_group(const float* in, std::size_t count, weight_element element, std::int16_t* out) {
  const floats d;
  const hn::RebindToSigned<floats> di;
  const hn::Rebind<std::int16_t, floats> narrow;
  auto largest = hn::Zero(d), not_finite = hn::Zero(d);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto x = load_part(d, in + i, count - i);
    largest = hn::Max(largest, hn::Abs(x));
    not_finite = hn::MulAdd(x, hn::Zero(d), not_finite);
  }
  const float poison = hn::GetLane(hn::SumOfLanes(d, not_finite));  // 0, or NaN
  if (poison != 0) {
    for (std::size_t i = 0; i < count; i += hn::Lanes(d)) hn::StoreU(hn::Zero(narrow), narrow, out + i);
    return {poison, 0};
  }
  const float max = hn::GetLane(hn::MaxOfLanes(d, largest));
  const auto integer_max = static_cast<float>(coded_max(element));
  const auto by = hn::Set(d, max > 1e-30f ? integer_max / max : 0.0f);
  auto sums = hn::Zero(di);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto integers = hn::NearestInt(hn::Mul(load_part(d, in + i, count - i), by));
    hn::StoreU(hn::DemoteTo(narrow, integers), narrow, out + i);
    sums = hn::Add(sums, integers);
  }
  const float unit = element == weight_element::nf4 ? integer_max * nf4_unit : integer_max;
  return {max / unit, static_cast<std::int32_t>(-static_cast<std::int64_t>(coded_zero(element)) *
                                                hn::GetLane(hn::SumOfLanes(di, sums)))};
}

void code_groups(const float* in, std::size_t inputs, weight_format format, std::byte* out) {
  auto* integers = reinterpret_cast<std::int16_t*>(out);
  std::byte* groups = out + coded_layout(inputs, format.group).groups;
  for (std::size_t i = 0; i < inputs; i += format.group, groups += sizeof(coded_group)) {
    const coded_group group =
        code_group(in + i, std::min<std::size_t>(format.group, inputs - i), format.element, integers + i);
    std::memcpy(groups, &group, sizeof group);
  }
}

}  // namespace skein::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein::kernels::cpu {

HWY_EXPORT(code_groups);

void code_row(const float* in, std::size_t inputs, weight_format format, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(code_groups)(in, inputs, format, out);
}

}  // namespace skein::kernels::cpu
#endif
