#pragma once
#include "kernels/gpu/sampling/candidates.cuh"

/// The choice of a token from a row whose chunks are scanned, by the rules of sampling/selection.cpp.
///
/// min_p, top_k and top_p each give a floor below which no token is kept. The floor of min_p is exact. Those of the
/// other two come from a histogram of the blocks of 64 tokens by their maxima, in steps of a quarter of a power of two
/// of probability. For top_k, the floor is a step above which there are top_k blocks, and so at least as many tokens.
/// For top_p, it is a step below which all tokens together weigh less than 1 - top_p. Either of two bounds shows that:
/// the largest tokens of the blocks above the step alone weigh top_p, as they do if few tokens matter; or the blocks
/// below the step weigh little, and a token below it in another block weighs less than the step.
///
/// A peaked distribution leaves some dozens of candidates. The same search then runs twice: by logits, for the
/// threshold and the share of the tokens that tie at it; and by ids, for the token at a position among the kept
/// weights. It compares few entries with each other. Many entries are first distributed over 256 bins, of which one
/// remains. Entries that do not fit in shared memory are narrowed down by eight bits at a time.
namespace skein::kernels::gpu {

[[nodiscard]] __device__ inline bool is_greedy(const sampler_settings& settings) {
  constexpr float temperature_min = 0.001f;
  return settings.top_k == 1 || settings.top_p == 0 || !(settings.temperature >= temperature_min);
}
[[nodiscard]] __device__ inline sample_noise noise_of(const sampler_settings& settings, std::uint32_t index) {
  return {settings.noise > 0 && !is_greedy(settings) ? settings.noise : 0, settings.temperature, settings.seed,
          settings.row, index};
}
/// Whether a token with the largest logit is chosen, which needs no weights.
[[nodiscard]] __device__ inline bool takes_largest(const sampler_settings& settings) {
  return is_greedy(settings) || settings.noise > 0;
}

/// The temperature of the weights of a scanned row: that of the filters or, without filters, that of sampling.
[[nodiscard]] __device__ inline float scan_temperature(const sampler_settings& settings, std::uint32_t vocab) {
  const bool by_count = settings.top_k > 0 && static_cast<std::uint32_t>(settings.top_k) < vocab;
  const bool filters = by_count || settings.top_p < 1 || settings.min_p > 0;
  return settings.filters_first != 0 && filters ? 1.0f : settings.temperature;
}

/// The part of a choice that does not depend on logits.
struct sample_rules {
  double position;  ///< the random number
  double top_p;
  double temperature;     ///< of the filters
  double floor_of_min_p;  ///< relative to the row's maximum
  float scale, final_scale;
  std::uint32_t top_k;
  sample_noise noise;
  bool largest, by_min_p, by_count, by_weight, filters_first;

