#pragma once
#include "kernels/gpu/sampling/sampling.hpp"

/// The interface between slot_samplers and its kernels. A row of logits is cut into chunks, one per thread block, and
/// chunks into blocks of 64 tokens, as in sampling/logit_block.hpp. The cuts depend only on the vocabulary.
namespace skein::kernels::gpu {

inline constexpr std::uint32_t logit_chunk_tokens = 4096;
inline constexpr std::uint32_t block_tokens = 64;
inline constexpr std::uint32_t chunk_blocks = logit_chunk_tokens / block_tokens;
inline constexpr std::uint32_t chunks_max = 128;
static_assert(std::uint64_t{chunks_max} * logit_chunk_tokens == vocab_max);

[[nodiscard]] constexpr std::uint32_t chunks_of(std::uint32_t vocab) {
  return (vocab + logit_chunk_tokens - 1) / logit_chunk_tokens;
}
/// The number of blocks that arrays have space for: those of whole chunks.
[[nodiscard]] constexpr std::uint32_t blocks_of(std::uint32_t vocab) { return chunks_of(vocab) * chunk_blocks; }

/// The memory of all slots; the lists of slot s begin at s times their capacity.
struct slot_memory {
  slot_record* records;
  bias_entry* bias;
  token_id* stop_ids;
  token_id* penalty_tokens;
  float* penalties;
  float* raw_of_bias;
  float* raw_of_penalties;
  std::uint32_t bias_max, stop_ids_max, penalties_max;
};

struct best_token {
  token_id token;
  float logit;
};

/// The results of a scan that selection reads: [rows] of each array, of the size given. Arrays of floats begin at a
/// multiple of 16 bytes.
struct sampling_scratch {
  std::uint32_t* finished;   ///< [1] chunks that are done; 0 between launches
  std::uint32_t* nonfinite;  ///< [1] 1: a logit was NaN or infinite; 0 between launches
  float* block_max;          ///< [blocks] of the penalised logits
  float* block_sum;          ///< [blocks] of exp((logit - block_max) / temperature)
  float* raw_max;            ///< [blocks] of the raw logits
  float* raw_sum;            ///< [blocks] of exp(raw - raw_max)
};

/// Runs of tokens, as a kernel's argument.
struct forced_runs {
  static constexpr std::uint32_t most = 32;
  forced_run of[most];
};

[[nodiscard]] result<void> launch_samples(stream_handle in, const device_samples& samples, const sample_logits& from,
                                          sampled_token* out, const slot_memory& slots, const sampling_scratch& scratch,
                                          std::uint32_t vocab);
[[nodiscard]] result<void> launch_scores(stream_handle in, const device_scores& scores, const float* logits,
                                         token_scores* out, const sampling_scratch& scratch, std::uint32_t vocab);
[[nodiscard]] result<void> launch_mixtures(stream_handle in, const device_mixtures& mixtures, const float* logits,
                                           float* penalised, float* raw, const slot_memory& slots, std::uint32_t vocab);
[[nodiscard]] result<void> launch_spread(stream_handle in, const device_mixtures& mixtures,
                                         const sampled_token* sampled, sampled_token* out, const slot_memory& slots);
[[nodiscard]] result<void> launch_force(stream_handle in, const forced_runs& runs, std::uint32_t count,
                                        const slot_memory& slots);
[[nodiscard]] result<void> launch_copy_position(stream_handle in, slot_id from, slot_id to, const slot_memory& slots);

}  // namespace skein::kernels::gpu
