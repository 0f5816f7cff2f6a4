// The group norm of one head; included once per Highway target, after hwy/highway.h.
#if defined(SKEIN_KERNELS_CPU_WKV_HEAD_NORM_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SKEIN_KERNELS_CPU_WKV_HEAD_NORM_INL_HPP
#undef SKEIN_KERNELS_CPU_WKV_HEAD_NORM_INL_HPP
#else
#define SKEIN_KERNELS_CPU_WKV_HEAD_NORM_INL_HPP
#endif

#include "kernels/cpu/vector_math-inl.hpp"
#include "kernels/ops.hpp"

HWY_BEFORE_NAMESPACE();
namespace skein::kernels::cpu::HWY_NAMESPACE {

// finish(normed, i, left) for each vector of group_norm(y), at element i, with `left` elements of the head from there
// on. y is aligned, with zeros behind the head size.
template <class Finish>
HWY_INLINE void normalise_head(std::size_t size, const float* y, const float* weight, const float* bias,
                               const Finish& finish) {
  const floats d;
  const float n = static_cast<float>(size);
  auto sum = hn::Zero(d), squares = hn::Zero(d);
  for (std::size_t i = 0; i < size; i += hn::Lanes(d)) sum = hn::Add(sum, hn::Load(d, y + i));
  const auto mean = hn::Div(hn::SumOfLanes(d, sum), hn::Set(d, n));
  for (std::size_t i = 0; i < size; i += hn::Lanes(d)) {
    const auto off = hn::IfThenElseZero(hn::FirstN(d, size - i), hn::Sub(hn::Load(d, y + i), mean));
    squares = hn::MulAdd(off, off, squares);
  }
  const auto variance = hn::Div(hn::SumOfLanes(d, squares), hn::Set(d, n));
  const auto scale = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(hn::Add(variance, hn::Set(d, group_norm_eps))));
  for (std::size_t i = 0; i < size; i += hn::Lanes(d)) {
    const std::size_t left = size - i;
    const auto unit = hn::Mul(hn::Sub(hn::Load(d, y + i), mean), scale);
    finish(hn::MulAdd(unit, load_part(d, weight + i, left), load_part(d, bias + i, left)), i, left);
  }
}

}  // namespace skein::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
