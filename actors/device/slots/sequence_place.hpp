#pragma once
#include <cstdint>
#include <memory>

#include "actors/device/slots/outside_states.hpp"
#include "engine/engine.hpp"

namespace skein::device {

/// Where the state of a sequence is, and the slot or copy that holds it. Every change is checked: there is one
/// authoritative copy of a state, and only a sequence without a slot waits for one.
///
///   nowhere -> waiting -> slot <-> parked <-> returning      each of them -> left
///
/// A row whose state comes from row 0 of its request goes from `nowhere` to a slot, or to `parked`. A parked sequence
/// of a mixture goes to a slot without waiting itself, and `returning` leads to a slot.
class sequence_place {
 public:
  enum class kind : std::uint8_t {
    nowhere,    ///< no state yet
    waiting,    ///< no state yet; in the queue for a slot
    slot,       ///< in a slot of the engine
    parked,     ///< copied out
    returning,  ///< copied out; in the queue for a slot
    left        ///< the sequence needs no state any more
  };
  /// Whether a sequence may go from one place directly to another.
  [[nodiscard]] static bool leads(kind from, kind to);

  [[nodiscard]] kind where() const { return where_; }
  [[nodiscard]] bool queued() const { return where_ == kind::waiting || where_ == kind::returning; }
  [[nodiscard]] bool has_slot() const { return where_ == kind::slot; }
  [[nodiscard]] bool is_parked() const { return where_ == kind::parked || where_ == kind::returning; }
  /// Call on a sequence with a slot only.
  [[nodiscard]] slot_id slot() const;
  /// The copy of a parked sequence, else null. Forked rows share one.
  [[nodiscard]] const std::shared_ptr<outside_state>& copy() const { return copy_; }

  /// Enters the queue.
  void wait();
  /// Leaves the queue; only a parked sequence may.
  void stop_waiting();
  /// Its state is, or will be, in this slot.
  void take(slot_id slot);
  /// Its state is, or will be, in this copy.
  void park(std::shared_ptr<outside_state> copy);
  void leave();

 private:
  void go(kind to);

  kind where_ = kind::nowhere;
  slot_id slot_ = 0;  // valid in a slot
  std::shared_ptr<outside_state> copy_;
};

}  // namespace skein::device
