#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "engine/backend.hpp"
#include "engine/state_mover.hpp"
#include "kernels/gpu/tick_runner.hpp"

namespace skein::engine {

/// Ticks on a GPU: commands in the words of the engine become those of a tick_runner, and what its kernels left becomes
/// results. States that leave a slot are copied to pinned memory by the device and from there by a thread of their own,
/// while ticks go on.
class gpu_backend final : public backend {
 public:
  gpu_backend(std::unique_ptr<kernels::gpu::tick_runner> runner, std::uint32_t slots, std::uint32_t vocab,
              std::uint32_t max_tick_rows);

  void start(slot_id slot, const sampling::sampling_params& params) override;
  void restart_sampler(slot_id slot, const sampling::sampling_params& params) override;
  void copy_state(slot_id from, slot_id to) override;
  void clear(slot_id slot) override;
  [[nodiscard]] result<void> park(slot_id slot, parked_sequence& out) override;
  [[nodiscard]] result<void> unpark(slot_id slot, const sampling::sampling_params& params,
                                    const parked_sequence& in) override;
  [[nodiscard]] result<void> write_state(slot_id slot, std::span<const float> state) override;
  [[nodiscard]] result<void> read_state(slot_id slot, std::span<float> state) override;
  [[nodiscard]] result<void> launch(const tick_plan& plan, tick_result& out) override;
  [[nodiscard]] bool ready() override;
  [[nodiscard]] result<void> complete(const tick_plan& plan, tick_result& out) override;
  [[nodiscard]] result<void> settle() override;
  [[nodiscard]] result<row_result> draw(slot_id slot, std::span<const std::uint32_t> allowed) override;

 private:
  // A slot on its way to the pinned memory of a stage, from where the mover takes it to the caller's.
  struct departure {
    std::uint32_t stage;
    parked_sequence* parked;  // or
    std::span<float> state;
    std::uint64_t tick;  // the first that is launched behind it: who collects that finds the state
  };
  // The logits of a sync row that await their draw.
  struct kept_logits {
    std::vector<float> logits;
    bool awaited = false;
    std::uint64_t dropped_after = 0;  // logits of ticks up to this one count no more
  };

  [[nodiscard]] kernels::gpu::sampler_start start_of(const sampling::sampling_params& params);
  [[nodiscard]] kernels::gpu::tick_row row_of(const row& r, row_result& out) const;
  void report(const tick_plan& plan, std::size_t index, const kernels::gpu::row_outcome& done, std::uint64_t tick,
              row_result& out);
  void drop_logits(slot_id slot);

  [[nodiscard]] result<void> depart(slot_id slot, parked_sequence* parked, std::span<float> state);
  /// Gives the mover what began before tick number `tick` was launched, once it is in pinned memory.
  [[nodiscard]] result<void> hand_over(std::uint64_t tick);
  [[nodiscard]] result<void> hand_over_all();
  [[nodiscard]] result<void> hand_over_first();
  [[nodiscard]] result<std::uint32_t> free_stage();

  const std::unique_ptr<kernels::gpu::tick_runner> runner_;
  const std::uint32_t vocab_;
  std::vector<kept_logits> kept_;  // of each slot
  std::uint64_t launched_ = 0;     // number of the newest tick
  std::deque<departure> departures_;
  std::uint32_t next_stage_ = 0;
  std::uint64_t last_copy_ = 0;
  std::array<std::uint64_t, kernels::gpu::tick_runner::stages_of_states> copies_{};  // by the mover, of each stage

  // Of the command at work; kept so that the next one takes no memory.
  std::vector<kernels::gpu::bias_entry> bias_;
  std::vector<kernels::gpu::tick_row> rows_;

  state_mover mover_;
};

}  // namespace skein::engine