  [[nodiscard]] __device__ bool has_limits() const { return by_count || by_weight; }
};
__device__ inline sample_rules rules_of(const sampler_settings& settings, std::uint32_t index, std::uint32_t vocab) {
  sample_rules rules{};
  rules.noise = noise_of(settings, index);
  rules.largest = takes_largest(settings);
  if (rules.largest) return rules;
  const float temperature = scan_temperature(settings, vocab);
  rules.position = uniform(settings.seed, settings.row, index);
  rules.top_p = static_cast<double>(settings.top_p);
  rules.temperature = static_cast<double>(temperature);
  rules.scale = 1 / temperature;
  rules.final_scale = 1 / settings.temperature;
  rules.top_k = static_cast<std::uint32_t>(settings.top_k);
  rules.by_count = settings.top_k > 0 && rules.top_k < vocab;
  rules.by_weight = settings.top_p > 0 && settings.top_p < 1;
  rules.filters_first = settings.filters_first != 0;
  rules.by_min_p = settings.min_p > 0;
  if (rules.by_min_p)
    rules.floor_of_min_p = rules.temperature * log(static_cast<double>(settings.min_p < 1 ? settings.min_p : 1.0f));
  return rules;
}

/// The weight of a block's tokens, up to the rounding of its sum.
[[nodiscard]] __device__ inline std::uint64_t block_weight(const weighed_row& row, float max, float sum) {
  return to_weight(sum * row.weight(max));
}

/// The lowest id among the tokens with the largest logit.
__device__ inline token_id largest(const weighed_row& row, const sample_noise& noise) {
  __shared__ std::uint32_t block, token;
  if (threadIdx.x == 0) block = token = 0xffffffff;
  __syncthreads();
  row.blocks.for_each([&](std::uint32_t b, float max, float) {
    if (max == row.max) atomicMin(&block, b);
  });
  __syncthreads();
  if (threadIdx.x < block_lanes) {
    const std::uint32_t first = block * block_tokens + threadIdx.x * logit_packet::size;
    logit_packet values = row.row.load(first);
    noise.add(first, values);
    row.row.restrict(first, values);
    for (unsigned i = 0; i < logit_packet::size; ++i)
      if (values.values[i] == row.max) atomicMin(&token, first + i);
  }
  __syncthreads();
  return static_cast<token_id>(token);
}

/// The place of `position`, 0 .. 1, in that weight: 1 .. weight.
[[nodiscard]] __device__ inline std::uint64_t place_in(std::uint64_t weight, double position) {
  const std::uint64_t place = static_cast<std::uint64_t>(position * static_cast<double>(weight)) + 1;
  return place < weight ? place : weight;
}

/// The token at `position` of the weights of all tokens, laid end to end in the order of ids.
__device__ inline token_id pick_of_all(const weighed_row& row, double position) {
  __shared__ std::uint32_t block, token;
  __shared__ double place_in_block;  // 0 .. 1
  mass own = {0, 0}, total;
  row.blocks.for_each([&](std::uint32_t, float max, float sum) { own.weight += block_weight(row, max, sum); });
  const mass before = block_prefix(own, total);
  const std::uint64_t place = place_in(total.weight, position);
  if (before.weight < place && place <= before.weight + own.weight) {
    std::uint64_t passed = before.weight;
    row.blocks.for_each([&](std::uint32_t b, float max, float sum) {
      const std::uint64_t here = block_weight(row, max, sum);
      if (passed < place && place <= passed + here) {
        block = b;
        place_in_block = static_cast<double>(place - passed - 1) / static_cast<double>(here);
      }
      passed += here;
    });
  }
  __syncthreads();

  // Relative to the block's own maximum, because all its tokens may be negligible relative to the row's.
  const std::uint32_t id = block * block_tokens + threadIdx.x;
  own = {0, 0};
  if (threadIdx.x < block_tokens) {
    const std::uint32_t packet_start = id / logit_packet::size * logit_packet::size;
    logit_packet values = row.row.load(packet_start);
    row.row.restrict(packet_start, values);
    const float logit = values.values[id % logit_packet::size];
    if (logit >= lowest_logit) own.weight = to_weight(exp_of_negative((logit - row.blocks.max_of(block)) * row.scale));
  }
  const mass before_token = block_prefix(own, total);
  const std::uint64_t rest = place_in(total.weight, place_in_block);
  if (before_token.weight < rest && rest <= before_token.weight + own.weight) token = id;
  __syncthreads();
  return static_cast<token_id>(token);
}

/// Sums over the blocks of tokens above a step.
struct step_sums {
  std::uint32_t count;
  std::uint32_t largest;  ///< weights of their largest tokens, of which each is rounded down to a multiple of 2^-18
  std::uint64_t weight;

