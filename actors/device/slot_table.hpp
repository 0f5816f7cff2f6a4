#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "actors/device/scheduler_options.hpp"
#include "actors/device/sequence.hpp"
#include "actors/device/slots/kept_slots.hpp"
#include "actors/device/slots/outside_states.hpp"
#include "actors/device/slots/slot_command.hpp"
#include "actors/device/slots/state_moves.hpp"

namespace skein::device {

/// Where the states of all sequences are: the slots of the engine, and the copies outside. Each change is a checked
/// change of a sequence_place, together with the commands that the engine runs for it before the next tick.
///
/// States move in parallel with the ticks, limited by the engine's transfer buffers: callers ask may_leave() and
/// may_come() first, and is_here() before they rely on a state in its slot.
class slot_table {
 public:
  using buffer = state_moves::buffer;

  /// The arguments outlive it; `commands` gets the engine commands, in order.
  slot_table(const scheduler_options& options, news_box& news, std::vector<slot_command>& commands);
  slot_table(const slot_table&) = delete;  // outside states point into it
  slot_table& operator=(const slot_table&) = delete;

  // ---- slots ----
  /// By slot; null: the slot is free.
  [[nodiscard]] std::span<sequence* const> sequences() const { return by_slot_; }
  [[nodiscard]] std::size_t free() const { return free_.free(); }
  /// Free slots that hold a settled state.
  [[nodiscard]] std::uint32_t kept() const { return free_.kept(); }
  /// Whether a free slot holds this settled state.
  [[nodiscard]] bool holds(const state_key& key) const { return free_.holds(key); }

  /// Gives a free slot to a new sequence: the one that holds the state of its beginning, else an empty one to which
  /// that state is written.
  void begin(sequence& s);
  /// The sequence, which has a slot, returns to its beginning.
  void begin_again(sequence& s);
  /// Gives a free slot to a new sequence, with a copy of the state of `from`.
  void begin_as(sequence& s, const sequence& from);
  /// Copies the state out and frees the slot.
  void park(sequence& s);
  /// Copies the state in the slot of `from` out, for rows that have no slot yet; they share the copy.
  [[nodiscard]] std::shared_ptr<outside_state> copy_out(const sequence& from);
  void park_in(sequence& s, std::shared_ptr<outside_state> copy);
  /// Gives a free slot to a parked sequence, with its state.
  void restore(sequence& s);
  /// Replaces the state in the slot of a sequence.
  void bring_back(sequence& s, const buffer& from);
  /// The sequence leaves: its slot is free, its copy is dropped.
  void drop(sequence& s);
  /// Copies a settled state out: the key is answered with it.
  void hand_over(const sequence& s, const state_key& key);
  /// The sequence leaves: its slot is free and keeps the settled state, as far as the limit allows.
  void keep(sequence& s, const state_key& key);
  /// The sequence leaves: its slot is free and cleared.
  void clear(sequence& s);

  /// Drops the settled states of this owner from all free slots, which the next plan clears.
  void forget(storage::session_uid owner);
  /// Drops all kept states.
  void drop_kept();

  // ---- transfers ----
  [[nodiscard]] state_moves& moves() { return moves_; }
  [[nodiscard]] const state_moves& moves() const { return moves_; }
  /// The state of a sequence with a slot has arrived in it.
  [[nodiscard]] bool is_here(const sequence& s) const { return moves_.has_come(s.arrival); }
  /// A single transfer may always start, even if the engine has less room than it needs.
  [[nodiscard]] bool may_leave(std::size_t more) const {
    return moves_.leaving() == 0 || moves_.leaving() + more <= options_.leaving_max;
  }
  [[nodiscard]] bool may_come(std::size_t more) const {
    return moves_.coming() == 0 || moves_.coming() + more <= options_.coming_max;
  }

  // ---- copies outside ----
  [[nodiscard]] outside_states& outside() { return outside_; }
  [[nodiscard]] const outside_states& outside() const { return outside_; }
  [[nodiscard]] std::uint32_t parked() const { return parked_; }

  /// Issues the commands that were put off until the next plan. Call before any other command of that plan.
  void begin_plan();
  /// The engine is gone: every slot is free, and nothing is parked. Call when no sequence is left.
  void reset();

  void add_to(scheduler_counts& counts) const;
  void self_check() const;

 private:
  /// Returns whether the slot holds the wanted state.
  bool take(sequence& s, const state_key& wanted);
  /// Takes the sequence out of its slot, which the caller frees.
  slot_id vacate(const sequence& s);

  const scheduler_options& options_;
  news_box& news_;
  std::vector<slot_command>& commands_;
  std::vector<sequence*> by_slot_;  // [slots]
  kept_slots free_;
  std::vector<slot_id> forgotten_;  // cleared when the next plan begins
  state_moves moves_;
  outside_states outside_;
  std::uint32_t parked_ = 0;
  std::uint64_t states_written_ = 0, kept_hits_ = 0;
};

}  // namespace skein::device
