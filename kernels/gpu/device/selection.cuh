#pragma once
#include "kernels/gpu/device/candidates.cuh"

/// The choice of a token from a row whose chunks are scanned, by the rules of sampling/selection.cpp.
///
/// min_p, top_k and top_p each give a floor under which no token is kept. That of min_p is exact. Those of the other
/// two come from a histogram of the blocks of 64 tokens by their maxima, in steps of a quarter of a power of two of
/// probability: above some step there are top_k blocks, and so as many tokens; and under some step all tokens together
/// weigh less than 1 - top_p, because blocks below it weigh little and a token under it in another block weighs less
/// than the step says. A peaked distribution leaves some dozens of candidates. From them a descent by logits finds the
/// threshold and what the ties at it share, and a descent by ids the token at a place of the kept weights.
namespace skein::kernels::gpu {

/// What the chunks of one row left.
struct scanned_row {
  weighed_row of;
  const float* chunk_max;
  const float* block_sum;

  /// The weight of a block's tokens, up to the rounding of its sum. `factors`: see chunk_factors.
  [[nodiscard]] __device__ std::uint64_t block_weight(std::uint32_t block, const float* factors) const {
    return to_weight(block_sum[block] * factors[block / chunk_blocks]);
  }
};

/// In shared memory: what makes sums relative to a chunk's maximum relative to the row's.
__device__ inline const float* chunk_factors(const scanned_row& row) {
  __shared__ float factors[chunks_max];
  if (threadIdx.x < chunks_of(row.of.row.vocab)) {
    const float max = row.chunk_max[threadIdx.x];
    factors[threadIdx.x] = max < lowest_logit ? 0 : exp_of_negative((max - row.of.max) * row.of.scale);
  }
  __syncthreads();
  return factors;
}

/// The lowest id among the tokens with the largest logit.
__device__ inline token_id largest(const scanned_row& row) {
  __shared__ std::uint32_t block, token;
  if (threadIdx.x == 0) block = token = 0xffffffff;
  __syncthreads();
  for (std::uint32_t b = threadIdx.x; b < row.of.blocks(); b += mass_threads)
    if (row.of.block_max[b] == row.of.max) atomicMin(&block, b);
  __syncthreads();
  if (threadIdx.x < block_lanes) {
    const std::uint32_t first = block * block_tokens + threadIdx.x * logit_packet::size;
    logit_packet values = row.of.row.load(first);
    row.of.row.restrict(first, values);
    for (unsigned i = 0; i < logit_packet::size; ++i)
      if (values.values[i] == row.of.max) atomicMin(&token, first + i);
  }
  __syncthreads();
  return static_cast<token_id>(token);
}

/// Where `position` of 0 .. 1 lies in that weight: 1 .. weight.
[[nodiscard]] __device__ inline std::uint64_t place_in(std::uint64_t weight, double position) {
  const std::uint64_t place = static_cast<std::uint64_t>(position * static_cast<double>(weight)) + 1;
  return place < weight ? place : weight;
}

/// The token at `position` of the weights of all tokens, laid end to end in the order of ids.
__device__ inline token_id pick_of_all(const scanned_row& row, double position) {
  __shared__ std::uint32_t block, token;
  __shared__ double place_in_block;  // 0 .. 1
  const float* const factors = chunk_factors(row);
  const std::uint32_t share = (row.of.blocks() + mass_threads - 1) / mass_threads;
  const std::uint32_t first = threadIdx.x * share;
  const std::uint32_t end = first + share < row.of.blocks() ? first + share : row.of.blocks();
  mass own = {0, 0}, total;
  for (std::uint32_t b = first; b < end; ++b) own.weight += row.block_weight(b, factors);
  const mass before = block_prefix(own, total);
  const std::uint64_t place = place_in(total.weight, position);
  if (before.weight < place && place <= before.weight + own.weight) {
    std::uint64_t passed = before.weight;
    std::uint32_t b = first;
    std::uint64_t here = row.block_weight(b, factors);
    for (; passed + here < place; here = row.block_weight(++b, factors)) passed += here;
    block = b;
    place_in_block = static_cast<double>(place - passed - 1) / static_cast<double>(here);
  }
  __syncthreads();

  // Relative to the block's own maximum, as all its tokens may weigh next to nothing beside the row's.
  const std::uint32_t id = block * block_tokens + threadIdx.x;
  own = {0, 0};
  if (threadIdx.x < block_tokens) {
    const std::uint32_t packet_start = id / logit_packet::size * logit_packet::size;
    logit_packet values = row.of.row.load(packet_start);
    row.of.row.restrict(packet_start, values);
    const float logit = values.values[id % logit_packet::size];
    if (logit >= lowest_logit)
      own.weight = to_weight(exp_of_negative((logit - row.of.block_max[block]) * row.of.scale));
  }
  const mass before_token = block_prefix(own, total);
  const std::uint64_t rest = place_in(total.weight, place_in_block);
  if (before_token.weight < rest && rest <= before_token.weight + own.weight) token = id;
  __syncthreads();
  return static_cast<token_id>(token);
}

struct selection_limits {
  bool by_count, by_weight;
  std::uint32_t top_k;
  double top_p;
};

/// A floor for top_k and top_p; `total`: the weight of all tokens.
__device__ inline float floor_of_limits(const scanned_row& row, const selection_limits& limits, double temperature,
                                        std::uint64_t& total) {
  constexpr double log_2 = 0.6931471805599453;
  constexpr float steps = 4;  // a power of two
  const float inverse_step = row.of.scale * log2_e * steps;
  const float* const factors = chunk_factors(row);
  __shared__ std::uint32_t edge;
  mass_bins& bins = bins_of_block();
  bins.clear();
  if (threadIdx.x == 0) edge = mass_threads - 1;
  __syncthreads();
  for (std::uint32_t b = threadIdx.x; b < row.of.blocks(); b += mass_threads) {
    const float max = row.of.block_max[b];
    if (max < lowest_logit) continue;  // nothing is allowed
    const float step = (row.of.max - max) * inverse_step;
    constexpr auto last = static_cast<float>(mass_threads - 1);
    bins.add(step < last ? static_cast<unsigned>(step) : mass_threads - 1, row.block_weight(b, factors));
  }
  __syncthreads();
  const mass own = bins.of(threadIdx.x);
  mass all;
  const mass above = block_prefix(own, all) + own;
  const std::uint64_t under_step = to_weight(exp2f(-static_cast<float>(threadIdx.x + 1) / steps));
  const std::uint64_t under = all.weight - above.weight + above.count * (block_tokens - 1) * under_step;
  constexpr double margin = 0.99;  // far more than the rounding of weights
  const bool count_is_safe = limits.by_count && above.count >= limits.top_k;
  const bool weight_is_safe =
      limits.by_weight && static_cast<double>(under) <= margin * (1.0 - limits.top_p) * static_cast<double>(all.weight);
  if (count_is_safe || weight_is_safe) atomicMin(&edge, threadIdx.x);
  __syncthreads();
  total = all.weight;
  if (edge == mass_threads - 1) return lowest_logit;
  // A hundredth of a step further down than the edge, as the division into steps is rounded.
  return round_up(static_cast<double>(row.of.max) - (edge + 1.01) * temperature * log_2 / static_cast<double>(steps));
}

/// What is kept, as keys of logits (to_key): all above `threshold`, with their weights; those that equal it with
/// `tie_weight` each.
struct kept {
  std::uint32_t threshold;
  std::uint64_t tie_weight;
  std::uint64_t total;
};

/// Candidates as entries of a descent by their logits.
struct candidates_by_logit {
  candidates of;

