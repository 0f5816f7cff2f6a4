#include "tests/kernels/stage_runs.hpp"
#include "kernels/make_stages.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "model/forward.hpp"
#include "tests/kernels/random_rwkv7.hpp"

namespace skein::test {

tokens random_tokens(std::size_t count, std::uint32_t vocab, std::uint64_t seed) {
  random_numbers random(seed);
  tokens ids(count);
  for (token_id& id : ids) id = static_cast<token_id>(random.below(vocab));
  return ids;
}

std::vector<float> state_of(const kernels::stages& stages, slot_id slot) {
  std::vector<float> state(stages.state_floats());
  stages.read_state(slot, state);
  return state;
}

std::vector<float> tick(kernels::stages& stages, const kernels::model_dims& dims, const std::vector<piece>& pieces) {
  tokens ids;
  std::vector<kernels::sequence_run> runs;
  for (const piece& p : pieces) {
    runs.push_back({p.slot, static_cast<std::uint32_t>(ids.size()), static_cast<std::uint32_t>(p.ids.size())});
    ids.insert(ids.end(), p.ids.begin(), p.ids.end());
  }
  const kernels::batch rows{ids, runs};
  model::forward(stages, dims.layers, rows);
  std::vector<std::uint32_t> wanted(ids.size());
  std::iota(wanted.begin(), wanted.end(), 0u);
  std::vector<float> logits(ids.size() * dims.vocab);
  stages.head(rows, wanted, logits);
  return logits;
}

std::vector<float> feed(kernels::stages& stages, const kernels::model_dims& dims, slot_id slot, const tokens& ids,
                        std::size_t chunk) {
  stages.clear_state(slot);
  std::vector<float> logits;
  for (std::size_t at = 0; at < ids.size(); at += chunk) {
    const auto end = std::min(at + chunk, ids.size());
    const auto part = tick(stages, dims, {{slot, tokens(ids.begin() + at, ids.begin() + end)}});
    logits.insert(logits.end(), part.begin(), part.end());
  }
  return logits;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

float difference(const std::vector<float>& got, const std::vector<float>& expected) {
  float most = 0, largest = 0;
  if (got.size() != expected.size()) return std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i])) return std::numeric_limits<float>::infinity();
    most = std::max(most, std::abs(got[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return most / largest;
}

std::vector<std::vector<float>> feed_in_batch(kernels::stages& stages, const kernels::model_dims& dims,
                                              const std::vector<tokens>& sequences, std::uint32_t rows_max,
                                              std::uint64_t seed) {
  random_numbers random(seed);
  const auto count = static_cast<std::uint32_t>(sequences.size());
  for (slot_id s = 0; s < count; ++s) stages.clear_state(s);
  std::vector<std::size_t> fed(count, 0);
  std::vector<std::vector<float>> logits(count);
  const auto all_fed = [&] {
    for (std::uint32_t s = 0; s < count; ++s)
      if (fed[s] < sequences[s].size()) return false;
    return true;
  };
  while (!all_fed()) {
    std::vector<piece> pieces;
    for (std::uint32_t i = 0, first = random.below(count); i < count; ++i) {
      const std::uint32_t s = (first + i) % count;
      const std::size_t left = sequences[s].size() - fed[s];
      const auto rows = static_cast<std::ptrdiff_t>(std::min<std::size_t>(left, random.below(rows_max + 1)));
      if (rows == 0) continue;
      const auto begin = sequences[s].begin() + static_cast<std::ptrdiff_t>(fed[s]);
      pieces.push_back({s, tokens(begin, begin + rows)});
      fed[s] += static_cast<std::size_t>(rows);
    }
    const auto together = tick(stages, dims, pieces);
    auto from = together.begin();
    for (const piece& p : pieces) {
      const auto end = from + static_cast<std::ptrdiff_t>(p.ids.size() * dims.vocab);
      logits[p.slot].insert(logits[p.slot].end(), from, end);
      from = end;
    }
  }
  return logits;
}

}  // namespace skein::test
