#pragma once
#include <optional>
#include <span>
#include <vector>

#include "actors/persistence/open/keeper_ports.hpp"
#include "actors/persistence/open/open_sessions.hpp"
#include "actors/persistence/sessions/session_book.hpp"
#include "actors/persistence/sessions/session_log.hpp"
#include "actors/persistence/states/tier_mover.hpp"

namespace skein::persistence {

/// Which states sessions have, who shares them, and when they go. A state belongs to the session that made it; forks of
/// that session share it, and it stays until its last holder is removed.
class session_states {
 public:
  /// The arguments outlive it.
  session_states(session_book& book, session_log& log, open_sessions& sessions, tier_mover& tiers,
                 const keeper_ports& ports)
      : book_(book), log_(log), sessions_(sessions), tiers_(tiers), ports_(ports) {}

  /// The state of a version, made by the session itself or by one that it was forked from.
  [[nodiscard]] std::optional<state_key> state_of(session_uid owner, version_id version) const;
  /// Like state_of, for a state that the device is about to send.
  [[nodiscard]] std::optional<state_key> expected_of(const open_entry& entry, version_id version);
  /// The device does not send this state any more, or not in time.
  void stop_expecting(const state_key& key);
  /// Stops expecting states that the device never sent.
  void stop_expecting_old(steady_time now);

  /// Adds the state of a version.
  void put(const open_entry& entry, const state_key& key, state_buffer state, std::uint64_t tokens);
  /// Call after the head of a session has changed.
  void note_head(const open_entry& entry) {
    tiers_.cache().set_head(entry.uid, entry.tree->record().head, entry.tree->broken_last());
  }
  /// The log has the whole session, so its states may be written.
  void may_write(const open_entry& entry);

  /// The record of a new session that begins as another one up to `version`. It shares the existing states on that path
  /// and, if the log contains them, the versions.
  [[nodiscard]] session_record begin_fork(const open_entry& origin, version_id version, const session_key& as);
  /// Ends the sharing of states by a session that was never committed. A state without another holder is erased, which
  /// happens if the session's origin was deleted meanwhile.
  void unshare(session_uid borrower);
  /// Drops a session from memory, also one that was never committed.
  void forget_content(open_entry& entry);

  /// Drops the session's states from memory at once, so that no further write starts; states that others share stay.
  void forget_states(session_uid owner);
  /// The same for one version.
  void forget_state(open_entry& entry, version_id version);
  /// Stops expecting the states of a session that no fork shares.
  void stop_expecting_unshared(open_entry& entry);
  /// Removes a session from the log, and from memory the shared states of which it was the last holder.
  [[nodiscard]] result<void> erase(const session_record& session);
  /// Drops states whose last holder is gone.
  void forget_shared(std::span<const state_key> gone);

  /// Tells the device to drop the slots of a session; repeated if its mailbox is full.
  void forget_slots(session_uid gone);
  void repeat_forget();
  /// The device could not be told of some sessions yet.
  [[nodiscard]] bool must_repeat() const { return !unforgotten_.empty(); }

 private:
  [[nodiscard]] std::vector<state_key> states_before(const open_entry& entry, version_id version);

  session_book& book_;
  session_log& log_;
  open_sessions& sessions_;
  tier_mover& tiers_;
  const keeper_ports& ports_;
  std::vector<session_uid> unforgotten_;  // removed sessions that could not be sent to the device yet
};

}  // namespace skein::persistence
