#include "kernels/cpu/wkv/wkv4.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/wkv/wkv4.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/vector_math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace skein::kernels::cpu::HWY_NAMESPACE {

// One vector of channels through all rows, with its state in registers.
void wkv4_all_rows(const wkv4_channels& channels, const wkv4_rows& rows) {
  const floats d;
  for (std::size_t i = 0; i < channels.count; i += hn::Lanes(d)) {
    const std::size_t left = channels.count - i;
    const auto decay = load_part(d, channels.decay + i, left), bonus = load_part(d, channels.bonus + i, left);
    auto aa = load_part(d, channels.aa + i, left), bb = load_part(d, channels.bb + i, left);
    auto pp = load_part(d, channels.pp + i, left);
    for (std::size_t row = 0; row < rows.rows; ++row) {
      const std::size_t at = row * rows.stride + i;
      const auto r = load_part(d, rows.r + at, left), k = load_part(d, rows.k + at, left);
      const auto v = load_part(d, rows.v + at, left);
      const auto now = hn::Add(bonus, k), top = hn::Max(pp, now);
      const auto old_share = hn::Exp(d, hn::Sub(pp, top)), new_share = hn::Exp(d, hn::Sub(now, top));
      const auto mean = hn::Div(hn::MulAdd(old_share, aa, hn::Mul(new_share, v)), hn::MulAdd(old_share, bb, new_share));
      store_part(hn::Mul(r, mean), d, rows.y + at, left);

      const auto decayed = hn::Sub(pp, decay), next = hn::Max(decayed, k);
      const auto kept = hn::Exp(d, hn::Sub(decayed, next)), added = hn::Exp(d, hn::Sub(k, next));
      aa = hn::MulAdd(kept, aa, hn::Mul(added, v));
      bb = hn::MulAdd(kept, bb, added);
      pp = next;
    }
    store_part(aa, d, channels.aa + i, left);
    store_part(bb, d, channels.bb + i, left);
    store_part(pp, d, channels.pp + i, left);
  }
}

}  // namespace skein::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein::kernels::cpu {

HWY_EXPORT(wkv4_all_rows);

void wkv4(const wkv4_channels& channels, const wkv4_rows& rows) { HWY_DYNAMIC_DISPATCH(wkv4_all_rows)(channels, rows); }

}  // namespace skein::kernels::cpu
#endif
