#pragma once
#include "kernels/gpu/device/vec.cuh"

/// Logits, weights and random numbers with the same bits as in src/sampling.
namespace skein::kernels::gpu {

inline constexpr float lowest_logit = -0x1.fffffep127f;

/// The logit of a token that may not be sampled: minus infinity, written so that every compiler treats it as a
/// constant.
__device__ inline float no_logit() { return bits_to_float(0xff800000u); }

/// Maps NaN to 0, infinities to the largest floats, -0 to 0. Without branches, because every logit passes through here.
__device__ inline float finite_logit(float logit) {
  const float clamped = fminf(fmaxf(logit, lowest_logit), -lowest_logit) + 0.0f;
  return logit == logit ? clamped : 0;
}

/// Float bits as an unsigned integer with the same order.
__device__ inline std::uint32_t to_key(float value) {
  const std::uint32_t bits = float_to_bits(value);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ inline float from_key(std::uint32_t key) {
  return bits_to_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

/// The smallest logit that is not below `value`.
__device__ inline float round_up(double value) {
  if (value <= static_cast<double>(lowest_logit)) return lowest_logit;
  const auto nearest = static_cast<float>(value);
  return static_cast<double>(nearest) < value ? nextafterf(nearest, -lowest_logit) : nearest;
}

/// exp(z) for z <= 0 with the same operations as sampling/logit_block.cpp.
__device__ inline float exp_of_negative(float z) {
  constexpr float smallest = -87;
  if (z < smallest) return 0;
  const float shifted = z * 0x1.715476p0f + 0x1.8p23f;  // the integer n in the low bits
  const float n = shifted - 0x1.8p23f;
  const float r = (z - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
  float e = 1.0f / 5040;
  e = e * r + 1.0f / 720;
  e = e * r + 1.0f / 120;
  e = e * r + 1.0f / 24;
  e = e * r + 1.0f / 6;
  e = e * r + 0.5f;
  e = e * r + 1.0f;
  e = e * r + 1.0f;
  return e * bits_to_float((float_to_bits(shifted) + 127) << 23);
}

/// sampling::philox4x32 in place, with the key `seed`.
__device__ inline void philox(std::uint32_t (&counter)[4], std::uint64_t seed) {
  std::uint32_t key[2] = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t even = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t odd = std::uint64_t{0xCD9E8D57} * counter[2];
    counter[0] = static_cast<std::uint32_t>(odd >> 32) ^ counter[1] ^ key[0];
    counter[1] = static_cast<std::uint32_t>(odd);
    counter[2] = static_cast<std::uint32_t>(even >> 32) ^ counter[3] ^ key[1];
    counter[3] = static_cast<std::uint32_t>(even);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
}
/// sampling::uniform
__device__ inline double uniform(std::uint64_t seed, std::uint32_t row, std::uint32_t index) {
  std::uint32_t counter[4] = {index, row, 0, 0};
  philox(counter, seed);
  const std::uint64_t bits = static_cast<std::uint64_t>(counter[1]) << 32 | counter[0];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace skein::kernels::gpu
