#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.hpp"
#include "sampling/sampler.hpp"

namespace skein::engine {

/// What an engine on the host knows of the sequence in one slot besides its recurrent state.
class sequence_slot {
 public:
  explicit sequence_slot(std::uint32_t vocab) : sampler_(vocab) {}
  /// That one takes, until it keeps logits.
  [[nodiscard]] static std::size_t planned_bytes(std::uint32_t vocab) {
    return sizeof(sequence_slot) + sampling::sampler::planned_bytes(vocab);
  }

  /// A fresh sequence: nothing sampled, not frozen.
  void start(const sampling::sampling_params& params);
  /// New parameters, thawed; the last token stays.
  void restart_sampler(const sampling::sampling_params& params);
  /// Position, last token and frozen flag of another slot under the own parameters.
  void copy_position(const sequence_slot& from);
  /// Position, last token and frozen flag; the state itself is the caller's.
  void save(parked_sequence& out) const;
  void restore(const sampling::sampling_params& params, const parked_sequence& in);

  [[nodiscard]] sampling::sampler& sampler() { return sampler_; }
  [[nodiscard]] const sampling::sampler& sampler() const { return sampler_; }
  [[nodiscard]] bool frozen() const { return frozen_; }
  [[nodiscard]] bool budget_spent() const { return sampler_.budget_spent(); }
  void freeze() { frozen_ = true; }

  /// The token to feed next (no_token if none), which is the last one no longer.
  [[nodiscard]] token_id take_last_token();
  /// Makes a token that the sampler has recorded the last one; freezes the slot if it ends the sequence.
  stop_cause accept(token_id token);
  /// As accept for a row of a group, whose first row has decided whether the sequence ends.
  void accept(token_id token, stop_cause decided);

  /// Keeps the logits of a sync row until draw.
  void keep_logits(std::span<const float> logits);
  void drop_logits() { awaits_draw_ = false; }
  [[nodiscard]] bool awaits_draw() const { return awaits_draw_; }
  /// Draws from the kept logits.
  [[nodiscard]] sampling::sampler::drawn draw_kept(std::span<const std::uint32_t> allowed);

 private:
  sampling::sampler sampler_;
  token_id last_token_ = no_token;  // sampled, not yet fed
  bool frozen_ = false;
  bool awaits_draw_ = false;
  std::vector<float> kept_logits_;  // [vocab] once the slot has had a sync row
};

}  // namespace skein::engine
