#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.hpp"

namespace skein::engine {

/// The work behind a host-run engine (host_engine.hpp): the commands of `engine`, each done when its call returns.
/// All calls come from one thread, in the order in which they were queued. An error or an exception means that the
/// device is lost; no call follows it.
class backend {
 public:
  virtual ~backend() = default;

  virtual void start(slot_id slot, const sampling::sampling_params& params) = 0;
  virtual void restart_sampler(slot_id slot, const sampling::sampling_params& params) = 0;
  virtual void copy_state(slot_id from, slot_id to) = 0;
  virtual void clear(slot_id slot) = 0;
  [[nodiscard]] virtual result<void> park(slot_id slot, parked_sequence& out) = 0;
  [[nodiscard]] virtual result<void> unpark(slot_id slot, const sampling::sampling_params& params,
                                            const parked_sequence& in) = 0;
  [[nodiscard]] virtual result<void> write_state(slot_id slot, std::span<const float> state) = 0;
  [[nodiscard]] virtual result<void> read_state(slot_id slot, std::span<float> state) = 0;

  /// Runs tick number `tick`. `results` comes with what an older tick left in it, so that its memory is used again, and
  /// leaves with one entry per row of the plan. The plan has passed check_plan.
  [[nodiscard]] virtual result<void> run(std::uint64_t tick, const tick_plan& plan,
                                         std::vector<row_result>& results) = 0;
  [[nodiscard]] virtual row_result draw(slot_id slot, std::span<const std::uint32_t> allowed) = 0;
};

}  // namespace skein::engine
