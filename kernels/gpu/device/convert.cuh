#pragma once
#include <cstdint>

#include "kernels/gpu/elements.hpp"
#include "kernels/gpu/runtime/runtime.hpp"

/// Element types of matrices, activations and stored states, and fp32, in which all arithmetic is done.
namespace skein::kernels::gpu {

/// The upper half of an fp32. Our own type, as the vendors' differ.
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

/// Rounds to nearest even. What is beyond an fp16 becomes its largest value, so that one large activation (relu squared
/// of 256 is enough) does not turn a whole sequence into infinities; no number stays no number.
template <typename Element>
__device__ Element from_float(float value);

template <>
__device__ inline float from_float<float>(float value) {
  return value;
}
template <>
__device__ inline half from_float<half>(float value) {
  constexpr float largest = 65504;
  return float_to_half(value > largest ? largest : value < -largest ? -largest : value);
}
template <>
__device__ inline bf16 from_float<bf16>(float value) {
  const std::uint32_t bits = float_to_bits(value);
  if (value != value) return {static_cast<std::uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

/// For launchers: calls `body.template operator()<Element>()` with the type that `e` names.
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