  __device__ step_sums& operator+=(const step_sums& more) {
    count += more.count;
    largest += more.largest;
    weight += more.weight;
    return *this;
  }
};
__device__ inline step_sums shuffle_xor_sum(const step_sums& s, unsigned mask) {
  return {shuffle_xor_bits(s.count, mask), shuffle_xor_bits(s.largest, mask), shuffle_xor_bits(s.weight, mask)};
}

/// A floor for top_k and top_p. Sets `total` to the weight of all tokens.
__device__ inline float floor_of_limits(const weighed_row& row, const sample_rules& rules, std::uint64_t& total) {
  constexpr double log_2 = 0.6931471805599453;
  constexpr float steps = 4;  // a power of two
  constexpr float largest_unit = 0x1p18f;
  constexpr auto last = static_cast<float>(mass_threads - 1);
  const float inverse_step = row.scale * log2_e * steps;
  __shared__ std::uint32_t edge, largest[mass_threads];
  mass_bins& bins = bins_of_block();
  bins.clear();
  largest[threadIdx.x] = 0;
  if (threadIdx.x == 0) edge = mass_threads - 1;
  __syncthreads();
  row.blocks.for_each([&](std::uint32_t, float max, float sum) {
    if (max < lowest_logit) return;  // no token is allowed
    const float step = (row.max - max) * inverse_step, weight = row.weight(max);
    const unsigned bin = step < last ? static_cast<unsigned>(step) : mass_threads - 1;
    bins.add(bin, to_weight(sum * weight));
    const auto of_largest = static_cast<std::uint32_t>(weight * largest_unit);
    if (of_largest != 0) atomicAdd(&largest[bin], of_largest);
  });
  __syncthreads();
  const mass in_bin = bins.of(threadIdx.x);
  const step_sums own = {in_bin.count, largest[threadIdx.x], in_bin.weight};
  step_sums all;
  step_sums above = block_prefix(own, all);
  above += own;
  const std::uint64_t under_step = to_weight(exp2f(-static_cast<float>(threadIdx.x + 1) / steps));
  const std::uint64_t of_others = all.weight - above.weight + above.count * (block_tokens - 1) * under_step;
  const std::uint64_t of_largest = above.largest * static_cast<std::uint64_t>(weight_unit / largest_unit);
  constexpr double margin = 0.99;  // well above the rounding of weights
  const double weight_left = margin * (1.0 - rules.top_p) * static_cast<double>(all.weight);
  const bool count_is_safe = rules.by_count && above.count >= rules.top_k;
  const bool weight_is_safe =
      rules.by_weight && (static_cast<double>(of_others) <= weight_left ||
                          static_cast<double>(all.weight) - static_cast<double>(of_largest) <= weight_left);
  const std::uint64_t safe = ballot(count_is_safe || weight_is_safe);
  const unsigned lane = threadIdx.x % warp_width;
  if (safe >> lane << lane == safe && (safe >> lane & 1) != 0) atomicMin(&edge, threadIdx.x);
  __syncthreads();
  total = all.weight;
  if (edge == mass_threads - 1) return lowest_logit;
  // A hundredth of a step below the edge, because the division into steps is rounded.
  return round_up(static_cast<double>(row.max) -
                  (edge + 1.01) * rules.temperature * log_2 / static_cast<double>(steps));
}

/// The kept tokens, as keys of logits (to_key): all above `threshold` with their weights, and those equal to it with
/// `tie_weight` each.
struct kept {
  std::uint32_t threshold;
  std::uint64_t tie_weight;
  std::uint64_t total;
};

/// Candidates as the entries of a descent by logits.
struct candidates_by_logit {
  candidates of;

  template <typename Visit>
  __device__ void for_each(const Visit& visit) const {
    of.for_each([&](std::uint32_t, float logit, std::uint64_t weight) { visit(to_key(logit), weight); });
  }
  __device__ void focus(std::uint32_t lowest, std::uint32_t highest, std::uint32_t count) {
    of.focus_on_logits(from_key(lowest), from_key(highest), count);
  }
  /// The bin of a key, below mass_threads; each covers an eighth of a power of two of probability.
  [[nodiscard]] __device__ unsigned bin(std::uint32_t key) const {
    const float step = (of.row().max - from_key(key)) * (of.row().scale * log2_e * 8);
    constexpr auto last = static_cast<float>(mass_threads - 1);
    return mass_threads - 1 - (step < last ? static_cast<unsigned>(step) : mass_threads - 1);
  }
};

/// A descent through candidates. If they are listed, they are distributed over bins once, and those in the bin that
/// reaches the limit are compared with each other.
template <typename Entries>
__device__ descent descend_candidates(std::uint32_t lowest, std::uint32_t highest, const mass& limit,
                                      const Entries& entries) {
  if (entries.of.is_listed()) {
    few_entries& few = few_of_block();
    const std::uint32_t count = entries.of.count();
    if (count <= mass_threads) {
      few_entries::entry own = {0, 0};
      entries.for_each([&](std::uint32_t key, std::uint64_t weight) { own = {weight, key}; });
      few.of[threadIdx.x] = own;
      return descend_few(count, {0, 0}, limit);
    }
    __shared__ descent found;
    __shared__ std::uint32_t few_count;
    mass_bins& bins = bins_of_block();
    bins.clear();
    if (threadIdx.x == 0) few_count = 0;
    __syncthreads();
    entries.for_each([&](std::uint32_t key, std::uint64_t weight) { bins.add(entries.bin(key), weight); });
    __syncthreads();
    const std::uint32_t own_bin = mass_threads - 1 - threadIdx.x;
    const mass own = bins.of(own_bin);
    mass all;
    const mass before = block_prefix(own, all), after = before + own;
    const bool ends_here = after.reaches(limit) ? !before.reaches(limit) : after.count == all.count;
    if (own.count != 0 && ends_here) found = {own_bin, before, own};
    __syncthreads();
    const descent in = found;
    if (in.here.count <= mass_threads) {
      entries.for_each([&](std::uint32_t key, std::uint64_t weight) {
        if (entries.bin(key) == in.key) few.of[atomicAdd(&few_count, 1u)] = {weight, key};
      });
      return descend_few(in.here.count, in.above, limit);
    }
  }
  return descend(lowest, highest, limit, entries);
}

__device__ inline kept narrow(const candidates& from, const sample_rules& rules, std::uint64_t total) {
  const double weight_limit = rules.top_p * static_cast<double>(total);
  const mass limit = {rules.by_count ? rules.top_k : any_count,
                      rules.by_weight ? static_cast<std::uint64_t>(ceil(weight_limit)) : any_weight};
  const descent at = descend_candidates(to_key(from.floor()), to_key(from.row().max), limit, candidates_by_logit{from});
  // If nothing is above, only ties are kept, and their weight does not matter.
  std::uint64_t of_ties = at.here.weight;
  if (at.above.count != 0 && rules.by_weight) {
    const std::uint64_t left = limit.weight > at.above.weight ? limit.weight - at.above.weight : 0;
    if (left < of_ties) of_ties = left;
  }
  std::uint64_t tie_weight = of_ties;
  if (at.here.count > 1) {
    tie_weight /= at.here.count;
    if (at.above.count != 0 && rules.by_count && rules.top_k - at.above.count < at.here.count) {
      const std::uint64_t by_count = at.here.weight / at.here.count * (rules.top_k - at.above.count) / at.here.count;
      if (by_count < tie_weight) tie_weight = by_count;
    }
  }
  return {at.key, tie_weight, at.above.weight + at.here.count * tie_weight};
}

/// Keeps all candidates.
__device__ inline kept keep_all(const candidates& from) {
  mass own = {0, 0}, total;
  from.for_each([&](std::uint32_t, float, std::uint64_t weight) { own.weight += weight; });
  block_prefix(own, total);
  return {0, 0, total.weight};
}

/// The kept tokens as the entries of a descent by the complements of their ids: lower ids come first.
struct kept_by_token {
  candidates of;
  std::uint32_t threshold;
  std::uint64_t tie_weight;
  unsigned bin_bits;  ///< of an id, for bins in the order of ids

