#pragma once
#include <type_traits>

#include "kernels/gpu/device/convert.cuh"
#include "kernels/gpu/types/coded_layout.hpp"
#include "kernels/weights/e4m3.hpp"

/// Decodes quantised weights in registers, from the layout of types/coded_layout.hpp. A weight is scale * q (or scale *
/// nf4_values[q], the value rounded to the element type first) as one product, rounded to the element type: exactly the
/// matrix that decode_matrix writes. CUDA and the emulator.
namespace skein::kernels::gpu {

/// The words of a lane for eight outputs by 32 inputs (two steps).
template <weight_element code>
struct code_words {
  static constexpr unsigned count = code_bits(code) == 8 ? 2 : 1;
  std::uint32_t of[count];
};

/// Loads a word that is read once: it does not stay in the L1 cache, and what follows it is brought to the L2 cache.
__device__ inline std::uint32_t load_once(const std::byte* from) {
  std::uint32_t word;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.b32 %0, [%1];" : "=r"(word) : "l"(from));
#else
  memcpy(&word, __builtin_assume_aligned(from, sizeof word), sizeof word);
#endif
  return word;
}

__device__ inline std::uint32_t load_word(const std::byte* from) {
  std::uint32_t word;
  memcpy(&word, __builtin_assume_aligned(from, sizeof word), sizeof word);
  return word;
}

/// Loads the words of a lane from those of a block. `get(bytes)` loads the word at that distance.
template <weight_element code, typename Get>
__device__ code_words<code> load_words(unsigned two_steps, unsigned upper, unsigned lane, Get get) {
  code_words<code> words;
#pragma unroll
  for (unsigned i = 0; i < code_words<code>::count; ++i)
    words.of[i] = get((((two_steps * code_words<code>::count + i) * 2 + upper) * 32 + lane) * 4);
  return words;
}

/// The scale of output i in the lower half, of output i + 8 in the upper half.
using scale_pair = std::uint32_t;

/// The value of a code before it is scaled; for fp16 divided by 256.
template <typename Element, weight_element code>
__device__ float value_of_code(int q) {
  constexpr float factor = std::is_same_v<Element, half> ? 1 / half_scale_factor : 1;
  if constexpr (code == weight_element::fp8) return e4m3_to_f32(static_cast<std::uint8_t>(q)) * factor;
  if constexpr (code != weight_element::nf4) return static_cast<float>(q) * factor;
  constexpr float values[16] = {
      nf4_values[0] * factor,  nf4_values[1] * factor,  nf4_values[2] * factor,  nf4_values[3] * factor,
      nf4_values[4] * factor,  nf4_values[5] * factor,  nf4_values[6] * factor,  nf4_values[7] * factor,
      nf4_values[8] * factor,  nf4_values[9] * factor,  nf4_values[10] * factor, nf4_values[11] * factor,
      nf4_values[12] * factor, nf4_values[13] * factor, nf4_values[14] * factor, nf4_values[15] * factor};
  return to_float(from_float<Element>(values[q]));
}

template <typename Element>
__device__ float scale_of(scale_pair scales, unsigned upper) {
  const std::uint32_t bits = scales >> 16 * upper & 0xffff;
  if constexpr (std::is_same_v<Element, half>) {
    half value;
    const auto narrow = static_cast<std::uint16_t>(bits);
    memcpy(&value, &narrow, sizeof value);
    return to_float(value);
  }
  return bits_to_float(bits << 16);
}

/// A weight from its code.
template <typename Element, weight_element code>
__device__ Element decode_one(int q, float scale) {
  return from_float<Element>(value_of_code<Element, code>(q) * scale);
}

namespace codes {

/// Byte i of the result is the byte of `high` and `low`, in one, that the lower three bits of nibble i name.
__device__ inline std::uint32_t select(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(low, high, selector);
#else
  std::uint32_t bytes = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned from = selector >> 4 * i & 7;
    bytes |= ((from < 4 ? low >> 8 * from : high >> 8 * (from - 4)) & 255) << 8 * i;
  }
  return bytes;
#endif
}
/// a * b + c of both halves of a word, rounded once. Not CUDA: the sum must be exact in fp32.
template <typename Element>
__device__ std::uint32_t fused(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t d = 0;
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<Element, half>) {
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  } else {
#if __CUDA_ARCH__ >= 800
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
#endif
  }
#else
  const auto upper_or_lower = [](std::uint32_t word, unsigned i) {
    Element value;
    const auto bits = static_cast<std::uint16_t>(word >> 16 * i);
    memcpy(&value, &bits, sizeof value);
    return static_cast<double>(to_float(value));
  };
  for (unsigned i = 0; i < 2; ++i) {
    const double sum = upper_or_lower(a, i) * upper_or_lower(b, i) + upper_or_lower(c, i);
    const Element rounded = from_float<Element>(static_cast<float>(sum));
    std::uint16_t bits = 0;
    memcpy(&bits, &rounded, sizeof bits);
    d |= std::uint32_t{bits} << 16 * i;
  }
#endif
  return d;
}
/// a * b of both halves of a word. Adding -0 keeps the sign of zero.
template <typename Element>
__device__ std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  return fused<Element>(a, b, 0x80008000);
}
/// (a & b) | c
template <std::uint32_t b, std::uint32_t c>
__device__ std::uint32_t masked(std::uint32_t a) {
#if defined(__CUDA_ARCH__)
  std::uint32_t d;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(a), "n"(b), "n"(c));
  return d;
