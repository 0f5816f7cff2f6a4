#pragma once
#include <cstdint>
#include <vector>

#include "kernels/make_stages.hpp"

/// What tests of whole models do with any implementation of the stages.
namespace skein::test {

using tokens = std::vector<token_id>;

[[nodiscard]] tokens random_tokens(std::size_t count, std::uint32_t vocab, std::uint64_t seed);

[[nodiscard]] std::vector<float> state_of(const kernels::stages& stages, slot_id slot);

/// A piece of a sequence for one slot of a tick.
struct piece {
  slot_id slot;
  tokens ids;
};

/// Runs one tick; the logits of all rows, in the order of the pieces.
std::vector<float> tick(kernels::stages& stages, const kernels::model_dims& dims, const std::vector<piece>& pieces);

/// Feeds a sequence from a fresh state in chunks; the logits of all its rows.
std::vector<float> feed(kernels::stages& stages, const kernels::model_dims& dims, slot_id slot, const tokens& ids,
                        std::size_t chunk);

/// Feeds all sequences, each in the slot of its index, in random ticks of random pieces (at most `rows_max` rows of a
/// sequence a tick); the logits of each.
std::vector<std::vector<float>> feed_in_batch(kernels::stages& stages, const kernels::model_dims& dims,
                                              const std::vector<tokens>& sequences, std::uint32_t rows_max,
                                              std::uint64_t seed);

[[nodiscard]] bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

/// Largest difference by largest expected value; infinite if a value is NaN (unwritten memory) or missing.
[[nodiscard]] float difference(const std::vector<float>& got, const std::vector<float>& expected);

/// One token each for `count` slots in a scattered order; the count is not divisible by 7.
inline std::vector<kernels::sequence_run> one_token_runs(std::uint32_t count) {
  std::vector<kernels::sequence_run> runs;
  for (std::uint32_t i = 0; i < count; ++i) runs.push_back({(i * 7) % count, i, 1});
  return runs;
}

}  // namespace skein::test
