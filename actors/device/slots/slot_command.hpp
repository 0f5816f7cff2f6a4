#pragma once
#include <memory>
#include <variant>
#include <vector>

#include "engine/engine.hpp"
#include "storage/records/records.hpp"

namespace skein::device {

// ---- engine calls that the device actor makes before the tick, in order ----
struct start_slot {
  slot_id slot;
  const sampling::sampling_params* params;
};
/// Keeps the state; a new sequence continues from it.
struct restart_slot {
  slot_id slot;
  const sampling::sampling_params* params;
};
struct write_slot {
  slot_id slot;
  storage::state_buffer state;
};
struct clear_slot {
  slot_id slot;
};
struct copy_slot {
  slot_id from, to;
};
struct park_slot {
  slot_id slot;
  std::shared_ptr<engine::parked_sequence> to;
};
struct unpark_slot {
  slot_id slot;
  const sampling::sampling_params* params;
  std::shared_ptr<engine::parked_sequence> from;
};
using slot_command = std::variant<start_slot, restart_slot, write_slot, clear_slot, copy_slot, park_slot, unpark_slot>;

/// The work of one tick. Parameters stay alive until the next call of the scheduler, buffers until their states have
/// moved.
struct tick_work {
  std::vector<slot_command> commands;
  engine::tick_plan plan;
  [[nodiscard]] bool empty() const { return commands.empty() && plan.rows.empty(); }
};

}  // namespace skein::device
