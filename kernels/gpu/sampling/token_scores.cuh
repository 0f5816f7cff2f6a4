#pragma once
#include "kernels/gpu/sampling/scanned_blocks.cuh"

/// Log-probabilities under raw logits, as sampling::log_probabilities, from the results of a scan at a temperature of
/// 1. The best n tokens are in at most n blocks: those with the largest maxima, lower blocks first among equals.
namespace skein::kernels::gpu {

/// Entries of a descent by their logits, and entries with one logit by their ids, lower ids first.
template <typename Entries>
struct best_by_logit {
  const Entries& entries;

  template <typename Visit>
  __device__ void for_each(const Visit& visit) const {
    entries.for_each([&](const best_token& entry) { visit(to_key(entry.logit), 0); });
  }
  __device__ void focus(std::uint32_t, std::uint32_t, std::uint32_t) {}
};
template <typename Entries>
struct best_by_token {
  const Entries& entries;
  std::uint32_t logit_key;

  template <typename Visit>
  __device__ void for_each(const Visit& visit) const {
    entries.for_each([&](const best_token& entry) {
      if (to_key(entry.logit) == logit_key) visit(~static_cast<std::uint32_t>(entry.token), 0);
    });
  }
  __device__ void focus(std::uint32_t, std::uint32_t, std::uint32_t) {}
};

/// Writes the best `top` entries in descending order, lower ids first among equals, and returns their number, which is
/// smaller if there are fewer entries. `out` is in shared memory. entries.for_each(visit) calls visit(entry) for this
/// thread's share; no logit is above `max`.
template <typename Entries>
__device__ std::uint32_t keep_best(const Entries& entries, float max, std::uint32_t top, best_token* out) {
  __shared__ std::uint32_t bins[mass_threads], few_count, edge, until_edge;
  __shared__ best_token few[mass_threads];
  const auto bin_of = [&](float logit) {  // an eighth of a power of two of probability each
    const float step = (max - logit) * (log2_e * 8);
    return step < static_cast<float>(mass_threads - 1) ? static_cast<unsigned>(step) : mass_threads - 1;
  };
  bins[threadIdx.x] = 0;
  if (threadIdx.x == 0) few_count = 0;
  __syncthreads();
  entries.for_each([&](const best_token& entry) { atomicAdd(&bins[bin_of(entry.logit)], 1u); });
  __syncthreads();
  const mass own = {bins[threadIdx.x], 0};
  mass all;
  const mass before = block_prefix(own, all), until = before + own;
  if ((before.count < top && until.count >= top) || (threadIdx.x == mass_threads - 1 && all.count < top)) {
    edge = threadIdx.x;
    until_edge = until.count;
  }
  __syncthreads();

  // If more entries than threads are left: first those above the logit that reaches `top`, then those with the lowest
  // ids.
  std::uint32_t lowest_key = 0, highest_id = 0xffffffff;
  if (until_edge > mass_threads) {
    const descent by_logit = descend(0, 0xffffffff, {top, any_weight}, best_by_logit<Entries>{entries});
    lowest_key = by_logit.key;
    const mass rest = {top - by_logit.above.count, any_weight};
    highest_id = ~descend(0, 0xffffffff, rest, best_by_token<Entries>{entries, lowest_key}).key;
  }
  entries.for_each([&](const best_token& entry) {
    const std::uint32_t key = to_key(entry.logit);
    if (bin_of(entry.logit) <= edge &&
        (key > lowest_key || (key == lowest_key && static_cast<std::uint32_t>(entry.token) <= highest_id)))
      few[atomicAdd(&few_count, 1u)] = entry;
  });
  __syncthreads();
  const std::uint32_t count = few_count;
  if (threadIdx.x < count) {
    const best_token mine = few[threadIdx.x];
    std::uint32_t rank = 0;
    for (std::uint32_t i = 0; i < count; ++i)
      rank += few[i].logit > mine.logit || (few[i].logit == mine.logit && few[i].token < mine.token) ? 1 : 0;
    if (rank < top) out[rank] = mine;
  }
  __syncthreads();
  return count < top ? count : top;
}

/// Blocks of tokens as entries, with block numbers instead of ids.
struct blocks_by_max {
  const scanned_blocks& of;

