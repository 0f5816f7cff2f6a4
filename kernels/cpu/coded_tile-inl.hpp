// The tile for quantised weights; included once per Highway target, after hwy/highway.h.
//
// Weights and activations are integers of 16 bits, multiplied in pairs of inputs into 32-bit sums (pmaddwd on x86, or
// vpdpwssd, which also adds). The sums of a group are exact; at its end they are scaled and added to the fp32 sum. A
// vector of 16 weights takes one instruction to unpack (4 bits: up to three), where conversion to fp32 takes three
// for 8.
#if defined(SKEIN_KERNELS_CPU_CODED_TILE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SKEIN_KERNELS_CPU_CODED_TILE_INL_HPP
#undef SKEIN_KERNELS_CPU_CODED_TILE_INL_HPP
#else
#define SKEIN_KERNELS_CPU_CODED_TILE_INL_HPP
#endif

#include <algorithm>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/cpu/coded_rows.hpp"
#include "kernels/cpu/panel-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace skein::kernels::cpu::HWY_NAMESPACE {

// Whether this target has fused products, an instruction that multiplies pairs and adds them, on some CPUs.
constexpr bool can_fuse = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;

HWY_INLINE bool cpu_fuses() {
#if HWY_TARGET == HWY_AVX3
  return __builtin_cpu_supports("avx512vnni");
#elif HWY_TARGET == HWY_AVX2
  return __builtin_cpu_supports("avxvnni");
#else
  return false;
#endif
}

// A strip with fused products.
template <class Strip>
struct fused : Strip {
  static constexpr bool fuses = true;
};

#if HWY_TARGET == HWY_SCALAR

struct int8_strip {
  static constexpr weight_element element = weight_element::int8;
};
struct int4_strip {
  static constexpr weight_element element = weight_element::int4;
};
struct nf4_strip {
  static constexpr weight_element element = weight_element::nf4;
};

// The integer of a weight, from the line of a group that it is in.
HWY_INLINE std::int32_t coded_weight(weight_element element, const std::byte* line, std::size_t output,
                                     std::size_t input) {
  const std::size_t at = output % half_panel / 4 * 16 + output / half_panel * 8 + output % 4 * 2 + input % 2;
  const auto byte = static_cast<std::uint8_t>(line[at]);
  if (element == weight_element::int8) return byte;
  const std::size_t code = input % 4 < 2 ? byte & 15 : byte >> 4;
  if (element == weight_element::int4) return static_cast<std::int32_t>(code);
  return static_cast<std::int16_t>(nf4_words.low[code] | nf4_words.high[code] << 8);
}

// As below, one output after the other.
template <class Strip, std::size_t kRows, std::size_t kStrips>
HWY_INLINE void coded_tile(const tile_source& source, std::size_t strip, float* HWY_RESTRICT sums,
                           std::size_t panel_sums) {
  constexpr std::size_t kLineInputs = Strip::element == weight_element::int8 ? 2 : 4;
  for (std::size_t each = 0; each < 2 * kStrips * kRows; ++each) {
    const std::size_t s = strip + each / 2 % kStrips, row = each / 2 / kStrips, panel = s / half_panel;
    const std::size_t output = s % half_panel + each % 2 * half_panel;
    const std::byte *line = source.line + panel * source.panel_bytes, *in = source.in + row * source.in_stride;
    float& place = sums[panel * panel_sums + row * panel_outputs + output];
    if (source.first) place = 0;
    for (std::size_t begin = 0; begin < source.inputs; begin += source.group) {
      std::uint32_t pair;
      std::memcpy(&pair, line + output % half_panel * sizeof pair, sizeof pair);
      const auto bits = static_cast<std::uint16_t>(output < half_panel ? pair : pair >> 16);
      const float scale = source.half_scales ? f16_to_f32(bits) : bf16_to_f32(bits);
      line += scale_line_bytes;
      coded_group group;
      std::memcpy(&group, source.groups + row * source.in_stride + begin / source.group * sizeof group, sizeof group);
      const std::size_t group_end = std::min(begin + source.group, source.inputs);
      for (std::size_t i = begin; i < group_end;) {
        std::int32_t sum = i == begin ? group.offset : 0;
        for (const std::size_t end = std::min(i + coded_run(Strip::element), group_end); i < end; ++i) {
          std::int16_t value;
          std::memcpy(&value, in + i * sizeof value, sizeof value);
          sum += value * coded_weight(Strip::element, line, output, i - begin);
          if ((i - begin) % kLineInputs == kLineInputs - 1 || i + 1 == group_end) line += coded_line_bytes;
        }
        place += static_cast<float>(sum) * (scale * group.scale);
      }
    }
  }
}