#else
  return (a & b) | c;
#endif
}

/// Four bytes of a table of 16, by the four nibbles in the lower half of `which`. `low`: which & 0x7777; `pick`: 4 in
/// every nibble whose code is 8 or more, else 0, plus the nibble's place.
__device__ inline std::uint32_t look_up(const std::uint32_t (&table)[4], std::uint32_t low, std::uint32_t pick) {
  return select(select(table[0], table[1], low), select(table[2], table[3], low), pick);
}

constexpr std::uint32_t round_to_bf16(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
/// Of a normal number.
constexpr std::uint32_t round_to_half(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  return magnitude == 0 ? 0 : (bits >> 16 & 0x8000) | (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13;
}
struct nf4_table {
  std::uint32_t low[4], high[4];  // bytes of the 16 values
};
template <typename Element>
constexpr nf4_table make_nf4_table() {
  nf4_table table{};
  for (unsigned i = 0; i < 16; ++i) {
    const std::uint32_t bits =
        std::is_same_v<Element, half> ? round_to_half(nf4_values[i] / half_scale_factor) : round_to_bf16(nf4_values[i]);
    table.low[i / 4] |= (bits & 255) << 8 * (i % 4), table.high[i / 4] |= (bits >> 8 & 255) << 8 * (i % 4);
  }
  return table;
}

/// Where the bytes 2i + q of a word, for both i, are in the halves of the result, with a byte of `upper` above each.
__device__ inline std::uint32_t bytes_of_pair(std::uint32_t word, unsigned q, std::uint32_t upper) {
  return select(word, upper, q == 0 ? 0x4240 : 0x4341);
}
/// The int8 codes of a pair, not scaled. In fp16 divided by 256: 1024 + byte, divided by 256, less 4.5. In bf16 divided
/// by 2^13: a byte is a subnormal number, or one of the next exponent, 2^-133 * byte; times 2^120, less 2^-6.
template <typename Element>
__device__ std::uint32_t values_of_bytes(std::uint32_t word, unsigned q) {
  if constexpr (std::is_same_v<Element, half>)
    return fused<half>(bytes_of_pair(word, q, 0x64646464), 0x1c001c00, 0xc480c480);
  return fused<Element>(bytes_of_pair(word, q, 0), 0x7b807b80, 0xbc80bc80);
}
/// The scale for values_of_bytes(): exact, except where 2^13 times it is infinite.
template <typename Element>
__device__ std::uint32_t scale_of_bytes(std::uint32_t scale) {
  if constexpr (std::is_same_v<Element, half>) return scale;
  return product<Element>(scale, 0x46004600);
}

/// Two scaled fp8 weights, rounded once. Shifted to the place of exponent and mantissa, a code has 2^-8 times its value
/// in fp16, which is what scales there need, and 2^-120 times in bf16.
template <typename Element>
__device__ std::uint32_t pair_of_fp8(std::uint32_t word, std::uint32_t scale) {
  std::uint32_t magnitudes;
  if constexpr (std::is_same_v<Element, half>)
    magnitudes = word << 7 & 0x3f803f80;
  else
    magnitudes = product<Element>(word << 4 & 0x07f007f0, 0x7b807b80);  // 2^120; exact
  return product<Element>(magnitudes, scale) ^ (word & 0x80008000);
}

/// The values of the int4 codes at bits 0 and 16, not scaled: 128 + nibble, less 136, or for fp16 1024 + nibble,
/// divided by 256, less 4.03125.
template <typename Element>
__device__ std::uint32_t value_of_nibbles(std::uint32_t w) {
  if constexpr (std::is_same_v<Element, half>)
    return fused<half>(masked<0x000f000f, 0x64006400>(w), 0x1c001c00, 0xc408c408);
  return fused<Element>(masked<0x000f000f, 0x43004300>(w), 0x3f803f80, 0xc308c308);
}
/// The same of those at bits 4 and 20; for fp16: 1024 + 16 * nibble, divided by 4096, less 0.28125.
template <typename Element>
__device__ std::uint32_t value_of_upper_nibbles(std::uint32_t w) {
  if constexpr (std::is_same_v<Element, half>)
    return fused<half>(masked<0x00f000f0, 0x64006400>(w), 0x0c000c00, 0xb480b480);
  return value_of_nibbles<Element>(w >> 4);
}

/// The values of the four NF4 codes in the lower half of a word, not scaled.
template <typename Element>
__device__ void values_of_four(std::uint32_t four, const nf4_table& table, std::uint32_t& first,
                               std::uint32_t& second) {
  const std::uint32_t low = four & 0x7777, pick = masked<0x4444, 0x3210>(four >> 1);
  const std::uint32_t bytes[2] = {look_up(table.low, low, pick), look_up(table.high, low, pick)};
  first = select(bytes[0], bytes[1], 0x5140), second = select(bytes[0], bytes[1], 0x7362);
}

}  // namespace codes

/// A scale of a pair, in both halves.
__device__ inline std::uint32_t one_scale(scale_pair scales, unsigned upper) {
  return codes::select(scales, 0, upper == 0 ? 0x1010 : 0x3232);
}

/// Decodes the weights of a lane for 16 inputs.
template <typename Element, weight_element code>
class decoder {
  static_assert(sizeof(Element) == 2);

 public:
  /// For long loops, `zero` is 0, but the compiler does not know that, so it keeps the table of NF4 in registers: it
  /// would load constants again for each code.
  __device__ explicit decoder(std::uint32_t zero = 0) {
    constexpr codes::nf4_table table = codes::make_nf4_table<Element>();
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) table_.low[i] = table.low[i] ^ zero, table_.high[i] = table.high[i] ^ zero;
  }

  /// Eight outputs, as the operand of the instruction's narrow side. `scale`: of the lane's output, in both halves.
  /// `step`: 0 or 1 of the two in the words.
  __device__ void operator()(const code_words<code>& words, unsigned step, std::uint32_t scale,
                             std::uint32_t (&to)[2]) const;
  /// Sixteen outputs, as the operand of its wide side.
  __device__ void operator()(const code_words<code> (&both)[2], unsigned step, scale_pair scales,
                             std::uint32_t (&to)[4]) const {
#pragma unroll
    for (unsigned upper = 0; upper < 2; ++upper) {
      std::uint32_t two[2];
      (*this)(both[upper], step, one_scale(scales, upper), two);
      to[upper] = two[0], to[2 + upper] = two[1];
    }
  }

 private:
  codes::nf4_table table_;
};

