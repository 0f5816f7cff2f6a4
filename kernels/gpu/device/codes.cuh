#pragma once
#include <type_traits>

#include "kernels/gpu/device/convert.cuh"
#include "kernels/gpu/types/coded_layout.hpp"

/// Decodes quantised weights in registers, from the layout of types/coded_layout.hpp. A weight is scale * q (or scale *
/// nf4_values[q], the value rounded to the element type first) as one product, rounded to the element type: exactly the
/// matrix that decode_matrix writes. CUDA and the emulator.
namespace skein::kernels::gpu {

/// The codes of a lane for 16 outputs by 16 inputs.
template <weight_element code>
struct code_words {
  static constexpr unsigned count = code == weight_element::int8 ? 2 : 1;
  std::uint32_t of[count];
};

/// Loads 4 or 8 bytes that are read once: they do not stay in the L1 cache, and what follows them is brought to the L2
/// cache.
template <typename T>
__device__ T load_once(const std::byte* from) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  T value;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  std::uint32_t words[sizeof(T) / 4];
  if constexpr (sizeof(T) == 4)
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.b32 %0, [%1];" : "=r"(words[0]) : "l"(from));
  else
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v2.b32 {%0, %1}, [%2];"
                 : "=r"(words[0]), "=r"(words[1])
                 : "l"(from));
  memcpy(&value, words, sizeof value);
#else
  memcpy(&value, __builtin_assume_aligned(from, sizeof(T)), sizeof value);
#endif
  return value;
}

/// The scale of output i in the lower half, of output i + 8 in the upper half.
using scale_pair = std::uint32_t;

/// The eight codes of a lane as integers, in order.
template <weight_element code>
__device__ int code_at(const code_words<code>& words, unsigned c) {
  if constexpr (code == weight_element::int8) return static_cast<int>(words.of[c / 4] >> 8 * (c % 4) & 255) - 128;
  if constexpr (code == weight_element::int4)
    return static_cast<int>(words.of[0] >> (4 * (c / 2) + 16 * (c % 2)) & 15) - 8;
  return static_cast<int>(words.of[0] >> 4 * c & 15);
}

