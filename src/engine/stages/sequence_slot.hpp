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
  explicit sequence_slot(std::uint32_t vocab) : sampler_(vocab) { last_tokens_.reserve(1 + usual_forced_max); }
  /// Memory of one slot, without kept logits.
  [[nodiscard]] static std::size_t planned_bytes(std::uint32_t vocab) {
    return sizeof(sequence_slot) + sampling::sampler::planned_bytes(vocab);
  }

  /// Starts a new sequence: nothing sampled, not frozen.
  void start(const sampling::sampling_params& params);
  /// Sets new parameters and thaws the slot; the last tokens stay.
  void restart_sampler(const sampling::sampling_params& params);
  /// Copies position, last tokens and frozen flag of another slot; the parameters stay.
  void copy_position(const sequence_slot& from);
  /// Saves position, last tokens and frozen flag; the caller saves the state itself.
  void save(parked_sequence& out) const;
  void restore(const sampling::sampling_params& params, const parked_sequence& in);

  [[nodiscard]] sampling::sampler& sampler() { return sampler_; }
  [[nodiscard]] const sampling::sampler& sampler() const { return sampler_; }
  [[nodiscard]] bool frozen() const { return frozen_; }
  [[nodiscard]] bool budget_spent() const { return sampler_.budget_spent(); }
  void freeze() { frozen_ = true; }

  /// The tokens to feed next, in order: sampled or forced, not yet fed.
  [[nodiscard]] std::span<const token_id> last_tokens() const { return last_tokens_; }
  /// The first `count` of them are fed.
  void drop_last_tokens(std::size_t count) {
    last_tokens_.erase(last_tokens_.begin(), last_tokens_.begin() + static_cast<std::ptrdiff_t>(count));
  }
  /// Adds a token that the sampler has recorded to the last ones; freezes the slot if it ends the sequence.
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
  std::vector<token_id> last_tokens_;
  bool frozen_ = false;
  bool awaits_sample_ = false;
  std::vector<float> kept_logits_;  // [vocab] once the slot has had a sync row
};

}  // namespace skein::engine