template <typename Element, weight_element code>
__device__ void decoder<Element, code>::operator()(const code_words<code>& words, unsigned step, std::uint32_t scale,
                                                   std::uint32_t (&to)[2]) const {
  if constexpr (code == weight_element::int8) {
    const std::uint32_t factor = codes::scale_of_bytes<Element>(scale);
#pragma unroll
    for (unsigned q = 0; q < 2; ++q)
      to[q] = codes::product<Element>(codes::values_of_bytes<Element>(words.of[step], q), factor);
  } else if constexpr (code == weight_element::fp8) {
    to[0] = codes::pair_of_fp8<Element>(words.of[step], scale);
    to[1] = codes::pair_of_fp8<Element>(codes::select(words.of[step], 0, 0x2301), scale);
  } else {
    if constexpr (code == weight_element::int4) {
      const std::uint32_t w = words.of[0] >> 8 * step;
      to[0] = codes::value_of_nibbles<Element>(w), to[1] = codes::value_of_upper_nibbles<Element>(w);
    } else {
      codes::values_of_four<Element>(words.of[0] >> 16 * step, table_, to[0], to[1]);
    }
    to[0] = codes::product<Element>(to[0], scale), to[1] = codes::product<Element>(to[1], scale);
  }
}

/// Decodes the weights of a lane, group by group, for sums that are multiplied by sum_factor at the end.
template <typename Element, weight_element code>
class group_decoder {
 public:
  static constexpr float sum_factor = 1;

  /// `zero`: see decoder.
  __device__ explicit group_decoder(std::uint32_t zero) : decode_(zero) {}

