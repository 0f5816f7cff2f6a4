#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "storage/records.hpp"

namespace skein::device {

using storage::state_key;

/// The free slots of an engine. Some still hold a settled state, so that the next turn of its session can take it up
/// where it lies: a copy that nobody misses when it goes. They are given to others last, the one kept longest first.
class kept_slots {
 public:
  /// At most `kept_max` of the free slots hold a state.
  kept_slots(std::uint32_t slots, std::uint32_t kept_max);

  /// Those with a state included.
  [[nodiscard]] std::size_t free() const { return empty_.size() + kept_.size(); }
  [[nodiscard]] std::uint32_t kept() const { return static_cast<std::uint32_t>(kept_.size()); }
  [[nodiscard]] bool holds(const state_key& key) const;

  struct taken_slot {
    slot_id slot;
    bool hit;           ///< it holds the state that was wanted
    state_key dropped;  ///< that was kept in it until now; none: nothing was
  };
  /// One that holds `wanted`, else an empty one, else the one kept longest. Call only where one is free.
  [[nodiscard]] taken_slot take(const state_key& wanted);
  /// The slot is free again, and what it holds is nothing worth.
  void give_back(slot_id slot) { empty_.push_back(slot); }

  struct keeping {
    bool kept;          ///< false: the ceiling is nothing, or another slot holds this state
    state_key dropped;  ///< went for it; none: nothing did
  };
  /// The slot is free again and holds this state.
  [[nodiscard]] keeping keep(slot_id slot, const state_key& key);

  /// Takes the state out of one slot that keeps one of this owner; none: there is no such slot. The slot stays free.
  struct forgotten {
    slot_id slot;
    state_key key;
  };
  [[nodiscard]] std::optional<forgotten> forget_one(storage::session_uid owner);
  /// Likewise of any owner.
  [[nodiscard]] std::optional<forgotten> drop_one();

  /// Every slot is free; nothing is kept.
  void reset();

 private:
  struct kept_state {
    slot_id slot;
    state_key key;
  };
  std::optional<forgotten> drop(std::vector<kept_state>::iterator at);

  const std::uint32_t slots_, kept_max_;
  std::vector<slot_id> empty_;    // the one that became free last is the next
  std::vector<kept_state> kept_;  // in the order of keeping
};

}  // namespace skein::device
