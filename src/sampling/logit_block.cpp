#include "sampling/logit_block.hpp"

#include <algorithm>

#include "base/check.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sampling/logit_block.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skein::sampling::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A block is a whole number of vectors of any supported width.
using float_tag = hn::CappedTag<float, 16>;
using double_tag = hn::CappedTag<double, 8>;
constexpr std::size_t strands = 8;  // independent partial sums

bool read_blocks(std::span<const float> logits, std::span<logit_block> out) {
  const float_tag d;
  const auto lowest = hn::Set(d, lowest_logit);
  const auto highest = hn::Set(d, -lowest_logit);
  auto all_finite = hn::Eq(lowest, lowest);
  for (logit_block& block : out) {
    const std::size_t count = std::min(logits.size(), block_tokens);
    std::copy_n(logits.begin(), count, block.begin());
    std::fill(block.begin() + static_cast<std::ptrdiff_t>(count), block.end(), 0.0f);
    logits = logits.subspan(count);
    for (std::size_t i = 0; i < block_tokens; i += hn::Lanes(d)) {
      const auto raw = hn::Load(d, &block[i]);
      all_finite = hn::And(all_finite, hn::IsFinite(raw));
      const auto number = hn::IfThenZeroElse(hn::IsNaN(raw), raw);
      const auto finite = hn::Min(hn::Max(number, lowest), highest);
      hn::Store(hn::Add(finite, hn::Zero(d)), d, &block[i]);  // -0 + 0 is 0
    }
    std::fill(block.begin() + static_cast<std::ptrdiff_t>(count), block.end(), no_logit);
  }
  return hn::AllTrue(d, all_finite);
}

void restrict_blocks(std::span<const std::uint32_t> allowed, std::span<logit_block> blocks) {
  const float_tag d;
  const hn::RebindToUnsigned<float_tag> du;
  const auto lane_bit = hn::Shl(hn::Set(du, 1), hn::Iota(du, 0));
  const auto none = hn::Set(d, no_logit);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (std::size_t i = 0; i < block_tokens; i += hn::Lanes(d)) {
      const std::size_t word = b * (block_tokens / 32) + i / 32;
      const std::uint32_t bits = word < allowed.size() ? allowed[word] >> (i % 32) : 0;
      const auto wanted = hn::RebindMask(d, hn::TestBit(hn::Set(du, bits), lane_bit));
      hn::Store(hn::IfThenElse(wanted, hn::Load(d, &blocks[b][i]), none), d, &blocks[b][i]);
    }
  }
}

float find_maxima(std::span<const logit_block> blocks, std::span<float> maxima) {
  const float_tag d;
  float max = no_logit;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    auto best = hn::Load(d, &blocks[b][0]);
    for (std::size_t i = hn::Lanes(d); i < block_tokens; i += hn::Lanes(d))
      best = hn::Max(best, hn::Load(d, &blocks[b][i]));
    maxima[b] = hn::GetLane(hn::MaxOfLanes(d, best));
    max = std::max(max, maxima[b]);
  }
  return max;
}

// exp(z) for z <= 0 as 2^n * exp(r), |r| <= ln(2) / 2, with the Taylor series of exp to degree 7 (error below 6e-9).
template <class V>
HWY_INLINE V exp_of_negative(V z) {
  const hn::DFromV<V> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const auto smallest = hn::Set(d, -87.0f);  // 2^n stays a normal number above
  const auto to_integer = hn::Set(d, 0x1.8p23f);
  const auto vanishing = hn::Lt(z, smallest);
  z = hn::Max(z, smallest);
  const auto shifted = hn::Add(hn::Mul(z, hn::Set(d, 0x1.715476p0f)), to_integer);  // the integer n in the low bits
  const auto n = hn::Sub(shifted, to_integer);
  const auto ln2_high = hn::Set(d, 0x1.62e4p-1f);  // n * ln2_high is exact
  const auto ln2_low = hn::Set(d, 0x1.7f7d1cp-20f);
  const auto r = hn::Sub(hn::Sub(z, hn::Mul(n, ln2_high)), hn::Mul(n, ln2_low));
  auto e = hn::Set(d, 1.0f / 5040);
  for (const float inverse_factorial : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
    e = hn::Add(hn::Mul(e, r), hn::Set(d, inverse_factorial));
  const auto exponent = hn::ShiftLeft<23>(hn::Add(hn::BitCast(du, shifted), hn::Set(du, 127)));
  return hn::IfThenZeroElse(vanishing, hn::Mul(e, hn::BitCast(d, exponent)));
}

double sum_of(const logit_block& block) {
  const double_tag d;
  const hn::Rebind<float, double_tag> df;
  alignas(64) double strand[strands];
  for (std::size_t s = 0; s < strands; s += hn::Lanes(d)) {
    auto sum = hn::Zero(d);
    for (std::size_t i = s; i < block_tokens; i += strands)
      sum = hn::Add(sum, hn::PromoteTo(d, hn::Load(df, &block[i])));
    hn::Store(sum, d, strand + s);
  }
  return ((strand[0] + strand[4]) + (strand[2] + strand[6])) + ((strand[1] + strand[5]) + (strand[3] + strand[7]));
}

double exponentiate_blocks(std::span<const logit_block> blocks, float max, float scale, std::span<logit_block> weights,
                           std::span<double> sums) {
  const float_tag d;
  const auto vmax = hn::Set(d, max);
  const auto vscale = hn::Set(d, scale);
  double total = 0;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (std::size_t i = 0; i < block_tokens; i += hn::Lanes(d)) {
      const auto z = hn::Mul(hn::Sub(hn::Load(d, &blocks[b][i]), vmax), vscale);
      hn::Store(exp_of_negative(z), d, &weights[b][i]);
    }
    sums[b] = sum_of(weights[b]);
    total += sums[b];
  }
  return total;
}

}  // namespace skein::sampling::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein::sampling {

HWY_EXPORT(read_blocks);
HWY_EXPORT(restrict_blocks);
HWY_EXPORT(find_maxima);
HWY_EXPORT(exponentiate_blocks);

bool read_blocks(std::span<const float> logits, std::span<logit_block> out) {
  check(out.size() == (logits.size() + block_tokens - 1) / block_tokens);
  return HWY_DYNAMIC_DISPATCH(read_blocks)(logits, out);
}

void restrict_blocks(std::span<const std::uint32_t> allowed, std::span<logit_block> blocks) {
  HWY_DYNAMIC_DISPATCH(restrict_blocks)(allowed, blocks);
}

float find_maxima(std::span<const logit_block> blocks, std::span<float> maxima) {
  check(maxima.size() == blocks.size());
  return HWY_DYNAMIC_DISPATCH(find_maxima)(blocks, maxima);
}

double exponentiate_blocks(std::span<const logit_block> blocks, float max, float scale, std::span<logit_block> weights,
                           std::span<double> sums) {
  check(weights.size() == blocks.size());
  check(sums.size() == blocks.size());
  return HWY_DYNAMIC_DISPATCH(exponentiate_blocks)(blocks, max, scale, weights, sums);
}

}  // namespace skein::sampling
#endif  // HWY_ONCE
