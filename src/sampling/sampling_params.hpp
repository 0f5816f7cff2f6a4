#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.hpp"

namespace skein::sampling {

inline constexpr std::uint32_t top_logprobs_max = 20;

struct logit_bias_entry {
  token_id token;
  float bias;  ///< added to the logit before penalties; -100 .. 100
  /// The draws that it counts for, by number from 0: first .. end - 1; end 0: all from `first` on.
  std::uint16_t first = 0, end = 0;

  [[nodiscard]] bool counts_for(std::uint32_t draw) const { return draw >= first && (end == 0 || draw < end); }
};

/// A token that was drawn and what is subtracted from its logit, P in sampling_params. P may have become 0: the token
/// still counts as drawn before.
struct token_penalty {
  token_id token;
  float penalty;
};

/// Those of a prompt, which its rows share; no token twice. May be null: none.
using shared_penalties = std::shared_ptr<const std::vector<token_penalty>>;

/// As good as -infinity, and finite.
inline constexpr float ban = -1e30f;
/// What a request may bring where the configuration does not say otherwise.
inline constexpr std::uint32_t request_bias_max = 1024, request_stop_ids_max = 128;
/// What the server adds to a request: two bans (force_reasoning), and the end of text.
inline constexpr std::uint32_t own_bias_max = 2, own_stop_ids_max = 1;

/// Entries that the parameters of one row may have. An engine reserves memory for them in each slot.
struct row_limits {
  std::uint32_t logit_bias_max = request_bias_max + own_bias_max;
  std::uint32_t stop_ids_max = request_stop_ids_max + own_stop_ids_max;
};

/// How one row draws its tokens, after defaults, presets and dialects were applied (protocol does that). One step:
///   z[i] = (logit[i] + bias[i] - P[i] - lasting_penalty * drawn_before[i]) / temperature;  p = softmax(z)
///   min_p, then joint top_k and top_p choose the kept tokens; one is drawn
///   P *= penalty_decay; P[drawn] += first_penalty if it was never drawn before, else repeat_penalty
/// P and "drawn before" start empty with each request, but for `prior`, and know generated tokens only.
/// The "rapid" dialect (alpha_*) maps presence -> first, frequency -> repeat; OpenAI's maps presence + frequency ->
/// first, frequency -> repeat, with decay 1.
struct sampling_params {
  float temperature = 1.0f;  ///< 0 (or below 0.001): greedy. Otherwise 0.001 .. 1000
  float top_p = 1.0f;        ///< 0 .. 1; 0: greedy
  std::int32_t top_k = 0;    ///< <= 0 or above the vocabulary: no limit; 1: greedy
  float min_p = 0.0f;        ///< removes p < min_p * p_max, before top_k and top_p; top_p stays a share of all
  float first_penalty = 0.0f;
  float repeat_penalty = 0.0f;
  float lasting_penalty = 0.0f;  ///< subtracted beside P from every token that was drawn before; never decays
  float penalty_decay = 1.0f;    ///< (0, 1]
  /// The classic order: min_p, top_k and top_p choose by softmax at temperature 1, all that they reach are kept whole
  /// (ties, and the token that passes top_p), and the temperature changes the weights of these.
  bool filters_first = false;
  /// Above 0: no draw by weights, but the largest of logit / temperature + noise * u[i], where u is uniform in [0, 1)
  /// and new for every token of every draw. Filters do not count; where the draw is greedy, noise does not.
  float noise = 0.0f;
  std::vector<logit_bias_entry> logit_bias;
  shared_penalties prior;           ///< what counts as drawn before the first draw, see penalties_of
  std::vector<token_id> stop_ids;   ///< sampled one of these: the row stops; the token has no text
  std::uint32_t max_tokens = 4096;  ///< the row stops after that many generated tokens
  /// Tokens of the same answer that an earlier run drew. Draws are numbered from here on: random numbers and
  /// logit_bias_entry::first count them, max_tokens does not. Their penalties are in `prior`.
  std::uint32_t drawn_before = 0;
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
/// and filters. `top` is in falling order (ties: lower id first).
struct token_logprobs {
  float logprob = 0;
  bool finite = true;  ///< false: a logit was NaN or infinite; the numbers count them as sampler::draw does
  std::uint32_t count = 0;
  std::array<token_logprob, top_logprobs_max> top{};
};

}  // namespace skein::sampling
