#pragma once
#include <cstdint>

#include "base/ids.hpp"

/// The types that an engine and the samplers on its device exchange.
namespace skein::kernels::gpu {

inline constexpr std::uint32_t top_logprobs_most = 20;
inline constexpr slot_id no_slot = 0xffffffff;

/// sampling::sampling_params without its lists.
struct sampler_settings {
  float temperature = 1, top_p = 1, min_p = 0, noise = 0;
  float first_penalty = 0, repeat_penalty = 0, lasting_penalty = 0, penalty_decay = 1;
  std::int32_t top_k = 0;
  std::uint32_t max_tokens = 0;  ///< including sampled_before
  std::uint64_t seed = 0;
  std::uint32_t row = 0;
  std::uint32_t filters_first = 0;               ///< 0 or 1
  std::uint32_t logprobs = 0;                    ///< 0 or 1
  std::uint32_t top_logprobs = 0;                ///< 0 .. top_logprobs_most
  std::uint32_t sampled_before = 0;              ///< slot_record::generated at the start
  std::uint32_t bias_count = 0, stop_count = 0;  ///< entries in the slot's lists; filled in by slot_samplers
};

/// Added to a token's logit, before penalties.
struct bias_entry {
  token_id token;
  float bias;
  std::uint16_t first = 0, end = 0;  ///< range of samples that it applies to, see sampling::logit_bias_entry
};

/// Everything that an engine keeps about the sequence in one slot besides its recurrent state, in device memory.
/// Sampling writes all of it except `settings`. A kernel that feeds last_token consumes it and leaves no_token.
struct slot_record {
  token_id last_token = no_token;  ///< sampled, not yet fed
  std::uint32_t generated = 0;     ///< tokens sampled so far
  std::uint32_t frozen = 0;        ///< 0 or 1
  std::uint32_t penalty_count = 0;
  sampler_settings settings;
};

/// Why sampling ended a sequence; the values of engine::stop_cause.
enum class sample_stop : std::uint32_t { none, stop_id, budget };

inline constexpr std::uint32_t forced_most = 16;

/// Tokens that a slot takes after its last one without sampling them. They count as sampled.
struct forced_run {
  slot_id slot = no_slot;
  std::uint32_t count = 0;                  ///< at least 1
  sample_stop stopped = sample_stop::none;  ///< why the last one ends the sequence
  token_id tokens[forced_most] = {};
};

/// sampling::token_logprobs.
struct token_scores {
  float logprob = 0;
  std::uint32_t top_count = 0;
  std::uint32_t nonfinite = 0;  ///< 1: a logit of the row was NaN or infinite
  struct alternative {
    token_id token;
    float logprob;
  } top[top_logprobs_most] = {};
};

/// The result of sampling a token; in pinned host memory or in device memory.
struct sampled_token {
  token_id token = no_token;
  std::uint32_t sampled = 0;  ///< 1, or 0 if a mask allowed no token
  sample_stop stopped = sample_stop::none;
  token_scores scores;  ///< if the settings request no logprobs, logprob and top_count are 0
};

/// A sampler's position in pinned host memory; the caller keeps it until the queued work is done.
struct sampler_position {
  slot_record* record = nullptr;  ///< save fills all; restore reads all but the settings
  token_id* tokens = nullptr;  ///< [room] in the order in which they were first sampled; record->penalty_count of them
  float* penalties = nullptr;  ///< [room] parallel
  std::uint32_t room = 0;      ///< the number of entries that save copies, used or not
};

}  // namespace skein::kernels::gpu
