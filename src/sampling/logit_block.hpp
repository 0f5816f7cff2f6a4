#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <span>

/// The inner loops over a row of logits, 64 tokens at a time. Each CPU uses its widest vectors, but all perform the
/// same operations in the same order (sums in 8 strands, no fused multiply-add), so equal logits give equal bits
/// everywhere.
namespace skein::sampling {

inline constexpr std::size_t block_tokens = 64;
inline constexpr float lowest_logit = std::numeric_limits<float>::lowest();
inline constexpr float no_logit = -std::numeric_limits<float>::infinity();  ///< of a token that must not be sampled

struct alignas(64) logit_block : std::array<float, block_tokens> {};

/// Maps a logit to a finite value: NaN to 0, infinities to the largest floats, -0 to 0.
[[nodiscard]] inline float finite_logit(float logit) {
  if (logit != logit) return 0;
  if (logit < lowest_logit) return lowest_logit;
  if (logit > -lowest_logit) return -lowest_logit;
  return logit + 0.0f;
}

/// Copies logits, mapped by finite_logit, into just enough blocks; the rest of the last block becomes no_logit. True if
/// no logit was NaN or infinite.
bool read_blocks(std::span<const float> logits, std::span<logit_block> out);

/// Sets all tokens to no_logit except those whose bit is set: bit i % 32 of word i / 32; missing words are 0.
void restrict_blocks(std::span<const std::uint32_t> allowed, std::span<logit_block> blocks);

/// The maximum of each block; returns the largest of all.
float find_maxima(std::span<const logit_block> blocks, std::span<float> maxima);

/// weights = exp((block - max) * scale), for scale > 0 and no logit above max, and their sum for each block; returns
/// the sum of all. Relative error below 1e-6 for weights above 1e-9; weights below 2e-38 are 0. May work in place.
double exponentiate_blocks(std::span<const logit_block> blocks, float max, float scale, std::span<logit_block> weights,
                           std::span<double> sums);

}  // namespace skein::sampling