  /// Another group, with these scales.
  __device__ void begin(scale_pair scales) {
#pragma unroll
    for (unsigned upper = 0; upper < 2; ++upper) scales_[upper] = one_scale(scales, upper);
  }
  /// Eight outputs, the lower or the upper ones, by 16 inputs.
  __device__ void operator()(const code_words<code>& words, unsigned upper, unsigned step,
                             std::uint32_t (&to)[2]) const {
    decode_(words, step, scales_[upper], to);
  }

 private:
  decoder<Element, code> decode_;
  std::uint32_t scales_[2] = {};
};

/// To bf16 by one fused multiply-add for two weights. Of int8 the byte q + 128 is a subnormal number, or one of the
/// next exponent, 2^-133 * (q + 128); times 2^113 * scale, less 2^-13 * scale, it is 2^-20 * scale * q, rounded once as
/// the weight is. So are the nibbles q + 8 of int4 at bits 0 and 16, and 16 times that at bits 4 and 20. Without the
/// factor of 2^-20, scales from 2^-6 on would be infinite; with it they may be up to 2^14, and weights down to 2^-106.
template <weight_element code>
requires(code == weight_element::int8 || code == weight_element::int4) class group_decoder<bf16, code> {
 public:
  static constexpr float sum_factor = 1 << 20;

  __device__ explicit group_decoder(std::uint32_t) {}

  __device__ void begin(scale_pair scales) {
    const std::uint32_t factors[2] = {codes::product<bf16>(scales, 0x78007800),   // 2^113
                                      codes::product<bf16>(scales, 0x76007600)};  // 2^109
    const std::uint32_t offsets =
        codes::product<bf16>(scales, code == weight_element::int8 ? 0xb900b900 : 0xb700b700);  // -2^-13 or -2^-17
#pragma unroll
    for (unsigned upper = 0; upper < 2; ++upper) {
      less_[upper] = one_scale(offsets, upper);
#pragma unroll
      for (unsigned i = 0; i < 2; ++i) factor_[i][upper] = one_scale(factors[i], upper);
    }
  }
  __device__ void operator()(const code_words<code>& words, unsigned upper, unsigned step,
                             std::uint32_t (&to)[2]) const {
    const std::uint32_t factor = factor_[0][upper], less = less_[upper];
    if constexpr (code == weight_element::int8) {
      to[0] = codes::fused<bf16>(codes::bytes_of_pair(words.of[step], 0, 0), factor, less);
      to[1] = codes::fused<bf16>(codes::bytes_of_pair(words.of[step], 1, 0), factor, less);
    } else {
      const std::uint32_t word = words.of[0] >> 8 * step;
      to[0] = codes::fused<bf16>(word & 0x000f000f, factor, less);
      to[1] = codes::fused<bf16>(word & 0x00f000f0, factor_[1][upper], less);
    }
  }

 private:
  std::uint32_t factor_[2][2] = {}, less_[2] = {};  // int8 has no second factor
};

/// Sixteen outputs by 16 inputs of a group, as the operand of an instruction's wide side. `Decoder`: a group_decoder or
/// nf4_pairs.
template <typename Decoder, weight_element code>
__device__ void decode_step(const Decoder& decode, const code_words<code> (&both)[2], unsigned step,
                            std::uint32_t (&to)[4]) {
#pragma unroll
  for (unsigned upper = 0; upper < 2; ++upper) {
    std::uint32_t two[2];
    decode(both[upper], upper, step, two);
    to[upper] = two[0], to[2 + upper] = two[1];
  }
}

/// A lane's part of a block, as the operands of its four steps. `codes`: the first word of the lane; `scales`: its
/// pair, and `scale_step` bytes behind it that of the second group, if there are two `groups`.
template <weight_element code, unsigned groups, typename Decoder>
__device__ void decode_operands(Decoder& decode, const std::byte* codes, const std::byte* scales,
                                std::uint32_t scale_step, std::uint32_t (&to)[4][4]) {
#pragma unroll
  for (unsigned two = 0; two < 2; ++two) {
    code_words<code> words[2];
#pragma unroll
    for (unsigned upper = 0; upper < 2; ++upper)
      words[upper] = load_words<code>(two, upper, 0, [&](unsigned bytes) { return load_word(codes + bytes); });
    if (two < groups) decode.begin(load_word(scales + two * scale_step));
#pragma unroll
    for (unsigned k = 0; k < 2; ++k) decode_step(decode, words, k, to[2 * two + k]);
  }
}

}  // namespace skein::kernels::gpu
