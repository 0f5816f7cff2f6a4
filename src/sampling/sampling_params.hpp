#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.hpp"
#include "sampling/constraint.hpp"

namespace skein::sampling {

inline constexpr std::uint32_t top_logprobs_max = 20;

struct logit_bias_entry {
  token_id token;
  float bias;  ///< added to the logit before penalties; -100 .. 100
  /// Applies to sampling steps first .. end - 1, counted from 0; end 0: all from `first` on.
  std::uint16_t first = 0, end = 0;

  [[nodiscard]] bool counts_for(std::uint32_t sample) const { return sample >= first && (end == 0 || sample < end); }
};

/// A sampled token and the penalty subtracted from its logit, P in sampling_params. If P has decayed to 0, the token
/// still counts as sampled before.
struct token_penalty {
  token_id token;
  float penalty;
};

/// Penalties of a prompt, shared by its rows; tokens are unique. Null: none.
using shared_penalties = std::shared_ptr<const std::vector<token_penalty>>;

/// A finite substitute for -infinity.
inline constexpr float ban = -1e30f;
/// Limits of a request unless the configuration sets others.
inline constexpr std::uint32_t request_bias_max = 1024, request_stop_ids_max = 128;
/// Entries that the server adds to a request: two bans (force_reasoning), and the end of text.
inline constexpr std::uint32_t own_bias_max = 2, own_stop_ids_max = 1;

/// Limits on the entries in the parameters of one row. An engine reserves memory for them in each slot.
struct row_limits {
  std::uint32_t logit_bias_max = request_bias_max + own_bias_max;
  std::uint32_t stop_ids_max = request_stop_ids_max + own_stop_ids_max;
};

/// How one row samples its tokens, after defaults, presets and dialects were applied (by protocol). One step:
///   z[i] = (logit[i] + bias[i] - P[i] - lasting_penalty * sampled_before[i]) / temperature;  p = softmax(z)
///   min_p, then top_k and top_p together choose the kept tokens; one of them is sampled
///   P *= penalty_decay; P[sampled] += first_penalty if it was never sampled before, else repeat_penalty
/// P and sampled_before[i] (1 if token i was sampled before, else 0) start from `prior` with each request and count
/// generated tokens only. The "rapid" dialect (alpha_*) maps presence -> first, frequency -> repeat; OpenAI's maps
/// presence + frequency -> first, frequency -> repeat, with decay 1.
struct sampling_params {
  float temperature = 1.0f;  ///< 0 (or below 0.001): greedy. Otherwise 0.001 .. 1000
  float top_p = 1.0f;        ///< 0 .. 1; 0: greedy
  std::int32_t top_k = 0;    ///< <= 0 or above the vocabulary size: no limit; 1: greedy
  float min_p = 0.0f;        ///< removes p < min_p * p_max, before top_k and top_p; top_p remains a share of the full
                             ///< softmax
  float first_penalty = 0.0f;
  float repeat_penalty = 0.0f;
  float lasting_penalty = 0.0f;  ///< subtracted in addition to P from every token sampled before; never decays
  float penalty_decay = 1.0f;    ///< (0, 1]
  /// The classic order: min_p, top_k and top_p filter the softmax at temperature 1, tokens at the threshold keep their
  /// full weight (ties, and the token that crosses top_p), and the temperature applies to the kept tokens.
  bool filters_first = false;
  /// Above 0: instead of sampling by weight, takes the largest of logit / temperature + noise * u[i], with u uniform in
  /// [0, 1) and independent for every token of every step. Filters are ignored; greedy sampling ignores the noise.
  float noise = 0.0f;
  std::vector<logit_bias_entry> logit_bias;
  shared_penalties prior;  ///< penalties before the first step, see penalties_of
  /// Null: any text. Otherwise only tokens that the rule allows are sampled, and the row ends when its text is
  /// complete.
  std::shared_ptr<const constraint> rule;
  std::vector<token_id> stop_ids;   ///< sampling one of these stops the row; the token has no text
  std::uint32_t max_tokens = 4096;  ///< the row stops after this number of generated tokens
  /// Tokens of the same answer sampled by an earlier run. Steps are numbered from here on: random numbers and
  /// logit_bias_entry::first count them, max_tokens does not. Their penalties are in `prior`.
  std::uint32_t sampled_before = 0;
  std::uint64_t seed = 0;
  std::uint32_t row = 0;  ///< row of `n`; random numbers are keyed by (seed, row, index of generated token)
  bool logprobs = false;
  std::uint32_t top_logprobs = 0;  ///< 0 .. top_logprobs_max
};

struct token_logprob {
  token_id token;
  float logprob;
};

/// Log-probability of a token and the best alternatives, from the raw softmax at temperature 1, before bias, penalties
/// and filters; with a constraint, of the tokens that it allows. `top` is in descending order (ties: lower id first).
struct token_logprobs {
  float logprob = 0;
  bool finite = true;  ///< false: a logit was NaN or infinite; it was replaced as in sampler::draw
  std::uint32_t count = 0;
  std::array<token_logprob, top_logprobs_max> top{};
};

/// Of a token without alternatives, if `top` alternatives are wanted.
[[nodiscard]] inline token_logprobs certain_token(token_id token, std::uint32_t top) {
  token_logprobs made;
  made.count = top > 0 ? 1 : 0;
  made.top[0] = {token, 0};
  return made;
}

}  // namespace skein::sampling