  template <typename Visit>
  __device__ void for_each(const Visit& visit) const {
    of.for_each([&](std::uint32_t block, float max, float) {
      if (max >= lowest_logit) visit({static_cast<token_id>(block), max});
    });
  }
};

/// The raw logits of some blocks, in shared memory.
struct raw_blocks {
  alignas(16) float logits[top_logprobs_most][block_tokens];
  best_token of[top_logprobs_most];  ///< the blocks
  std::uint32_t count;
  std::uint32_t is_here[chunks_max * chunk_blocks / 32];  ///< a bit for each block of a row

  /// This thread's share of the logits.
  template <typename Visit>
  __device__ void for_each(const Visit& visit) const {
    for (std::uint32_t i = threadIdx.x; i < count * block_tokens; i += mass_threads) {
      const float logit = logits[i / block_tokens][i % block_tokens];
      if (logit >= lowest_logit)
        visit({static_cast<token_id>(of[i / block_tokens].token * block_tokens + i % block_tokens), logit});
    }
  }
  /// Replaces the token's logit by *logit.
  __device__ void correct(token_id token, const float* logit) {
    const std::uint32_t place = static_cast<std::uint32_t>(token), block = place / block_tokens;
    if ((is_here[block / 32] >> block % 32 & 1) == 0) return;
    for (std::uint32_t b = 0; b < count; ++b)
      if (static_cast<std::uint32_t>(of[b].token) == block) logits[b][place % block_tokens] = *logit;
  }
};

/// The score of a token with the raw logit `logit`. `row` has the raw logits, except for the tokens for which
/// for_each_corrected(correct), called by all threads, calls correct(token, address of its raw logit).
template <typename ForEachCorrected>
__device__ void finish_scores(const scanned_blocks& blocks, const logit_row& row,
                              const ForEachCorrected& for_each_corrected, float logit, std::uint32_t top,
                              raw_blocks& best_blocks, token_scores* out) {
  const float max = blocks.max();
  mass own = {0, 0}, total;
  blocks.for_each([&](std::uint32_t, float max_of_block, float sum) {
    own.weight += to_weight(sum * exp_of_negative(max_of_block - max));
  });
  block_prefix(own, total);
  const double log_total = log(static_cast<double>(total.weight) / static_cast<double>(weight_unit));
  const auto logprob = [&](float of) {
    const double exact = static_cast<double>(of) - static_cast<double>(max) - log_total;
    return exact < static_cast<double>(lowest_logit) ? lowest_logit : static_cast<float>(exact);
  };

  std::uint32_t kept = 0;
  if (top > 0) {
    __shared__ best_token best[top_logprobs_most];
    for (std::uint32_t i = threadIdx.x; i < blocks_of(row.vocab) / 32; i += mass_threads) best_blocks.is_here[i] = 0;
    const std::uint32_t count = keep_best(blocks_by_max{blocks}, max, top, best_blocks.of);
    if (threadIdx.x == 0) best_blocks.count = count;
    if (threadIdx.x < count) {
      const auto block = static_cast<std::uint32_t>(best_blocks.of[threadIdx.x].token);
      atomicAdd(&best_blocks.is_here[block / 32], 1u << block % 32);
    }
    for (std::uint32_t i = threadIdx.x; i < count * block_lanes; i += mass_threads) {
      const std::uint32_t first = i % block_lanes * logit_packet::size, b = i / block_lanes;
      store_packet(&best_blocks.logits[b][first],
                   row.load(static_cast<std::uint32_t>(best_blocks.of[b].token) * block_tokens + first));
    }
    __syncthreads();
    for_each_corrected([&](token_id token, const float* raw) { best_blocks.correct(token, raw); });
    __syncthreads();
    kept = keep_best(best_blocks, max, top, best);
    if (threadIdx.x < kept) out->top[threadIdx.x] = {best[threadIdx.x].token, logprob(best[threadIdx.x].logit)};
  }
  if (threadIdx.x == 0) {
    out->logprob = logprob(logit);
    out->top_count = kept;
  }
}

}  // namespace skein::kernels::gpu
