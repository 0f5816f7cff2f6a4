#pragma once
#include "kernels/gpu/device/logit_chunk.cuh"

/// Log-probabilities under raw logits: sampling::log_probabilities in two parts, one for each chunk and one for the
/// row.
namespace skein::kernels::gpu {

/// Entries of a descent by their logits, and those of one logit by their ids, lower ones first.
struct best_by_logit {
  const best_token* entries;
  std::uint32_t count;

  template <typename Visit>
  __device__ void for_each(const Visit& visit) const {
    for (std::uint32_t i = threadIdx.x; i < count; i += mass_threads) visit(to_key(entries[i].logit), 0);
  }
  __device__ void focus(std::uint32_t, std::uint32_t, std::uint32_t) {}
};
struct best_by_token {
  const best_token* entries;
  std::uint32_t count, logit_key;

  template <typename Visit>
  __device__ void for_each(const Visit& visit) const {
    for (std::uint32_t i = threadIdx.x; i < count; i += mass_threads)
      if (to_key(entries[i].logit) == logit_key) visit(~static_cast<std::uint32_t>(entries[i].token), 0);
  }
  __device__ void focus(std::uint32_t, std::uint32_t, std::uint32_t) {}
};

/// Writes the best `top` of the `count` entries in falling order, lower ids first among equals; all, if fewer.
__device__ inline void keep_best(const best_token* entries, std::uint32_t count, std::uint32_t top, best_token* out) {
  __shared__ best_token few[mass_threads];
  __shared__ std::uint32_t few_count;
  // Down to as few entries as there are threads: those above the logit at which `top` is reached, then the lowest ids.
  std::uint32_t lowest_key = 0, highest_id = 0xffffffff;
  if (count > mass_threads) {
    const descent by_logit = descend(0, 0xffffffff, {top, any_weight}, best_by_logit{entries, count});
    lowest_key = by_logit.key;
    const mass rest = {top - by_logit.above.count, any_weight};
    highest_id = ~descend(0, 0xffffffff, rest, best_by_token{entries, count, lowest_key}).key;
  }
  if (threadIdx.x == 0) few_count = 0;
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < count; i += mass_threads) {
    const std::uint32_t key = to_key(entries[i].logit);
    if (key > lowest_key || (key == lowest_key && static_cast<std::uint32_t>(entries[i].token) <= highest_id))
      few[atomicAdd(&few_count, 1u)] = entries[i];
  }
  __syncthreads();
  if (threadIdx.x < few_count) {
    const best_token own = few[threadIdx.x];
    std::uint32_t rank = 0;
    for (std::uint32_t i = 0; i < few_count; ++i)
      rank += few[i].logit > own.logit || (few[i].logit == own.logit && few[i].token < own.token) ? 1 : 0;
    if (rank < top) out[rank] = own;
  }
  __syncthreads();
}

/// The best of a chunk: only those at or above the top-th largest of its blocks' maxima are looked at.
/// `list`: [chunk_tokens] of shared memory.
__device__ inline void keep_best_of_chunk(const logit_packet (&raw)[chunk_packets], std::uint32_t first,
                                          std::uint32_t top, best_token* list, best_token* out) {
  __shared__ float maxima[chunk_blocks];
  __shared__ float floor;
  __shared__ std::uint32_t count;
  for (unsigned p = 0; p < chunk_packets; ++p) {
    const float max = max_of_block(packet_max(raw[p]));
    if (threadIdx.x % block_lanes == 0) maxima[place_in_chunk(p) / block_tokens] = max;
  }
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (threadIdx.x < chunk_blocks) {
    const float own = maxima[threadIdx.x];
    std::uint32_t rank = 0;
    for (unsigned b = 0; b < chunk_blocks; ++b)
      rank += maxima[b] > own || (maxima[b] == own && b < threadIdx.x) ? 1 : 0;
    if (rank + 1 == top) floor = own;
  }
  __syncthreads();
  for (unsigned p = 0; p < chunk_packets; ++p)
    for (unsigned i = 0; i < logit_packet::size; ++i) {
      const float logit = raw[p].values[i];
      if (logit >= floor && logit >= lowest_logit)
        list[atomicAdd(&count, 1u)] = {static_cast<token_id>(first + place_in_chunk(p) + i), logit};
    }
  __syncthreads();
  keep_best(list, count, top, out);
}

