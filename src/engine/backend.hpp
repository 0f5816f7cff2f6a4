#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.hpp"

namespace skein::engine {

/// Requested state copies that are not complete. Always the most recent requests, since copies complete in order.
struct states_on_way {
  std::uint32_t leaving = 0, coming = 0;
};

/// Executes the commands of an `engine` for host_engine.hpp. One thread makes all calls, in the order in which the
/// commands were queued. A host back end has executed a command when the call returns; a device back end may only have
/// queued it on the device, in the same order. An error or an exception means that the device is lost: ticks launched
/// earlier may still be completed, and no other call follows.
class backend {
 public:
  virtual ~backend() = default;

  virtual void start(slot_id slot, const sampling::sampling_params& params) = 0;
  virtual void restart_sampler(slot_id slot, const sampling::sampling_params& params) = 0;
  virtual void copy_state(slot_id from, slot_id to) = 0;
  virtual void clear(slot_id slot) = 0;
  /// Copies out the current content of the slot. `out`, here and in read_state, is complete when move_states() no
  /// longer counts it.
  [[nodiscard]] virtual result<void> park(slot_id slot, parked_sequence& out) = 0;
  /// `in`, here and in write_state, is needed until move_states() no longer counts it. It may itself be the target of a
  /// copy out that is not complete yet.
  [[nodiscard]] virtual result<void> unpark(slot_id slot, const sampling::sampling_params& params,
                                            const parked_sequence& in) = 0;
  [[nodiscard]] virtual result<void> write_state(slot_id slot, const model::state_view& state) = 0;
  [[nodiscard]] virtual result<void> read_state(slot_id slot, model::state_value& out) = 0;

  /// Advances state copies in progress and returns how many remain; called repeatedly while there are any.
  [[nodiscard]] virtual result<states_on_way> move_states() { return states_on_way{}; }

  /// Begins tick number `out.tick`. `out` still holds the result of an older tick, so that its memory is reused. The
  /// plan has passed check_plan; the plan and `out` stay in place until the tick is complete.
  [[nodiscard]] virtual result<void> launch(const tick_plan& plan, tick_result& out) = 0;
  /// True if complete() would not wait for the device.
  [[nodiscard]] virtual bool ready() { return true; }
  /// Completes the oldest launched tick: fills `out` with one entry per row of the plan.
  [[nodiscard]] virtual result<void> complete(const tick_plan& plan, tick_result& out) = 0;
  /// Waits until every command outside of ticks has run and every state copy is complete. No tick is in flight.
  [[nodiscard]] virtual result<void> settle() { return {}; }

  /// No tick is in flight.
  [[nodiscard]] virtual result<row_result> sample(slot_id slot, std::span<const std::uint32_t> allowed) = 0;
};

}  // namespace skein::engine
