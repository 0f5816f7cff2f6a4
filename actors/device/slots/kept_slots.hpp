#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "storage/records/records.hpp"

namespace skein::device {

using storage::state_key;

/// The free slots of an engine. Some still hold a settled state, so that the next turn of its session can resume it in
/// place. That state is only a copy and may be dropped: such slots are reassigned last, oldest first.
class kept_slots {
 public:
  /// At most `kept_max` of the free slots hold a state.
  kept_slots(std::uint32_t slots, std::uint32_t kept_max);

  /// All free slots, including those with a state.
  [[nodiscard]] std::size_t free() const { return empty_.size() + kept_.size(); }
  [[nodiscard]] std::uint32_t kept() const { return static_cast<std::uint32_t>(kept_.size()); }
  [[nodiscard]] bool holds(const state_key& key) const;

  struct taken_slot {
    slot_id slot;
    bool hit;           ///< it holds the wanted state
    state_key dropped;  ///< the state that was kept in it; empty: none
  };
  /// A slot that holds `wanted`, else an empty one, else the one kept longest. Call only if a slot is free.
  [[nodiscard]] taken_slot take(const state_key& wanted);
  /// Frees the slot without keeping its state.
  void give_back(slot_id slot) { empty_.push_back(slot); }

  struct keeping {
    bool kept;          ///< false: the limit is 0, or another slot holds this state
    state_key dropped;  ///< the state that was dropped to make room; empty: none
  };
  /// Frees the slot and keeps this state in it.
  [[nodiscard]] keeping keep(slot_id slot, const state_key& key);

  /// Drops a kept state of this owner; empty if there is none. The slot stays free.
  struct forgotten {
    slot_id slot;
    state_key key;
  };
  [[nodiscard]] std::optional<forgotten> forget_one(storage::session_uid owner);
  /// Drops a kept state of any owner.
  [[nodiscard]] std::optional<forgotten> drop_one();

  /// Makes every slot free and drops all kept states.
  void reset();

 private:
  struct kept_state {
    slot_id slot;
    state_key key;
  };
  std::optional<forgotten> drop(std::vector<kept_state>::iterator at);

  const std::uint32_t slots_, kept_max_;
  std::vector<slot_id> empty_;    // a stack: the slot freed last is taken next
  std::vector<kept_state> kept_;  // oldest first
};

}  // namespace skein::device
