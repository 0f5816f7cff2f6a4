#pragma once
#include "actors/persistence/open/keeper_ports.hpp"
#include "actors/persistence/open/reply_port.hpp"
#include "actors/persistence/open/session_states.hpp"
#include "actors/persistence/sessions/session_book.hpp"
#include "actors/persistence/sessions/session_log.hpp"
#include "actors/persistence/shared/persistence_counters.hpp"
#include "actors/persistence/states/tier_mover.hpp"

namespace skein::persistence {

/// Finds the state from which a turn resumes: that of the broken answer that it continues, or the nearest one before
/// its base. Waits for it, if it is on disk or the device is about to send it, then sends the reply that opens the
/// turn.
class turn_opening {
 public:
  /// The arguments outlive it.
  turn_opening(session_book& book, const session_log& log, session_states& states, tier_mover& tiers,
               const keeper_ports& ports, reply_port& replies, persistence_counters& counters)
      : book_(book), log_(log), states_(states), tiers_(tiers), ports_(ports), replies_(replies), counters_(counters) {}

  /// Answers an opened turn with the state nearest to its base, or waits for that state.
  void resolve(open_entry& entry, running_writer& w);
  /// Continues the turns that waited for this state, which is in RAM or lost.
  void resolve_waiting(const state_key& key);
  /// The turn has waited for its state for as long as it may: continues without that state, or tries again.
  void stop_waiting(open_entry& entry, running_writer& w);

 private:
  [[nodiscard]] std::uint64_t lacking(const version_record& v, const state_key& key) const;
  void give_state(const open_entry& entry, running_writer& w, const version_record* from, const state_key& key,
                  state_buffer state);

  session_book& book_;
  const session_log& log_;
  session_states& states_;
  tier_mover& tiers_;
  const keeper_ports& ports_;
  reply_port& replies_;
  persistence_counters& counters_;
};

}  // namespace skein::persistence
