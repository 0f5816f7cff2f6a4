// The tile for fp8 weights; included once per Highway target, after hwy/highway.h.
//
// Weights become fp32 and are multiplied by fp32 activations. Numbers of e4m3 span 18 bits, too many for the 16-bit
// integers of coded_tile-inl.hpp. A code shifted to the upper bits of an fp16 number, with a bit of exponent left out,
// has 2^-8 times its value: that takes two or three instructions for as many weights as a vector has halves, and the
// processor widens halves to fp32. The sums of a group are scaled at its end.
#if defined(SKEIN_KERNELS_CPU_FP8_TILE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SKEIN_KERNELS_CPU_FP8_TILE_INL_HPP
#undef SKEIN_KERNELS_CPU_FP8_TILE_INL_HPP
#else
#define SKEIN_KERNELS_CPU_FP8_TILE_INL_HPP
#endif

#include <algorithm>
#include <cmath>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/cpu/panel-inl.hpp"
#include "kernels/weights/e4m3.hpp"

HWY_BEFORE_NAMESPACE();
namespace skein::kernels::cpu::HWY_NAMESPACE {

struct fp8_strip {
  static constexpr weight_element element = weight_element::fp8;
};

#if HWY_TARGET == HWY_SCALAR

// As below, one output after the other.
template <std::size_t kRows, std::size_t kStrips>
HWY_INLINE void fp8_tile(const tile_source& source, std::size_t strip, float* HWY_RESTRICT sums,
                         std::size_t panel_sums) {
  for (std::size_t each = 0; each < 2 * kStrips * kRows; ++each) {
    const std::size_t s = strip + each / 2 % kStrips, row = each / 2 / kStrips, panel = s / half_panel;
    const std::size_t output = s % half_panel * 2 + each % 2;
    const std::byte *line = source.line + panel * source.panel_bytes, *in = source.in + row * source.in_stride;
    float& place = sums[panel * panel_sums + row * panel_outputs + output];
    if (source.first) place = 0;
    for (std::size_t begin = 0; begin < source.inputs; begin += source.group) {
      std::uint16_t scale;
      std::memcpy(&scale, line + output * sizeof scale, sizeof scale);
      line += scale_line_bytes;
      const std::size_t inputs = std::min(source.group, source.inputs - begin);
      float sum = 0;
      for (std::size_t i = 0; i < inputs; ++i) {
        float value;
        std::memcpy(&value, in + (begin + i) * sizeof value, sizeof value);
        const auto code = static_cast<std::uint8_t>(line[2 * output + i % 2]);
        sum = std::fma(value, e4m3_to_f32(code), sum);
        if (i % 2 == 1 || i + 1 == inputs) line += coded_line_bytes;
      }
      place = std::fma(sum, bf16_to_f32(scale), place);
    }
  }
}

#else

using code_pairs = hn::Repartition<std::int16_t, floats>;
using code_pair_vector = hn::Vec<code_pairs>;

// The weights of a strip for one input, times 2^-8: those of its lower and of its upper outputs.
struct fp8_weights {
  float_vector low, high;
};

// `codes`: shifted to the upper bytes of words, whose lower bytes may have anything.
HWY_INLINE fp8_weights widen_codes(floats d, code_pair_vector codes) {
  const code_pairs dw;
  const hn::Rebind<std::int16_t, floats> halves;
  const hn::Rebind<hwy::float16_t, floats> f16;
  // The shift copies the sign; the mask clears the copy, and what was below the code.
  const auto bits = hn::And(hn::ShiftRight<1>(codes), hn::Set(dw, static_cast<std::int16_t>(0xbf80)));
  return {hn::PromoteTo(d, hn::BitCast(f16, hn::LowerHalf(halves, bits))),
          hn::PromoteTo(d, hn::BitCast(f16, hn::UpperHalf(halves, bits)))};
}

// As tile() in matmul.cpp. A strip has neighbouring outputs here.
template <std::size_t kRows, std::size_t kStrips>
HWY_INLINE void fp8_tile(const tile_source& source, std::size_t strip, float* HWY_RESTRICT sums,
                         std::size_t panel_sums) {
  const floats d;
  const code_pairs dw;
  constexpr std::size_t kStripBytes = 4 * lanes;
  const std::byte* HWY_RESTRICT lines[kStrips];
  float* HWY_RESTRICT places[kStrips];
#pragma GCC unroll 4
  for (std::size_t s = 0; s < kStrips; ++s) {
    const std::size_t panel = (strip + s) / strips_per_panel;
    lines[s] = source.line + panel * source.panel_bytes + (strip + s) % strips_per_panel * kStripBytes;
    places[s] = sums + panel * panel_sums + (strip + s) % strips_per_panel * 2 * lanes;
  }
  constexpr std::size_t kTriples = (kRows + 2) / 3;
  const float* HWY_RESTRICT rows[kTriples];
#pragma GCC unroll 4
  for (std::size_t t = 0; t < kTriples; ++t)
    rows[t] = reinterpret_cast<const float*>(source.in + 3 * t * source.in_stride);
  const std::size_t stride = source.in_stride / sizeof(float);
  bool first = source.first;

  for (std::size_t begin = 0; begin < source.inputs; begin += source.group) {
    const std::byte* HWY_RESTRICT scales[kStrips];
    float_vector acc[kRows][kStrips][2];
#pragma GCC unroll 4
    for (std::size_t s = 0; s < kStrips; ++s) {
      scales[s] = lines[s];
      lines[s] += scale_line_bytes;
#pragma GCC unroll 12
      for (std::size_t r = 0; r < kRows; ++r) acc[r][s][0] = acc[r][s][1] = hn::Zero(d);
    }
    const auto add = [&](std::size_t i, std::size_t s, fp8_weights weights) {
#pragma GCC unroll 12
      for (std::size_t r = 0; r < kRows; ++r) {
        const auto in = hn::Set(d, rows[r / 3][r % 3 * stride + i]);
        acc[r][s][0] = hn::MulAdd(in, weights.low, acc[r][s][0]);
        acc[r][s][1] = hn::MulAdd(in, weights.high, acc[r][s][1]);
      }
    };
    const std::size_t end = std::min(begin + source.group, source.inputs);
    for (std::size_t i = begin; i < end; i += 2) {
#pragma GCC unroll 4
      for (std::size_t s = 0; s < kStrips; ++s) {
        if (kStrips < strips_per_panel || s % strips_per_panel == 0)
          hwy::Prefetch(lines[s] + prefetch_lines * line_bytes(weight_element::fp8));
        const auto pairs = hn::LoadU(dw, reinterpret_cast<const std::int16_t*>(lines[s]));
        lines[s] += coded_line_bytes;
        add(i, s, widen_codes(d, hn::ShiftLeft<8>(pairs)));
        if (i + 1 < end) add(i + 1, s, widen_codes(d, pairs));  // behind the last input there may be anything
      }
    }
#pragma GCC unroll 4
    for (std::size_t s = 0; s < kStrips; ++s) {
#pragma GCC unroll 2
      for (std::size_t half = 0; half < 2; ++half) {
        const hn::Rebind<std::uint16_t, floats> narrow;
        const hn::RebindToUnsigned<floats> du;
        const auto bits = hn::LoadU(narrow, reinterpret_cast<const std::uint16_t*>(scales[s]) + half * lanes);
        const auto scale = hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
        const auto by = hn::Mul(scale, hn::Set(d, 256.0f));
#pragma GCC unroll 12
        for (std::size_t r = 0; r < kRows; ++r) {
          float* const place = places[s] + r * panel_outputs + half * lanes;
          const auto before = first ? hn::Zero(d) : hn::Load(d, place);
          hn::Store(hn::MulAdd(acc[r][s][half], by, before), d, place);
        }
      }
    }
    first = false;
  }
}

#endif

}  // namespace skein::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