#else

using dwords = hn::RebindToSigned<floats>;
using words = hn::Repartition<std::int16_t, floats>;
using octets = hn::Repartition<std::uint8_t, floats>;
using dword_vector = hn::Vec<dwords>;
using word_vector = hn::Vec<words>;
using octet_vector = hn::Vec<octets>;

// The weights of a strip for two inputs: dword j has the inputs of output j or j + 16.
struct word_pairs {
  word_vector low, high;
};

// Bytes of a strip to words. Interleaving stays within 16 bytes, as the layout of packed_matrix does.
HWY_INLINE word_pairs zero_extended(octet_vector codes) {
  const octets d;
  const words dw;
  const auto zero = hn::Zero(d);
  return {hn::BitCast(dw, hn::InterleaveLower(d, codes, zero)), hn::BitCast(dw, hn::InterleaveUpper(d, codes, zero))};
}

// How the bytes of a strip become words: those of one of its pairs of inputs.
struct int8_strip {
  static constexpr weight_element element = weight_element::int8;
  static constexpr bool fuses = false;
  static constexpr std::size_t pairs = 1;
  static HWY_INLINE word_pairs load(octet_vector codes, std::size_t) { return zero_extended(codes); }
};

HWY_INLINE octet_vector nibbles(octet_vector codes, std::size_t pair) {
  const octets d;
  const hn::Repartition<std::uint16_t, floats> du;
  if (pair == 1) codes = hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(du, codes)));
  return hn::And(codes, hn::Set(d, std::uint8_t{15}));
}

struct int4_strip {
  static constexpr weight_element element = weight_element::int4;
  static constexpr bool fuses = false;
  static constexpr std::size_t pairs = 2;
  static HWY_INLINE word_pairs load(octet_vector codes, std::size_t pair) {
    return zero_extended(nibbles(codes, pair));
  }
};

struct nf4_strip {
  static constexpr weight_element element = weight_element::nf4;
  static constexpr bool fuses = false;
  static constexpr std::size_t pairs = 2;
  static HWY_INLINE word_pairs load(octet_vector codes, std::size_t pair) {
    const octets d;
    const words dw;
    const auto indices = nibbles(codes, pair);
    const auto low = hn::TableLookupBytes(hn::LoadDup128(d, nf4_words.low.data()), indices);
    const auto high = hn::TableLookupBytes(hn::LoadDup128(d, nf4_words.high.data()), indices);
    return {hn::BitCast(dw, hn::InterleaveLower(d, low, high)), hn::BitCast(dw, hn::InterleaveUpper(d, low, high))};
  }
};

