#include "kernels/cpu/row_ops.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_ops.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/vector_math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace skein::kernels::cpu::HWY_NAMESPACE {

// Sum of function(d, i) over all vectors of elements, starting at index i; it must return zeros behind the end.
template <class Function>
HWY_INLINE float sum_over(std::size_t size, const Function& function) {
  const floats d;
  const std::size_t step = hn::Lanes(d);
  auto even = hn::Zero(d), odd = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 2 * step <= size; i += 2 * step) {
    even = hn::Add(even, function(d, i));
    odd = hn::Add(odd, function(d, i + step));
  }
  for (; i < size; i += step) even = hn::Add(even, function(d, i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
}

void layer_norm_row(const float* x, const float* weight, const float* bias, float eps, std::size_t size, float* out) {
  const float n = static_cast<float>(size);
  const float mean = sum_over(size, [&](floats d, std::size_t i) { return load_part(d, x + i, size - i); }) / n;
  const float squares = sum_over(size, [&](floats d, std::size_t i) {
    const auto off = hn::Sub(load_part(d, x + i, size - i), hn::Set(d, mean));
    return hn::IfThenElseZero(hn::FirstN(d, size - i), hn::Mul(off, off));
  });
  const floats d;
  const auto scale = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(hn::Set(d, squares / n + eps)));
  for (std::size_t i = 0; i < size; i += hn::Lanes(d)) {
    const std::size_t left = size - i;
    const auto unit = hn::Mul(hn::Sub(load_part(d, x + i, left), hn::Set(d, mean)), scale);
    store_part(hn::MulAdd(unit, load_part(d, weight + i, left), load_part(d, bias + i, left)), d, out + i, left);
  }
}

void token_shift_row(const float* now, const float* before, const float* mix, std::size_t size, float* out) {
  const floats d;
  for (std::size_t i = 0; i < size; i += hn::Lanes(d)) {
    const std::size_t left = size - i;
    const auto x = load_part(d, now + i, left);
    const auto change = hn::Sub(load_part(d, before + i, left), x);
    store_part(hn::MulAdd(change, load_part(d, mix + i, left), x), d, out + i, left);
  }
}

void shift_delta_row(const float* now, const float* before, std::size_t size, float* out) {
  const floats d;
  for (std::size_t i = 0; i < size; i += hn::Lanes(d)) {
    const std::size_t left = size - i;
    store_part(hn::Sub(load_part(d, before + i, left), load_part(d, now + i, left)), d, out + i, left);
  }
}

void token_shift_by_row(const float* now, const float* delta, const float* mix, const float* extra, std::size_t size,
                        float* out) {
  const floats d;
  for (std::size_t i = 0; i < size; i += hn::Lanes(d)) {
    const std::size_t left = size - i;
    const auto share = hn::Add(load_part(d, mix + i, left), load_part(d, extra + i, left));
    store_part(hn::MulAdd(load_part(d, delta + i, left), share, load_part(d, now + i, left)), d, out + i, left);
  }
}

}  // namespace skein::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein::kernels::cpu {

HWY_EXPORT(layer_norm_row);
HWY_EXPORT(token_shift_row);
HWY_EXPORT(shift_delta_row);
HWY_EXPORT(token_shift_by_row);

void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::size_t size, float* out) {
  HWY_DYNAMIC_DISPATCH(layer_norm_row)(x, weight, bias, eps, size, out);
}

void token_shift(const float* now, const float* before, const float* mix, std::size_t size, float* out) {
  HWY_DYNAMIC_DISPATCH(token_shift_row)(now, before, mix, size, out);
}

void shift_delta(const float* now, const float* before, std::size_t size, float* out) {
  HWY_DYNAMIC_DISPATCH(shift_delta_row)(now, before, size, out);
}

void token_shift_by(const float* now, const float* delta, const float* mix, const float* extra, std::size_t size,
                    float* out) {
  HWY_DYNAMIC_DISPATCH(token_shift_by_row)(now, delta, mix, extra, size, out);
}

}  // namespace skein::kernels::cpu
#endif
