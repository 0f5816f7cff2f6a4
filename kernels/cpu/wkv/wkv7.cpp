#include "kernels/cpu/wkv/wkv7.hpp"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/wkv/wkv7.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/wkv/head_norm-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace skein::kernels::cpu::HWY_NAMESPACE {

// The vectors of one token for one head, ready for the state update; zeros behind the head size.
struct token_vectors {
  HWY_ALIGN float r[head_size_max], w[head_size_max], k[head_size_max], v[head_size_max];
  HWY_ALIGN float kk[head_size_max];    // removal key, negated: -kk
  HWY_ALIGN float kk_a[head_size_max];  // removal key times in-context learning rate: kk * a
  HWY_ALIGN float y[head_size_max];
  float bonus;  // sum of r k r_k
};

void prepare_token(const wkv7_head& head, const wkv7_rows& rows, std::size_t row, token_vectors& token) {
  const floats d;
  const std::size_t at = row * rows.stride;
  const auto one = hn::Set(d, 1.0f);
  auto squares = hn::Zero(d), bonus = hn::Zero(d);
  for (std::size_t i = 0; i < head.size; i += hn::Lanes(d)) {
    const std::size_t left = head.size - i;
    const auto of = [&](const float* from) { return load_part(d, from + i, left); };
    const auto in = [&](const float* from) { return load_part(d, from + at + i, left); };
    const auto r = in(rows.r), k = in(rows.k);
    const auto a = sigmoid(d, hn::Add(of(head.a0), in(rows.a)));
    const auto log_w = hn::Mul(hn::Set(d, -0.60653066f), sigmoid(d, hn::Add(of(head.w0), in(rows.w))));
    const auto kk = hn::Mul(k, of(head.k_k));
    const auto k_now = hn::Mul(k, hn::MulAdd(hn::Sub(a, one), of(head.k_a), one));
    auto v = in(rows.v);
    if (head.v0) {
      const auto share = sigmoid(d, hn::Add(of(head.v0), in(rows.v_mix)));
      v = hn::MulAdd(hn::Sub(in(rows.v_first), v), share, v);
    }
    squares = hn::MulAdd(kk, kk, squares);
    bonus = hn::MulAdd(hn::Mul(r, k_now), of(head.r_k), bonus);
    hn::Store(r, d, token.r + i);
    hn::Store(hn::Exp(d, log_w), d, token.w + i);
    hn::Store(k_now, d, token.k + i);
    hn::Store(v, d, token.v + i);
    hn::Store(kk, d, token.kk + i);
    hn::Store(a, d, token.kk_a + i);
  }
  const float norm = std::max(std::sqrt(hn::GetLane(hn::SumOfLanes(d, squares))), 1e-12f);
  for (std::size_t i = 0; i < head.size; i += hn::Lanes(d)) {
    const auto kk = hn::Div(hn::Load(d, token.kk + i), hn::Set(d, norm));
    hn::Store(hn::Neg(kk), d, token.kk + i);
    hn::Store(hn::Mul(kk, hn::Load(d, token.kk_a + i)), d, token.kk_a + i);
  }
  token.bonus = hn::GetLane(hn::SumOfLanes(d, bonus));
}

// S and y for kVectors vectors of values, starting at `value`. The columns of S are independent of each other.
template <std::size_t kVectors>
HWY_INLINE void update_values(std::size_t head_size, std::size_t value, token_vectors& token, float* state) {
  const floats d;
  const std::size_t line = state_line(head_size), step = hn::Lanes(d);
  float_vector v[kVectors], removed[kVectors], removed_odd[kVectors], y[kVectors];
  for (std::size_t c = 0; c < kVectors; ++c) {
    v[c] = hn::Load(d, token.v + value + c * step);
    removed[c] = removed_odd[c] = y[c] = hn::Zero(d);
  }
  // Two sums, for even and odd keys at any vector width, because a single sum is bound by the latency of the FMA.
  std::size_t key = 0;
  for (; key + 2 <= head_size; key += 2) {
    const auto kk = hn::Set(d, token.kk[key]), kk_odd = hn::Set(d, token.kk[key + 1]);
    const float* s = state + key * line + value;
    for (std::size_t c = 0; c < kVectors; ++c) {
      removed[c] = hn::MulAdd(hn::Load(d, s + c * step), kk, removed[c]);
      removed_odd[c] = hn::MulAdd(hn::Load(d, s + line + c * step), kk_odd, removed_odd[c]);
    }
  }
  for (; key < head_size; ++key) {
    for (std::size_t c = 0; c < kVectors; ++c)
      removed[c] =
          hn::MulAdd(hn::Load(d, state + key * line + value + c * step), hn::Set(d, token.kk[key]), removed[c]);
  }
  for (std::size_t c = 0; c < kVectors; ++c) removed[c] = hn::Add(removed[c], removed_odd[c]);

  for (key = 0; key < head_size; ++key) {
    const auto w = hn::Set(d, token.w[key]), kk_a = hn::Set(d, token.kk_a[key]);
    const auto k = hn::Set(d, token.k[key]), r = hn::Set(d, token.r[key]);
    float* s = state + key * line + value;
    for (std::size_t c = 0; c < kVectors; ++c) {
      const auto kept = hn::MulAdd(hn::Load(d, s + c * step), w, hn::Mul(removed[c], kk_a));
      const auto now = hn::MulAdd(v[c], k, kept);
      hn::Store(now, d, s + c * step);
      y[c] = hn::MulAdd(now, r, y[c]);
    }
  }
  for (std::size_t c = 0; c < kVectors; ++c) hn::Store(y[c], d, token.y + value + c * step);
}

void update_state(std::size_t head_size, token_vectors& token, float* state) {
  const std::size_t step = hn::Lanes(floats()), line = state_line(head_size);
  std::size_t value = 0;
  for (; value + 4 * step <= line; value += 4 * step) update_values<4>(head_size, value, token, state);
  for (; value < line; value += step) update_values<1>(head_size, value, token, state);
}

// y = (group_norm(y) + bonus * v) * g
void read_out(const wkv7_head& head, const token_vectors& token, const float* g, float* out) {
  const floats d;
  normalise_head(head.size, token.y, head.ln_x_weight, head.ln_x_bias,
                 [&](float_vector normed, std::size_t i, std::size_t left) {
                   const auto with_bonus = hn::MulAdd(hn::Set(d, token.bonus), hn::Load(d, token.v + i), normed);
                   store_part(hn::Mul(with_bonus, load_part(d, g + i, left)), d, out + i, left);
                 });
}

void wkv7_rows_of_head(const wkv7_head& head, const wkv7_rows& rows, float* state) {
  token_vectors token{};
  for (std::size_t row = 0; row < rows.rows; ++row) {
    prepare_token(head, rows, row, token);
    update_state(head.size, token, state);
    read_out(head, token, rows.g + row * rows.stride, rows.y + row * rows.stride);
  }
}

}  // namespace skein::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein::kernels::cpu {

HWY_EXPORT(wkv7_rows_of_head);

void wkv7(const wkv7_head& head, const wkv7_rows& rows, float* state) {
  HWY_DYNAMIC_DISPATCH(wkv7_rows_of_head)(head, rows, state);
}

}  // namespace skein::kernels::cpu
#endif