  template <typename Visit>
  __device__ void for_each(const Visit& visit) const {
    of.for_each([&](std::uint32_t token, float logit, std::uint64_t weight) {
      const std::uint32_t key = to_key(logit);
      const std::uint64_t kept_weight = key > threshold ? weight : key == threshold ? tie_weight : 0;
      if (kept_weight > 0) visit(~token, kept_weight);
    });
  }
  __device__ void focus(std::uint32_t lowest, std::uint32_t highest, std::uint32_t) {
    of.focus_on_tokens(~highest, ~lowest);
  }
  [[nodiscard]] __device__ unsigned bin(std::uint32_t key) const { return mass_threads - 1 - (~key >> bin_bits); }
};

__device__ inline token_id pick(const candidates& from, const kept& of, double position) {
  const std::uint32_t last = from.row().row.vocab - 1;
  unsigned bin_bits = 0;
  if (from.count() > mass_threads)
    while (last >> bin_bits >= mass_threads) ++bin_bits;
  const descent at = descend_candidates(~last, 0xffffffff, {any_count, place_in(of.total, position)},
                                        kept_by_token{from, of.threshold, of.tie_weight, bin_bits});
  return static_cast<token_id>(~at.key);
}

/// The sampled token. `list` is in shared memory.
__device__ __forceinline__ token_id choose(const weighed_row& row, const sample_rules& rules, candidate_list* list) {
  if (rules.largest) return largest(row, rules.noise);
  if (!rules.has_limits() && !rules.by_min_p) return pick_of_all(row, rules.position);

  float floor = lowest_logit;
  if (rules.by_min_p) floor = round_up(static_cast<double>(row.max) + rules.floor_of_min_p);
  std::uint64_t total = 0;
  if (rules.has_limits()) {
    const float of_limits = floor_of_limits(row, rules, total);
    if (of_limits > floor) floor = of_limits;
  }
  weighed_row of = row;
  candidates left(of, floor, list);
  kept chosen = {};
  if (rules.has_limits()) chosen = narrow(left, rules, total);
  if (rules.filters_first) {  // then all that are left are kept, with the weights of the temperature
    if (rules.has_limits()) floor = from_key(chosen.threshold);
    of.scale = rules.final_scale;
    left.raise_floor(floor);
  }
  if (rules.filters_first || !rules.has_limits()) chosen = keep_all(left);
  return pick(left, chosen, rules.position);
}

}  // namespace skein::kernels::gpu