/// A chunk's part: its maximum, sum and best tokens. `list` as above.
__device__ inline void scan_scores(const logit_packet (&raw)[chunk_packets], std::uint32_t chunk, std::uint32_t top,
                                   best_token* list, float* raw_max, float* raw_sum, best_token* best) {
  float max = no_logit();
  for (unsigned p = 0; p < chunk_packets; ++p) {
    const float here = packet_max(raw[p]);
    if (here > max) max = here;
  }
  max = block_max(max);
  float sum = 0;
  for (unsigned p = 0; p < chunk_packets; ++p) sum += packet_sum(raw[p], max, log2_e);
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    raw_max[chunk] = max;
    raw_sum[chunk] = sum;
  }
  if (top > 0) keep_best_of_chunk(raw, chunk * chunk_tokens, top, list, best + std::size_t{chunk} * top_logprobs_most);
}

/// The row's part: the score of a token with raw logit `logit`. `list`: [chunks_max * top_logprobs_most] of shared
/// memory.
__device__ inline void finish_scores(float logit, std::uint32_t top, std::uint32_t vocab, const float* raw_max,
                                     const float* raw_sum, const best_token* best, best_token* list,
                                     token_scores* out) {
  const std::uint32_t chunks = chunks_of(vocab);
  const bool has_chunk = threadIdx.x < chunks;
  const float max = block_max(has_chunk ? raw_max[threadIdx.x] : no_logit());
  const mass own = {
      0, has_chunk ? to_weight(raw_sum[threadIdx.x] * exp_of_negative(raw_max[threadIdx.x] - max)) : std::uint64_t{0}};
  mass total;
  block_prefix(own, total);
  const double log_total = log(static_cast<double>(total.weight) / static_cast<double>(weight_unit));
  const auto logprob = [&](float of) {
    const double exact = static_cast<double>(of) - static_cast<double>(max) - log_total;
    return exact < static_cast<double>(lowest_logit) ? lowest_logit : static_cast<float>(exact);
  };

  __shared__ std::uint32_t count;
  __shared__ best_token best_of_row[top_logprobs_most];
  if (top > 0) {
    // A chunk with `top` entries shows that its last one is a floor.
    const auto entries_of = [&](std::uint32_t chunk) {
      const std::uint32_t tokens = vocab - chunk * chunk_tokens;
      return tokens < top ? tokens : top;
    };
    const bool is_full = has_chunk && entries_of(threadIdx.x) == top;
    const float floor =
        block_max(is_full ? best[std::size_t{threadIdx.x} * top_logprobs_most + top - 1].logit : no_logit());
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < chunks * top; i += mass_threads) {
      const std::uint32_t chunk = i / top, rank = i % top;
      if (rank >= entries_of(chunk)) continue;
      const best_token entry = best[std::size_t{chunk} * top_logprobs_most + rank];
      if (entry.logit >= floor) list[atomicAdd(&count, 1u)] = entry;
    }
    __syncthreads();
    keep_best(list, count, top, best_of_row);
  }
  const std::uint32_t kept = top < vocab ? top : vocab;
  if (threadIdx.x < kept)
    out->top[threadIdx.x] = {best_of_row[threadIdx.x].token, logprob(best_of_row[threadIdx.x].logit)};
  if (threadIdx.x == 0) {
    out->logprob = logprob(logit);
    out->top_count = kept;
  }
}

}  // namespace skein::kernels::gpu
