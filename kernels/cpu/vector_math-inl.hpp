// Vector code shared by several kernels; included once per Highway target, after hwy/highway.h.
#if defined(SKEIN_KERNELS_CPU_VECTOR_MATH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SKEIN_KERNELS_CPU_VECTOR_MATH_INL_HPP
#undef SKEIN_KERNELS_CPU_VECTOR_MATH_INL_HPP
#else
#define SKEIN_KERNELS_CPU_VECTOR_MATH_INL_HPP
#endif

#include <cstddef>
#include <cstring>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skein::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes: half a line of a packed panel.
using floats = hn::CappedTag<float, 16>;
using float_vector = hn::Vec<floats>;

// Loads min(left, lanes) elements, followed by zeros. The tail of a row uses the same vector code as the rest, so the
// result of an element does not depend on its position in the row.
HWY_INLINE float_vector load_part(floats d, const float* from, std::size_t left) {
  if (left >= hn::Lanes(d)) return hn::LoadU(d, from);
  HWY_ALIGN float padded[hn::MaxLanes(floats())] = {};
  std::memcpy(padded, from, left * sizeof(float));
  return hn::Load(d, padded);
}

HWY_INLINE void store_part(float_vector v, floats d, float* to, std::size_t left) {
  if (left >= hn::Lanes(d)) return hn::StoreU(v, d, to);
  HWY_ALIGN float padded[hn::MaxLanes(floats())];
  hn::Store(v, d, padded);
  std::memcpy(to, padded, left * sizeof(float));
}

// 1 / (1 + exp(-x)). Highway's Exp accepts arguments up to 104; from 88 the result is 0 in fp32 anyway.
HWY_INLINE float_vector sigmoid(floats d, float_vector x) {
  const auto one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, hn::Exp(d, hn::Min(hn::Neg(x), hn::Set(d, 88.0f)))));
}

}  // namespace skein::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