// sum[j] += a[2j] * b[2j] + a[2j + 1] * b[2j + 1]
template <bool kFused>
HWY_INLINE dword_vector add_pairs(dwords d, word_vector a, word_vector b, dword_vector sum) {
#if HWY_TARGET == HWY_AVX3  // Highway has no target with this instruction and without many others
  if constexpr (kFused) {
    asm volatile("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
#elif HWY_TARGET == HWY_AVX2
  if constexpr (kFused) {
    asm volatile("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum.raw) : "x"(a.raw), "x"(b.raw));
    return sum;
  }
#endif
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
  auto not_used = hn::Zero(d);
  auto now = hn::ReorderWidenMulAccumulate(d, a, b, sum, not_used);
#if !HWY_COMPILER_CLANG
  // Without this order GCC computes all products of a tile first and spills most registers.
  asm volatile("" : "+v"(now.raw));
#endif
  return now;
#else  // elsewhere that function may add other pairs
  const auto even = [&](word_vector v) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(hn::BitCast(d, v))); };
  const auto odd = [&](word_vector v) { return hn::ShiftRight<16>(hn::BitCast(d, v)); };
  return hn::Add(sum, hn::Add(hn::Mul(even(a), even(b)), hn::Mul(odd(a), odd(b))));
#endif
}

// The scales of a strip, from a line of them: dwords of two as two vectors.
HWY_INLINE void load_scales(floats d, const std::byte* from, bool half, float_vector& low, float_vector& high) {
  if (!half) return widen_pairs(d, from, low, high);
  const dwords di;
  const hn::Rebind<std::uint16_t, floats> bits;
  const hn::Rebind<hwy::float16_t, floats> halves;
  const auto pairs = hn::LoadU(di, reinterpret_cast<const std::int32_t*>(from));
  const auto widened = [&](dword_vector one_each) {
    return hn::PromoteTo(d, hn::BitCast(halves, hn::DemoteTo(bits, one_each)));
  };
  low = widened(hn::And(pairs, hn::Set(di, 0xffff)));
  high = widened(hn::And(hn::ShiftRight<16>(pairs), hn::Set(di, 0xffff)));
}

// As tile() in matmul.cpp, for quantised weights.
template <class Strip, std::size_t kRows, std::size_t kStrips>
HWY_INLINE void coded_tile(const tile_source& source, std::size_t strip, float* HWY_RESTRICT sums,
                           std::size_t panel_sums) {
  const floats d;
  const dwords di;
  const octets d8;
  constexpr std::size_t kLineInputs = 2 * Strip::pairs, kStripBytes = 4 * lanes;
  const std::byte* HWY_RESTRICT lines[kStrips];
  float* HWY_RESTRICT places[kStrips];
#pragma GCC unroll 4
  for (std::size_t s = 0; s < kStrips; ++s) {
    const std::size_t panel = (strip + s) / strips_per_panel;
    lines[s] = source.line + panel * source.panel_bytes + (strip + s) % strips_per_panel * kStripBytes;
    places[s] = sums + panel * panel_sums + (strip + s) % strips_per_panel * lanes;
  }
  constexpr std::size_t kTriples = (kRows + 2) / 3;
  const std::byte* HWY_RESTRICT rows[kTriples];
#pragma GCC unroll 4
  for (std::size_t t = 0; t < kTriples; ++t) rows[t] = source.in + 3 * t * source.in_stride;
  const std::size_t stride = source.in_stride;
  const std::byte* groups = source.groups;
  bool first = source.first;

  for (std::size_t begin = 0; begin < source.inputs; begin += source.group, groups += sizeof(coded_group)) {
    const std::byte* HWY_RESTRICT scales[kStrips];
#pragma GCC unroll 4
    for (std::size_t s = 0; s < kStrips; ++s) {
      scales[s] = lines[s];  // a strip of a line of scales has the same bytes
      lines[s] += scale_line_bytes;
    }
    const std::size_t group_end = std::min(begin + source.group, source.inputs);
    for (std::size_t i = begin; i < group_end;) {
      const std::size_t end = std::min(i + coded_run(Strip::element), group_end);
      dword_vector acc[kRows][kStrips][2];
#pragma GCC unroll 12
      for (std::size_t r = 0; r < kRows; ++r) {
        std::int32_t offset = 0;
        if (i == begin) std::memcpy(&offset, groups + r * stride + offsetof(coded_group, offset), sizeof offset);
#pragma GCC unroll 4
        for (std::size_t s = 0; s < kStrips; ++s) acc[r][s][0] = acc[r][s][1] = hn::Set(di, offset);
      }
      for (; i < end; i += kLineInputs) {
#pragma GCC unroll 2
        for (std::size_t p = 0; p < Strip::pairs; ++p) {
#pragma GCC unroll 4
          for (std::size_t s = 0; s < kStrips; ++s) {
            if (p == 0 && (kStrips < strips_per_panel || s % strips_per_panel == 0))
              hwy::Prefetch(lines[s] + prefetch_lines * line_bytes(Strip::element));
            const word_pairs weights = Strip::load(hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(lines[s])), p);
            if (p + 1 == Strip::pairs) lines[s] += coded_line_bytes;
#pragma GCC unroll 12
            for (std::size_t r = 0; r < kRows; ++r) {
              std::int32_t pair;
              std::memcpy(&pair, rows[r / 3] + r % 3 * stride + 2 * i + 4 * p, sizeof pair);
              const auto in = hn::BitCast(words(), hn::Set(di, pair));
              acc[r][s][0] = add_pairs<Strip::fuses>(di, in, weights.low, acc[r][s][0]);
              acc[r][s][1] = add_pairs<Strip::fuses>(di, in, weights.high, acc[r][s][1]);
            }
          }
        }
      }
#pragma GCC unroll 4
      for (std::size_t s = 0; s < kStrips; ++s) {
        float_vector low, high;
        load_scales(d, scales[s], source.half_scales, low, high);
#pragma GCC unroll 12
        for (std::size_t r = 0; r < kRows; ++r) {
          float scale;
          std::memcpy(&scale, groups + r * stride + offsetof(coded_group, scale), sizeof scale);
          float* const place = places[s] + r * panel_outputs;
          const auto add = [&](float* to, float_vector by, dword_vector sum) {
            const auto before = first ? hn::Zero(d) : hn::Load(d, to);
            hn::Store(hn::MulAdd(hn::ConvertTo(d, sum), hn::Mul(by, hn::Set(d, scale)), before), d, to);
          };
          add(place, low, acc[r][s][0]);
          add(place + half_panel, high, acc[r][s][1]);
        }
      }
      first = false;
    }
  }
}

#endif

}  // namespace skein::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
