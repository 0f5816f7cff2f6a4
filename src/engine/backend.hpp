#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.hpp"

namespace skein::engine {

/// States that were asked for and have not moved yet: the latest of the calls.
struct states_on_way {
  std::uint32_t leaving = 0, coming = 0;
};

/// The work behind a host-run engine (host_engine.hpp): the commands of `engine`. All calls come from one thread, in
/// the order in which they were queued. A back end that computes on the host has done a command when its call returns;
/// one that drives a device may only have queued it there, in the same order. An error or an exception means that the
/// device is lost: ticks launched before it may still be completed, no other call follows.
class backend {
 public:
  virtual ~backend() = default;

  virtual void start(slot_id slot, const sampling::sampling_params& params) = 0;
  virtual void restart_sampler(slot_id slot, const sampling::sampling_params& params) = 0;
  virtual void copy_state(slot_id from, slot_id to) = 0;
  virtual void clear(slot_id slot) = 0;
  /// The slot as it is now. `out`, here and in read_state, is written when move_states() counts it no more.
  [[nodiscard]] virtual result<void> park(slot_id slot, parked_sequence& out) = 0;
  /// `in`, here and in write_state, was read when move_states() counts it no more. It may still be on its way out.
  [[nodiscard]] virtual result<void> unpark(slot_id slot, const sampling::sampling_params& params,
                                            const parked_sequence& in) = 0;
  [[nodiscard]] virtual result<void> write_state(slot_id slot, std::span<const float> state) = 0;
  [[nodiscard]] virtual result<void> read_state(slot_id slot, std::span<float> state) = 0;

  /// Moves states that are on their way, and says how many are; it is called again and again while there are any.
  [[nodiscard]] virtual result<states_on_way> move_states() { return states_on_way{}; }

  /// Begins tick number `out.tick`. `out` comes with what an older tick left in it, so that its memory is used again.
  /// The plan has passed check_plan; it and `out` stay where they are until the tick is complete.
  [[nodiscard]] virtual result<void> launch(const tick_plan& plan, tick_result& out) = 0;
  /// True when complete() would not wait for the device.
  [[nodiscard]] virtual bool ready() { return true; }
  /// Ends the oldest tick that was launched: `out` leaves with one entry per row of the plan.
  [[nodiscard]] virtual result<void> complete(const tick_plan& plan, tick_result& out) = 0;
  /// Waits until every command outside of ticks has run, and every state has moved. No tick is in flight.
  [[nodiscard]] virtual result<void> settle() { return {}; }

  /// No tick is in flight.
  [[nodiscard]] virtual result<row_result> draw(slot_id slot, std::span<const std::uint32_t> allowed) = 0;
};

}  // namespace skein::engine
