#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.hpp"
#include "sampling/sampler.hpp"

namespace skein::engine {

/// The data of the sequence in one slot of a host engine, except its recurrent state.
class sequence_slot {
 public:
  explicit sequence_slot(std::uint32_t vocab) : sampler_(vocab) {}
  /// Memory of one slot, without kept logits.
  [[nodiscard]] static std::size_t planned_bytes(std::uint32_t vocab) {
    return sizeof(sequence_slot) + sampling::sampler::planned_bytes(vocab);
  }

  /// Starts a new sequence: nothing sampled, not frozen.
  void start(const sampling::sampling_params& params);
  /// Sets new parameters and thaws the slot; the last token stays.
  void restart_sampler(const sampling::sampling_params& params);
  /// Copies position, last token and frozen flag of another slot; the parameters stay.
  void copy_position(const sequence_slot& from);
  /// Saves position, last token and frozen flag; the caller saves the state itself.
  void save(parked_sequence& out) const;
  void restore(const sampling::sampling_params& params, const parked_sequence& in);

  [[nodiscard]] sampling::sampler& sampler() { return sampler_; }
  [[nodiscard]] const sampling::sampler& sampler() const { return sampler_; }
  [[nodiscard]] bool frozen() const { return frozen_; }
  [[nodiscard]] bool budget_spent() const { return sampler_.budget_spent(); }
  void freeze() { frozen_ = true; }

  /// Returns the token to feed next (no_token if none) and clears it.
  [[nodiscard]] token_id take_last_token();
  /// Sets the last token to one that the sampler has recorded; freezes the slot if it ends the sequence.
  stop_cause accept(token_id token);
  /// The same for a row of a group, whose first row has decided whether the sequence ends.
  void accept(token_id token, stop_cause decided);

  /// Keeps the logits of a sync row for sample_kept.
  void keep_logits(std::span<const float> logits);
  void drop_logits() { awaits_sample_ = false; }
  [[nodiscard]] bool awaits_sample() const { return awaits_sample_; }
  /// Samples from the kept logits.
  [[nodiscard]] sampling::sampler::sampled sample_kept(std::span<const std::uint32_t> allowed);

 private:
  sampling::sampler sampler_;
  token_id last_token_ = no_token;  // sampled, not yet fed
  bool frozen_ = false;
  bool awaits_sample_ = false;
  std::vector<float> kept_logits_;  // [vocab] once the slot has had a sync row
};

}  // namespace skein::engine
