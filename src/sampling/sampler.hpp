#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sampling/logit_row.hpp"
#include "sampling/penalties.hpp"
#include "sampling/sampling_params.hpp"
#include "sampling/selection.hpp"

namespace skein::sampling {

/// The sampler of one slot: parameters, penalties and position of the row that sits there. All memory is reserved when
/// it is made: about 8 bytes per vocabulary entry, and 16 more that stay untouched unless a distribution is flat or a
/// sequence very long; start and draw allocate nothing that grows with use.
/// Sampling is a pure function of (logits, params, tokens drawn so far): equal inputs give equal tokens.
class sampler {
 public:
  explicit sampler(std::uint32_t vocab);
  /// That one reserves.
  [[nodiscard]] static std::size_t planned_bytes(std::uint32_t vocab);

  /// Begins a row: forgets all penalties; generated() becomes drawn_before. Bias outside the vocabulary has no effect.
  void start(const sampling_params& params);

  /// Draws from `logits` (vocab raw values) and records the draw. `allowed`: empty, or one bit per token (bit i%32 of
  /// word i/32), tokens outside are never drawn; at least one bit must be set (checked). NaN logits count as 0,
  /// infinities as the largest float.
  struct drawn {
    token_id token = no_token;
    bool finite = true;       ///< false: a logit was NaN or infinite
    token_logprobs logprobs;  ///< filled when params.logprobs
  };
  [[nodiscard]] drawn draw(std::span<const float> logits, std::span<const std::uint32_t> allowed = {});

  /// Turns raw logits into penalised ones, in place: bias added, penalties subtracted (for mixtures of states).
  void penalise(std::span<float> logits) const;
  /// Draws from logits that are already penalised; `raw` gives logprobs. Records the draw.
  [[nodiscard]] drawn draw_penalised(std::span<const float> penalised, std::span<const float> raw,
                                     std::span<const std::uint32_t> allowed = {});

  /// Records a token that was drawn elsewhere (another row of a group) as this row's next.
  void record(token_id token);

  [[nodiscard]] const sampling_params& params() const { return params_; }
  /// Tokens drawn, with those before start().
  [[nodiscard]] std::uint32_t generated() const { return generated_; }
  [[nodiscard]] bool budget_spent() const { return generated_ - params_.drawn_before >= params_.max_tokens; }
  [[nodiscard]] bool is_stop(token_id token) const;

  /// What must travel with a parked sequence: penalties and position. Restoring needs start(params) first.
  struct saved {
    std::uint32_t generated = 0;
    std::vector<token_penalty> penalties;  ///< every token drawn so far is listed
  };
  [[nodiscard]] saved save() const;
  void restore(const saved& from);

 private:
  drawn draw_loaded(std::span<const float> raw, std::span<const std::uint32_t> allowed);
  token_id choose(std::span<const std::uint32_t> allowed);
  void add_noise(std::span<float> logits) const;

  sampling_params params_;
  std::uint32_t generated_ = 0;
  penalties penalties_;
  logit_row row_;
  std::vector<candidate> candidates_;
};

/// Log-probability of `token` under the raw logits, with the `top` best alternatives (top_logprobs_max at most).
/// Always finite: one too small for a float is the lowest float.
[[nodiscard]] token_logprobs log_probabilities(std::span<const float> logits, token_id token, std::uint32_t top);

}  // namespace skein::sampling
