#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/gpu/runtime/runtime.hpp"
#include "kernels/gpu/types/elements.hpp"

/// Element types of matrices, activations and stored states. All arithmetic is done in fp32.
namespace skein::kernels::gpu {

/// The upper half of an fp32. A type of our own, because the vendors' types differ.
struct bf16 {
  std::uint16_t bits;
};

__device__ inline float bits_to_float(std::uint32_t bits) {
  union {
    std::uint32_t bits;
    float value;
  } as{bits};
  return as.value;
}
__device__ inline std::uint32_t float_to_bits(float value) {
  union {
    float value;
    std::uint32_t bits;
  } as{value};
  return as.bits;
}

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(half value) { return half_to_float(value); }
__device__ inline float to_float(bf16 value) { return bits_to_float(static_cast<std::uint32_t>(value.bits) << 16); }

/// Rounds to nearest even. Values beyond the range of fp16 become its largest value, so that one large activation (relu
/// squared of 256 is enough) does not turn a whole sequence into infinities. NaN stays NaN.
template <typename Element>
__device__ Element from_float(float value);

template <>
__device__ inline float from_float<float>(float value) {
  return value;
}
template <>
__device__ inline half from_float<half>(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  union {
    std::uint16_t bits;
    half value;
  } as;
  asm("cvt.rn.satfinite.f16.f32 %0, %1;" : "=h"(as.bits) : "f"(value));
  return as.value;
#else
  constexpr float largest = 65504;
  return float_to_half(value > largest ? largest : value < -largest ? -largest : value);
#endif
}
template <>
__device__ inline bf16 from_float<bf16>(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  bf16 rounded;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(value));
  return rounded;
#else
  const std::uint32_t bits = float_to_bits(value);
  if (value != value) return {static_cast<std::uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
#endif
}

/// Two elements as stored in memory.
template <typename Element>
__device__ std::uint32_t rounded_pair(float first, float second) {
  std::uint32_t bits;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<Element, half>) {
    asm("cvt.rn.satfinite.f16x2.f32 %0, %2, %1;" : "=r"(bits) : "f"(first), "f"(second));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(bits) : "f"(first), "f"(second));
  }
#else
  const Element both[2] = {from_float<Element>(first), from_float<Element>(second)};
  memcpy(&bits, both, sizeof bits);
#endif
  return bits;
}

/// to[i] = from_float(values[i]), with the same bits except for NaNs; uses an instruction for two elements if the
/// hardware has one.
template <typename Element, unsigned count>
__device__ void from_floats(const float (&values)[count], Element (&to)[count]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (sizeof(Element) == 2 && count % 2 == 0) {
#pragma unroll
    for (unsigned i = 0; i < count; i += 2) {
      const std::uint32_t bits = rounded_pair<Element>(values[i], values[i + 1]);
      memcpy(&to[i], &bits, sizeof bits);
    }
  } else
#endif
  {
#pragma unroll
    for (unsigned i = 0; i < count; ++i) to[i] = from_float<Element>(values[i]);
  }
}

/// For launchers: calls `body.template operator()<Element>()` with the type of `e`.
template <typename Body>
auto with_element(element e, Body body) {
  switch (e) {
    case element::f32: return body.template operator()<float>();
    case element::f16: return body.template operator()<half>();
    case element::bf16: break;
  }
  return body.template operator()<bf16>();
}

}  // namespace skein::kernels::gpu