  template <typename Visit>
  __device__ void for_each(const Visit& visit) const {
    of.for_each([&](std::uint32_t, float logit, std::uint64_t weight) { visit(to_key(logit), weight); });
  }
  __device__ void focus(std::uint32_t lowest, std::uint32_t highest, std::uint32_t count) {
    of.focus_on_logits(from_key(lowest), from_key(highest), count);
  }
};

/// A draw from a peaked distribution is over sooner when threads compare what few candidates there are.
template <typename Entries>
__device__ descent descend_candidates(std::uint32_t lowest, std::uint32_t highest, const mass& limit,
                                      const Entries& entries) {
  if (entries.of.count() > mass_threads) return descend(lowest, highest, limit, entries);
  std::uint32_t own_key = 0;
  std::uint64_t own_weight = 0;
  entries.for_each([&](std::uint32_t key, std::uint64_t weight) { own_key = key, own_weight = weight; });
  return descend_few(own_key, own_weight, entries.of.count(), limit);
}

__device__ inline kept narrow(const candidates& from, float max, const selection_limits& limits, std::uint64_t total) {
  const double weight_limit = limits.top_p * static_cast<double>(total);
  const mass limit = {limits.by_count ? limits.top_k : any_count,
                      limits.by_weight ? static_cast<std::uint64_t>(ceil(weight_limit)) : any_weight};
  const descent at = descend_candidates(to_key(from.floor()), to_key(max), limit, candidates_by_logit{from});
  const auto ties = static_cast<double>(at.here.count);
  double share = 1;
  if (limits.by_weight)
    share = (weight_limit - static_cast<double>(at.above.weight)) / static_cast<double>(at.here.weight);
  if (limits.by_count) {
    const double by_count = (static_cast<double>(limits.top_k) - static_cast<double>(at.above.count)) / ties;
    if (by_count < share) share = by_count;
  }
  // Where nothing is above, the ties are all there is, and how much they weigh does not matter.
  if (share > 1 || at.above.count == 0 || at.here.weight == 0) share = 1;
  if (share < 0) share = 0;
  const std::uint64_t each = at.here.weight / at.here.count;
  const auto tie_weight = static_cast<std::uint64_t>(share * static_cast<double>(each));
  return {at.key, tie_weight, at.above.weight + at.here.count * tie_weight};
}

/// All candidates.
__device__ inline kept keep_all(const candidates& from) {
  mass own = {0, 0}, total;
  from.for_each([&](std::uint32_t, float, std::uint64_t weight) { own.weight += weight; });
  block_prefix(own, total);
  return {0, 0, total.weight};
}

/// What is kept of them as entries of a descent by the complements of their ids: lower ids come first.
struct kept_by_token {
  candidates of;
  std::uint32_t threshold;
  std::uint64_t tie_weight;

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
};

__device__ inline token_id pick(const candidates& from, const kept& of, std::uint32_t vocab, double position) {
  const descent at = descend_candidates(~(vocab - 1), 0xffffffff, {any_count, place_in(of.total, position)},
                                        kept_by_token{from, of.threshold, of.tie_weight});
  return static_cast<token_id>(~at.key);
}

[[nodiscard]] __device__ inline bool is_greedy(const sampler_settings& settings) {
  constexpr float temperature_min = 0.001f;
  return settings.top_k == 1 || settings.top_p == 0 || !(settings.temperature >= temperature_min);
}

/// What the weights of a scanned row are relative to: the temperature of the filters, or, where there is none, the
/// draw's.
[[nodiscard]] __device__ inline float scan_temperature(const sampler_settings& settings, std::uint32_t vocab) {
  const bool by_count = settings.top_k > 0 && static_cast<std::uint32_t>(settings.top_k) < vocab;
  const bool filters = by_count || settings.top_p < 1 || settings.min_p > 0;
  return settings.filters_first != 0 && filters ? 1.0f : settings.temperature;
}

/// The token that is drawn as number `index` of its sequence. `list`: in shared memory.
__device__ inline token_id choose(const scanned_row& row, const sampler_settings& settings, std::uint32_t index,
                                  candidate_list* list) {
  if (is_greedy(settings)) return largest(row);
  const double position = uniform(settings.seed, settings.row, index);
  const std::uint32_t vocab = row.of.row.vocab;
  const auto temperature = static_cast<double>(scan_temperature(settings, vocab));
  const selection_limits limits = {settings.top_k > 0 && static_cast<std::uint32_t>(settings.top_k) < vocab,
                                   settings.top_p > 0 && settings.top_p < 1, static_cast<std::uint32_t>(settings.top_k),
                                   static_cast<double>(settings.top_p)};
  const bool has_limits = limits.by_count || limits.by_weight;
  float floor = lowest_logit;
  if (settings.min_p > 0)
    floor = round_up(static_cast<double>(row.of.max) +
                     temperature * log(static_cast<double>(settings.min_p < 1 ? settings.min_p : 1.0f)));
  if (!has_limits && !(settings.min_p > 0)) return pick_of_all(row, position);

  std::uint64_t total = 0;
  if (has_limits) {
    const float of_limits = floor_of_limits(row, limits, temperature, total);
    if (of_limits > floor) floor = of_limits;
  }
  const candidates left(row.of, floor, list);
  const kept chosen = has_limits ? narrow(left, row.of.max, limits, total) : keep_all(left);
  if (settings.filters_first == 0) return pick(left, chosen, vocab, position);
  if (has_limits) floor = from_key(chosen.threshold);
  weighed_row again = row.of;
  again.scale = 1 / settings.temperature;
  const candidates whole(again, floor, list);
  return pick(whole, keep_all(whole), vocab, position);
}

}  // namespace skein::kernels::gpu