/// The value of a code before it is scaled; for fp16 divided by 256.
template <typename Element, weight_element code>
__device__ float value_of_code(int q) {
  constexpr float factor = std::is_same_v<Element, half> ? 1 / half_scale_factor : 1;
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

#if defined(__CUDA_ARCH__)
__device__ inline std::uint32_t select(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
  return __byte_perm(low, high, selector);
}
__device__ inline std::uint32_t halves_fma(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
__device__ inline std::uint32_t halves_product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t d;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
/// (a & b) | c
template <std::uint32_t b, std::uint32_t c>
__device__ std::uint32_t masked(std::uint32_t a) {
  std::uint32_t d;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(a), "n"(b), "n"(c));
  return d;
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
template <typename Element>
struct nf4_table {
  std::uint32_t low[4] = {}, high[4] = {};  // bytes of the 16 values
  constexpr nf4_table() {
    for (unsigned i = 0; i < 16; ++i) {
      const std::uint32_t bits = std::is_same_v<Element, half> ? round_to_half(nf4_values[i] / half_scale_factor)
                                                               : round_to_bf16(nf4_values[i]);
      low[i / 4] |= (bits & 255) << 8 * (i % 4), high[i / 4] |= (bits >> 8 & 255) << 8 * (i % 4);
    }
  }
};

/// The values of the codes, not scaled.
template <typename Element, weight_element code>
__device__ void values_of(const code_words<code>& words, std::uint32_t (&to)[4]) {
  constexpr bool is_half = std::is_same_v<Element, half>;
  const std::uint32_t w = words.of[0];
  if constexpr (code == weight_element::int8) {  // fp16 only: 1024 + byte, divided by 256, less 4.5
#pragma unroll
    for (unsigned j = 0; j < 4; ++j)
      to[j] = halves_fma(select(words.of[j / 2], 0x64646464, j % 2 == 0 ? 0x4140 : 0x4342), 0x1c001c00, 0xc480c480);
  } else if constexpr (code == weight_element::int4 && is_half) {
    // 1024 + nibble, divided by 256, less 4.03125; or 1024 + 16 * nibble, divided by 4096, less 0.28125.
    const std::uint32_t upper = w >> 8;
    to[0] = halves_fma(masked<0x000f000f, 0x64006400>(w), 0x1c001c00, 0xc408c408);
    to[1] = halves_fma(masked<0x00f000f0, 0x64006400>(w), 0x0c000c00, 0xb480b480);
    to[2] = halves_fma(masked<0x000f000f, 0x64006400>(upper), 0x1c001c00, 0xc408c408);
    to[3] = halves_fma(masked<0x00f000f0, 0x64006400>(upper), 0x0c000c00, 0xb480b480);
  } else if constexpr (code == weight_element::int4) {
#if __CUDA_ARCH__ >= 800
#pragma unroll
    for (unsigned j = 0; j < 4; ++j)  // 128 + nibble, less 136
      asm("fma.rn.bf16x2 %0, %1, %2, %3;"
          : "=r"(to[j])
          : "r"(masked<0x000f000f, 0x43004300>(w >> 4 * j)), "r"(0x3f803f80), "r"(0xc308c308));
#endif
  } else {
    constexpr nf4_table<Element> table;
#pragma unroll
    for (unsigned i = 0; i < 2; ++i) {
      const std::uint32_t four = i == 0 ? w : w >> 16;
      const std::uint32_t low = four & 0x7777, pick = masked<0x4444, 0x3210>(four >> 1);
      const std::uint32_t bytes[2] = {look_up(table.low, low, pick), look_up(table.high, low, pick)};
      to[2 * i] = select(bytes[0], bytes[1], 0x5140);
      to[2 * i + 1] = select(bytes[0], bytes[1], 0x7362);
    }
  }
}
#endif

}  // namespace codes

/// The weights of a lane as an operand of a matrix instruction.
template <typename Element, weight_element code>
__device__ void decode(const code_words<code>& words, scale_pair scales, std::uint32_t (&to)[4]) {
  static_assert(sizeof(Element) == 2);
#if defined(__CUDA_ARCH__)
  if constexpr (code == weight_element::int8 && !std::is_same_v<Element, half>) {
    // A byte in the lowest bits of 2^23, less 2^23 + 128.
    const float scale[2] = {bits_to_float(scales << 16), bits_to_float(scales & 0xffff0000)};
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) {
      const std::uint32_t word = words.of[j / 2];
      const float first = bits_to_float(codes::select(word, 0x4b000000, 0x7440 + 2 * (j % 2))) - 8388736.0f;
      const float second = bits_to_float(codes::select(word, 0x4b000000, 0x7441 + 2 * (j % 2))) - 8388736.0f;
      to[j] = rounded_pair<Element>(first * scale[j % 2], second * scale[j % 2]);
    }
  } else {
    const std::uint32_t scale[2] = {codes::select(scales, 0, 0x1010), codes::select(scales, 0, 0x3232)};
    std::uint32_t values[4];
    codes::values_of<Element>(words, values);
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) {
      if constexpr (std::is_same_v<Element, half>) {
        to[j] = codes::halves_product(values[j], scale[j % 2]);
      } else {
#if __CUDA_ARCH__ >= 800
        asm("fma.rn.bf16x2 %0, %1, %2, %3;"
            : "=r"(to[j])
            : "r"(values[j]), "r"(scale[j % 2]), "r"(0x80008000));  // -0: keeps the sign of zero
#endif
      }
    }
  }
#else
  for (unsigned j = 0; j < 4; ++j) {
    const float scale = scale_of<Element>(scales, j % 2);
    const Element both[2] = {decode_one<Element, code>(code_at(words, 2 * j), scale),
                             decode_one<Element, code>(code_at(words, 2 * j + 1), scale)};
    memcpy(&to[j], both, sizeof to[j]);
  }
#endif
}

}  // namespace skein::kernels::gpu
