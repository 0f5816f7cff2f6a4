#pragma once
#include <vector>

#include "engine/fake/fake_model.hpp"
#include "kernels/stages.hpp"

namespace skein::engine {

/// The fake model as stages of one layer: embed feeds the hashes, head computes logits from them, the rest are no-ops.
class fake_stages final : public kernels::stages {
 public:
  fake_stages(const fake_model& model, std::uint32_t slots) : model_(model), states_(slots, fake_initial_state) {}

  void embed(const kernels::batch& rows) override;
  void time_mix_in(std::uint32_t, const kernels::batch&) override {}
  void time_mix_state(std::uint32_t, const kernels::batch&) override {}
  void time_mix_out(std::uint32_t, const kernels::batch&) override {}
  void channel_mix_in(std::uint32_t, const kernels::batch&) override {}
  void channel_mix_out(std::uint32_t, const kernels::batch&) override {}
  void head(const kernels::batch& rows, std::span<const std::uint32_t> wanted, std::span<float> logits) override;

  [[nodiscard]] std::size_t state_floats() const override { return model_.state_floats; }
  void clear_state(slot_id slot) override { states_[slot] = fake_initial_state; }
  void copy_state(slot_id from, slot_id to) override { states_[to] = states_[from]; }
  void read_state(slot_id slot, std::span<float> out) const override { write_fake_state(states_[slot], out); }
  /// Asserts that the floats are a valid state; callers check with read_fake_state first.
  void write_state(slot_id slot, std::span<const float> in) override;

  void parallel_for(std::size_t count, range_body body, void* context) override { body(context, 0, count); }
  [[nodiscard]] memory_plan memory() const override {
    return {.slot_bytes = model_.state_floats * sizeof(float), .slots = static_cast<std::uint32_t>(states_.size())};
  }

 private:
  const fake_model model_;
  std::vector<sha256_digest> states_;      // by slot
  std::vector<sha256_digest> row_states_;  // after each row of the batch
};

}  // namespace skein::engine
