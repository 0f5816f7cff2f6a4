#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "engine/backend.hpp"
#include "engine/gpu/slot_rules.hpp"
#include "engine/state_mover.hpp"
#include "kernels/gpu/tick/tick_runner.hpp"

namespace skein::engine {

/// Runs ticks on a GPU: translates engine commands into those of a tick_runner, and the output of its kernels into
/// results. A state copied out of a slot is first copied to a device staging buffer between two ticks, from there to
/// pinned memory on a separate stream, and then to the caller's memory by separate threads; no tick waits for the last
/// two copies. A state copied in takes the same path back; commands that name its slot wait for it.
class gpu_backend final : public backend {
 public:
  gpu_backend(std::unique_ptr<kernels::gpu::tick_runner> runner, const engine_info& info);

  void start(slot_id slot, const sampling::sampling_params& params) override;
  void restart_sampler(slot_id slot, const sampling::sampling_params& params) override;
  void copy_state(slot_id from, slot_id to) override;
  void clear(slot_id slot) override;
  [[nodiscard]] result<void> park(slot_id slot, parked_sequence& out) override;
  [[nodiscard]] result<void> unpark(slot_id slot, const sampling::sampling_params& params,
                                    const parked_sequence& in) override;
  [[nodiscard]] result<void> write_state(slot_id slot, const model::state_view& state) override;
  [[nodiscard]] result<void> read_state(slot_id slot, model::state_value& out) override;
  [[nodiscard]] result<states_on_way> move_states() override;
  [[nodiscard]] result<void> launch(const tick_plan& plan, tick_result& out) override;
  [[nodiscard]] bool ready() override;
  [[nodiscard]] result<void> complete(const tick_plan& plan, tick_result& out) override;
  [[nodiscard]] result<void> settle() override;
  [[nodiscard]] result<row_result> sample(slot_id slot, std::span<const std::uint32_t> allowed) override;

 private:
  // A state being copied out: in the staging buffer on the device, then in its pinned memory, then with the mover.
  struct departure {
    std::uint32_t stage;
    parked_sequence* parked;  // null: only the state
    model::state_value* state;
    const std::byte* memory;                 // the target, if it is already allocated
    std::uint64_t copy = 0;                  // its number in the mover, once handed over
    std::vector<token_id> last_tokens = {};  // of `parked`, if the host knows them
  };
  // A state being copied in: with the fetcher, then in the stage's pinned memory, then on the device.
  struct arrival {
    std::uint32_t stage;
    slot_id slot;
    std::uint64_t copy;  // its number in the fetcher
    bool sent = false;   // the copy from pinned memory to the device was queued
  };
  // The logits of a sync row that wait for draw().
  struct kept_logits {
    std::vector<float> logits;
    bool awaited = false;
    std::uint64_t dropped_after = 0;  // logits of ticks up to this one are obsolete
  };

  [[nodiscard]] result<void> give_prior(slot_id slot, const sampling::sampling_params& params);
  [[nodiscard]] kernels::gpu::sampler_start start_of(const sampling::sampling_params& params);
  [[nodiscard]] kernels::gpu::tick_row row_of(const row& r, row_result& out);
  void feed_run(const row& r, kernels::gpu::tick_row& to, row_result& out);
  void report(const tick_plan& plan, std::size_t index, const kernels::gpu::row_outcome& done, std::uint64_t tick,
              row_result& out);
  void drop_logits(slot_id slot);

  [[nodiscard]] result<void> depart(slot_id slot, parked_sequence* parked, model::state_value& state);
  /// Hands the next departing state to the mover; waits until it is in pinned memory.
  [[nodiscard]] result<void> hand_over();
  /// Waits until the first `count` departures are complete.
  [[nodiscard]] result<void> see_off(std::size_t count);
  [[nodiscard]] result<void> see_off_to(const model::state_value* state, const std::byte* memory);
  [[nodiscard]] result<void> arrive(slot_id slot, const model::state_view& state, std::uint32_t stage,
                                    const kernels::gpu::staged_state& to);
  /// Puts the first arriving state into its slot; waits for it.
  [[nodiscard]] result<void> bring_in_first();
  /// The same for all arrivals up to the one for this slot, if there is one: the current command names the slot.
  [[nodiscard]] result<void> bring_in(slot_id slot);
  [[nodiscard]] bool is_free(std::uint32_t stage) const;
  [[nodiscard]] result<std::uint32_t> free_stage();

  const std::unique_ptr<kernels::gpu::tick_runner> runner_;
  const std::uint32_t vocab_;
  const model::state_format state_;  // of the runner
  std::vector<kept_logits> kept_;    // one per slot
  std::uint64_t launched_ = 0;       // number of the newest tick
  std::deque<departure> departures_;
  std::size_t handed_over_ = 0;  // the number of departures, from the first, that are with the mover
  std::deque<arrival> arrivals_;
  std::uint32_t next_stage_ = 0;

  // Of the current command; members, so that the next one does not allocate.
  std::vector<kernels::gpu::bias_entry> bias_;
  std::vector<kernels::gpu::tick_row> rows_;
  std::vector<token_id> tokens_;
  std::uint32_t room_ = 0;  // for tokens of runs beyond those planned
  const std::uint32_t max_tick_tokens_;
  slot_rules rules_;

  state_mover mover_;    // of states copied out
  state_mover fetcher_;  // of states copied in
};

}  // namespace skein::engine
