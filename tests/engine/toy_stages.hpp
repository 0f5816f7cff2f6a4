#pragma once
#include <cstdint>
#include <vector>

#include "kernels/stages.hpp"

namespace skein::test {

/// Stages with a small recurrence in whole numbers (exact in fp32) instead of a model: each layer mixes a row with the
/// row before, then with a running sum. They check on every call what an engine owes them: slots at most once, runs
/// that cover the batch, sizes within the limits, layers in order.
class toy_stages final : public kernels::stages {
 public:
  static constexpr std::uint32_t layers = 3;

  struct options {
    std::uint32_t vocab = 61;
    kernels::stage_limits limits;
    bool broken_logits = false;  ///< NaN and infinities among them
  };
  explicit toy_stages(const options& how);

  void embed(const kernels::batch& rows) override;
  void time_mix_in(std::uint32_t layer, const kernels::batch& rows) override;
  void time_mix_state(std::uint32_t layer, const kernels::batch& rows) override;
  void time_mix_out(std::uint32_t layer, const kernels::batch& rows) override;
  void channel_mix_in(std::uint32_t layer, const kernels::batch& rows) override;
  void channel_mix_out(std::uint32_t layer, const kernels::batch& rows) override;
  void head(const kernels::batch& rows, std::span<const std::uint32_t> wanted, std::span<float> logits) override;

  [[nodiscard]] std::size_t state_floats() const override { return layers * 2; }
  void clear_state(slot_id slot) override;
  void copy_state(slot_id from, slot_id to) override;
  void read_state(slot_id slot, std::span<float> out) const override;
  void write_state(slot_id slot, std::span<const float> in) override;

  /// Two halves on two threads, so that a race shows under ThreadSanitizer.
  void parallel_for(std::size_t count, range_body body, void* context) override;
  [[nodiscard]] memory_plan memory() const override {
    return {.weight_bytes = 1000, .activation_bytes = 100, .slot_bytes = 8 * layers, .slots = how_.limits.slots};
  }

 private:
  void expect_step(std::uint32_t step);
  [[nodiscard]] std::uint32_t& state(slot_id slot, std::uint32_t layer, std::uint32_t which);

  const options how_;
  std::vector<std::uint32_t> states_;    // [slots, layers, 2]
  std::vector<std::uint32_t> residual_;  // [rows]
  std::uint32_t next_step_ = 0;
};

}  // namespace skein::test
