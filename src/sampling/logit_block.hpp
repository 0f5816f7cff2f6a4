#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <span>

/// The inner loops over a row of logits, 64 tokens at a time. Each processor uses the widest vectors it has, but all do
/// the same operations in the same order (sums in 8 strands, nothing fused), so equal logits give equal bits
/// everywhere.
namespace skein::sampling {

inline constexpr std::size_t block_tokens = 64;
inline constexpr float lowest_logit = std::numeric_limits<float>::lowest();
inline constexpr float no_logit = -std::numeric_limits<float>::infinity();  ///< of a token that may not be drawn

struct alignas(64) logit_block : std::array<float, block_tokens> {};

/// One logit as the sampler understands it: NaN is 0, infinities are the largest floats, -0 is 0.
[[nodiscard]] inline float finite_logit(float logit) {
  if (logit != logit) return 0;
  if (logit < lowest_logit) return lowest_logit;
  if (logit > -lowest_logit) return -lowest_logit;
  return logit + 0.0f;
}

/// Reads logits as finite_logit does into just enough blocks; the rest of the last block becomes no_logit. True when no
/// logit was NaN or infinite.
bool read_blocks(std::span<const float> logits, std::span<logit_block> out);

/// Leaves only the tokens whose bit is set: bit i % 32 of word i / 32; missing words are 0.
void restrict_blocks(std::span<const std::uint32_t> allowed, std::span<logit_block> blocks);

/// The maximum of each block; returns the largest of all.
float find_maxima(std::span<const logit_block> blocks, std::span<float> maxima);

/// weights = exp((block - max) * scale), for scale > 0 and no logit above max, and their sum for each block; returns
/// the sum of all. Relative error below 1e-6 for weights above 1e-9; weights below 2e-38 are 0. May work in place.
double exponentiate_blocks(std::span<const logit_block> blocks, float max, float scale, std::span<logit_block> weights,
                           std::span<double> sums);

}  // namespace skein::sampling
