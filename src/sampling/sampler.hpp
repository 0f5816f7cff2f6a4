#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sampling/constraint.hpp"
#include "sampling/logit_row.hpp"
#include "sampling/penalties.hpp"
#include "sampling/sampling_params.hpp"
#include "sampling/selection.hpp"

namespace skein::sampling {

/// The sampler of one slot: parameters, penalties, position and constraint of its row. The constructor reserves all
/// memory: about 8 bytes per vocabulary entry, and 16 more that stay untouched unless a distribution is flat or a
/// sequence very long. start and draw allocate nothing that grows with use, except for a row with a constraint.
/// Sampling is a pure function of (logits, params, tokens sampled so far): equal inputs give equal tokens.
class sampler {
 public:
  explicit sampler(std::uint32_t vocab);
  /// The memory that one sampler reserves.
  [[nodiscard]] static std::size_t planned_bytes(std::uint32_t vocab);

  /// Begins a row: clears all penalties; generated() becomes sampled_before. Bias outside the vocabulary has no effect.
  void start(const sampling_params& params);

  /// Samples from `logits` (vocab raw values) and records the token. `allowed`: empty, or one bit per token (bit i%32
  /// of word i/32); other tokens are never sampled; at least one bit must be set (asserted). NaN logits count as 0,
  /// infinities as the largest float.
  struct sampled {
    token_id token = no_token;
    bool finite = true;       ///< false: a logit was NaN or infinite
    token_logprobs logprobs;  ///< filled if params.logprobs
  };
  [[nodiscard]] sampled sample(std::span<const float> logits, std::span<const std::uint32_t> allowed = {});

  /// Turns raw logits into penalised ones, in place: bias added, penalties subtracted (for mixtures of states).
  void penalise(std::span<float> logits) const;
  /// Samples from penalised logits and records the token; log-probabilities come from `raw`.
  [[nodiscard]] sampled sample_penalised(std::span<const float> penalised, std::span<const float> raw,
                                         std::span<const std::uint32_t> allowed = {});

  /// Records a token that was sampled elsewhere (in another row of a group), or that is forced, as this row's next.
  void record(token_id token);
  /// The only token that the constraint allows next, as far as that is known; no_token: there is a choice.
  [[nodiscard]] token_id forced();

  [[nodiscard]] const sampling_params& params() const { return params_; }
  /// Number of sampled tokens, including sampled_before.
  [[nodiscard]] std::uint32_t generated() const { return generated_; }
  [[nodiscard]] bool budget_spent() const { return generated_ - params_.sampled_before >= params_.max_tokens; }
  [[nodiscard]] bool is_stop(token_id token) const;
  /// The constraint is met, and nothing can follow the text.
  [[nodiscard]] bool is_complete() const { return rule_ && rule_->complete(); }
  /// The last token was sampled although the constraint allowed none: the row must end unfinished.
  [[nodiscard]] bool is_stuck() const { return stuck_; }

  /// Saved with a parked sequence: penalties and position. Call start(params) before restore.
  struct saved {
    std::uint32_t generated = 0;
    std::vector<token_penalty> penalties;    ///< one entry for every token sampled so far
    std::shared_ptr<const token_rule> rule;  ///< null: no constraint
  };
  [[nodiscard]] saved save() const;
  void restore(const saved& from);

 private:
  sampled sample_loaded(std::span<const float> raw, std::span<const std::uint32_t> allowed);
  token_id choose(std::span<const std::uint32_t> allowed);
  [[nodiscard]] std::span<const std::uint32_t> narrowed(std::span<const std::uint32_t> allowed);
  [[nodiscard]] token_logprobs score(std::span<const float> raw, token_id token,
                                     std::span<const std::uint32_t> allowed);
  void add_noise(std::span<float> logits) const;

  sampling_params params_;
  std::uint32_t generated_ = 0;
  penalties penalties_;
  logit_row row_;
  std::vector<candidate> candidates_;
  std::unique_ptr<token_rule> rule_;  // null: any text
  bool stuck_ = false;
  std::vector<std::uint32_t> mask_;  // of the rule
  std::vector<float> allowed_raw_;   // raw logits under it, for log-probabilities; empty without these
};

/// Log-probability of `token` under the raw logits, with the `top` best alternatives (top_logprobs_max at most). Always
/// finite: a value below the range of float becomes the lowest float.
[[nodiscard]] token_logprobs log_probabilities(std::span<const float> logits, token_id token, std::uint32_t top);

}  // namespace skein::sampling
