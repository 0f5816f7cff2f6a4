#include "kernels/cpu/wkv/wkv6.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/wkv/wkv6.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/wkv/head_norm-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace skein::kernels::cpu::HWY_NAMESPACE {

// The vectors of one token for one head, ready for the state update; zeros behind the head size.
struct wkv6_token {
  HWY_ALIGN float r[head_size_max], w[head_size_max], k[head_size_max], v[head_size_max];
  HWY_ALIGN float y[head_size_max];
  float bonus;  // sum of r u k
};

// exp(-exp(x)). Highway's Exp accepts arguments up to 104; from 88 the result is 0 in fp32 anyway.
HWY_INLINE float_vector double_exp(floats d, float_vector x) {
  return hn::Exp(d, hn::Neg(hn::Exp(d, hn::Min(x, hn::Set(d, 88.0f)))));
}

void prepare_wkv6_token(const wkv6_head& head, const wkv6_rows& rows, std::size_t row, wkv6_token& token) {
  const floats d;
  const std::size_t at = row * rows.stride;
  auto bonus = hn::Zero(d);
  for (std::size_t i = 0; i < head.size; i += hn::Lanes(d)) {
    const std::size_t left = head.size - i;
    const auto r = load_part(d, rows.r + at + i, left), k = load_part(d, rows.k + at + i, left);
    const auto decay = load_part(d, head.decay + i, left);
    bonus = hn::MulAdd(hn::Mul(r, k), load_part(d, head.bonus + i, left), bonus);
    hn::Store(r, d, token.r + i);
    hn::Store(k, d, token.k + i);
    hn::Store(load_part(d, rows.v + at + i, left), d, token.v + i);
    hn::Store(rows.w ? double_exp(d, hn::Add(decay, load_part(d, rows.w + at + i, left))) : decay, d, token.w + i);
  }
  token.bonus = hn::GetLane(hn::SumOfLanes(d, bonus));
}

// S and y for kVectors vectors of values, starting at `value`. The columns of S are independent of each other.
template <std::size_t kVectors>
HWY_INLINE void update_wkv6_values(std::size_t head_size, std::size_t value, wkv6_token& token, float* state) {
  const floats d;
  const std::size_t line = state_line(head_size), step = hn::Lanes(d);
  float_vector v[kVectors], y[kVectors];
  for (std::size_t c = 0; c < kVectors; ++c) {
    v[c] = hn::Load(d, token.v + value + c * step);
    y[c] = hn::Mul(v[c], hn::Set(d, token.bonus));
  }
  for (std::size_t key = 0; key < head_size; ++key) {
    const auto w = hn::Set(d, token.w[key]), k = hn::Set(d, token.k[key]), r = hn::Set(d, token.r[key]);
    float* s = state + key * line + value;
    for (std::size_t c = 0; c < kVectors; ++c) {
      const auto before = hn::Load(d, s + c * step);
      y[c] = hn::MulAdd(before, r, y[c]);
      hn::Store(hn::MulAdd(before, w, hn::Mul(v[c], k)), d, s + c * step);
    }
  }
  for (std::size_t c = 0; c < kVectors; ++c) hn::Store(y[c], d, token.y + value + c * step);
}

void update_wkv6_state(std::size_t head_size, wkv6_token& token, float* state) {
  const std::size_t step = hn::Lanes(floats()), line = state_line(head_size);
  std::size_t value = 0;
  for (; value + 4 * step <= line; value += 4 * step) update_wkv6_values<4>(head_size, value, token, state);
  for (; value < line; value += step) update_wkv6_values<1>(head_size, value, token, state);
}

void wkv6_rows_of_head(const wkv6_head& head, const wkv6_rows& rows, float* state) {
  const floats d;
  wkv6_token token{};
  for (std::size_t row = 0; row < rows.rows; ++row) {
    prepare_wkv6_token(head, rows, row, token);
    update_wkv6_state(head.size, token, state);
    const float* g = rows.g ? rows.g + row * rows.stride : nullptr;
    float* out = rows.y + row * rows.stride;
    normalise_head(head.size, token.y, head.ln_x_weight, head.ln_x_bias,
                   [&](float_vector normed, std::size_t i, std::size_t left) {
                     store_part(g ? hn::Mul(normed, load_part(d, g + i, left)) : normed, d, out + i, left);
                   });
  }
}

}  // namespace skein::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein::kernels::cpu {

HWY_EXPORT(wkv6_rows_of_head);

void wkv6(const wkv6_head& head, const wkv6_rows& rows, float* state) {
  HWY_DYNAMIC_DISPATCH(wkv6_rows_of_head)(head, rows, state);
}

}  // namespace skein::kernels::cpu
#endif
