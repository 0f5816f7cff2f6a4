#include "sampling/selection.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

// The threshold is the largest t for which the tokens with p >= t reach top_k in number or top_p in mass. It is found
// without sorting, in two steps:
//
// Candidates. Each limit gives a lower bound of the threshold, so only tokens at or above the highest bound are
// candidates. For top_k it is the k-th largest block maximum. For top_p it is (1 - top_p) / vocab: the tokens below it
// weigh less than 1 - top_p together. A peaked distribution has some dozens of candidates; in a flat one all tokens
// are.
//
// Narrowing. Candidates are binned by the highest eight bits in which their logits differ, the bin in which a limit is
// reached is found from the top, and only its candidates remain for the next eight bits. In the end the remaining ones
// are equal: the ties.

namespace skein::sampling {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

struct tally {
  double count = 0;
  double weight = 0;

  tally& operator+=(const tally& more) {
    count += more.count;
    weight += more.weight;
    return *this;
  }
};

// Float bits as an order-preserving unsigned integer.
std::uint32_t to_key(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

float from_key(std::uint32_t key) { return std::bit_cast<float>(key & 0x80000000u ? key & 0x7fffffffu : ~key); }

// The smallest float that is not below `value`.
float round_up(double value) {
  if (value <= lowest_logit) return lowest_logit;
  const auto nearest = static_cast<float>(value);
  return nearest < value ? std::nextafter(nearest, -lowest_logit) : nearest;
}

kept_tokens narrow(std::vector<candidate>& candidates, const tally& limit) {
  const auto by_key = [](const candidate& a, const candidate& b) { return a.key < b.key; };
  const auto [first, last] = std::minmax_element(candidates.begin(), candidates.end(), by_key);
  tally above;
  for (int bits = std::bit_width(first->key ^ last->key), shift; bits > 0; bits = shift) {
    shift = std::max(bits - 8, 0);
    const auto digit_of = [shift](const candidate& c) { return (c.key >> shift) & 0xffu; };
    std::array<tally, 256> bins{};
    std::size_t lowest = 255;
    for (const candidate& c : candidates) {
      bins[digit_of(c)] += {1, c.weight};
      lowest = std::min<std::size_t>(lowest, digit_of(c));
    }
    // Unreached limits end at the lowest digit, so that everything is kept.
    std::size_t digit = 255;
    for (; digit > lowest; --digit) {
      const tally& bin = bins[digit];
      if (above.count + bin.count >= limit.count || above.weight + bin.weight >= limit.weight) break;
      above += bin;
    }
    std::erase_if(candidates, [&](const candidate& c) { return digit_of(c) != digit; });
  }
  const auto ties = static_cast<double>(candidates.size());
  const double by_weight = (limit.weight - above.weight) / (ties * candidates.front().weight);
  const double by_count = (limit.count - above.count) / ties;
  return {from_key(candidates.front().key), std::clamp(std::min(by_weight, by_count), 0.0, 1.0)};
}

float kth_largest(std::span<const float> values, std::size_t k, std::vector<candidate>& scratch) {
  scratch.clear();
  for (const float v : values) scratch.push_back({to_key(v), 1});
  return narrow(scratch, {static_cast<double>(k), unlimited}).threshold;
}

// Copies first and decides afterwards, since a branch on the floor would be mispredicted often.
void gather(const logit_row& row, float floor, std::vector<candidate>& out) {
  out.clear();
  for (std::size_t b = 0; b < row.blocks(); ++b) {
    if (row.block_maxima()[b] < floor) continue;
    const logit_block& logits = row.block_logits(b);
    const logit_block& weights = row.block_weights(b);
    std::array<candidate, block_tokens> found;
    std::size_t count = 0;
    for (std::size_t i = 0; i < block_tokens; ++i) {
      found[count] = {to_key(logits[i]), weights[i]};
      count += logits[i] >= floor;
    }
    out.insert(out.end(), found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count));
  }
}

double kept_weight(const logit_row& row, const kept_tokens& kept, std::size_t block) {
  if (row.block_maxima()[block] < kept.threshold) return 0;
  if (kept.everything()) return row.block_weight(block);
  double sum = 0;
  for (std::size_t i = 0; i < block_tokens; ++i)
    sum += kept.weight(row.block_logits(block)[i], row.block_weights(block)[i]);
  return sum;
}

// The first token at which the cumulative kept weights of the block exceed `target`; the last kept one if rounding
// leaves none.
token_id pick_inside(const logit_row& row, const kept_tokens& kept, std::size_t block, double target) {
  token_id found = no_token;
  double passed = 0;
  for (std::size_t i = 0; i < block_tokens && passed <= target; ++i) {
    const double weight = kept.weight(row.block_logits(block)[i], row.block_weights(block)[i]);
    if (weight > 0) found = static_cast<token_id>(block * block_tokens + i);
    passed += weight;
  }
  return found;
}

// The threshold by the current weights of the row, which were computed with `temperature`.
kept_tokens filter(const logit_row& row, const sampling_params& params, float temperature,
                   std::vector<candidate>& scratch) {
  // The lowest logit whose p is at least `share` of the largest p.
  const auto logit_at = [&](double share) { return round_up(row.max() + temperature * std::log(share)); };
  const bool limits_count = params.top_k > 0 && static_cast<std::uint32_t>(params.top_k) < row.vocab();
  const bool limits_weight = params.top_p > 0 && params.top_p < 1;

  float floor = lowest_logit;
  if (params.min_p > 0) floor = logit_at(std::min(params.min_p, 1.0f));
  if (!limits_count && !limits_weight) return {floor, 1};

  if (limits_count && static_cast<std::size_t>(params.top_k) <= row.blocks())
    floor = std::max(floor, kth_largest(row.block_maxima(), static_cast<std::size_t>(params.top_k), scratch));
  if (limits_weight) {
    constexpr double margin = 0.99;  // far beyond the rounding errors of the weights
    floor = std::max(floor, logit_at(margin * (1.0 - params.top_p) * row.total() / row.vocab()));
  }
  gather(row, floor, scratch);
  return narrow(scratch, {limits_count ? params.top_k : unlimited,
                          limits_weight ? double{params.top_p} * row.total() : unlimited});
}

}  // namespace

kept_tokens select(logit_row& row, const sampling_params& params, std::vector<candidate>& scratch) {
  if (!params.filters_first) {
    row.exponentiate(params.temperature);
    return filter(row, params, params.temperature, scratch);
  }
  row.exponentiate(1);
  kept_tokens kept = filter(row, params, 1, scratch);
  kept.tie_scale = 1;
  row.exponentiate(params.temperature);
  return kept;
}

token_id pick(const logit_row& row, const kept_tokens& kept, double position) {
  double total = 0;
  for (std::size_t b = 0; b < row.blocks(); ++b) total += kept_weight(row, kept, b);
  const double target = position * total;

  double before = 0;
  std::size_t last = 0;
  for (std::size_t b = 0; b < row.blocks(); ++b) {
    const double here = kept_weight(row, kept, b);
    if (here == 0) continue;
    if (target < before + here) return pick_inside(row, kept, b, target - before);
    before += here;
    last = b;
  }
  return pick_inside(row, kept, last, unlimited);  // position 1, up to rounding
}

}  // namespace skein::sampling
