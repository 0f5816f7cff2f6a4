#pragma once
#include <cstdint>
#include <optional>

#include "actors/persistence/open/keeper_ports.hpp"
#include "actors/persistence/open/open_sessions.hpp"
#include "actors/persistence/open/reply_port.hpp"
#include "actors/persistence/open/session_shelf.hpp"
#include "actors/persistence/open/session_states.hpp"
#include "actors/persistence/sessions/session_book.hpp"
#include "actors/persistence/sessions/session_log.hpp"
#include "actors/persistence/sessions/tenant_quota.hpp"
#include "actors/persistence/sessions/turn_start.hpp"
#include "actors/persistence/shared/persistence_counters.hpp"
#include "actors/persistence/turns/turn_notes.hpp"
#include "actors/persistence/turns/turn_opening.hpp"

namespace skein::persistence {

/// The life of a turn: it waits for its session (session_book), gets a lease and its state (turn_opening), is noted
/// while it runs (turn_notes), and is committed to the log or discarded.
class turn_keeper {
 public:
  /// The arguments outlive it.
  turn_keeper(session_book& book, session_log& log, tenant_quota& quota, open_sessions& sessions,
              session_states& states, session_shelf& shelf, turn_opening& opening, const keeper_ports& ports,
              reply_port& replies, persistence_counters& counters)
      : book_(book),
        log_(log),
        quota_(quota),
        sessions_(sessions),
        states_(states),
        shelf_(shelf),
        opening_(opening),
        ports_(ports),
        replies_(replies),
        counters_(counters),
        notes_(book, log, ports.time) {}

  void handle(open_session&& q);
  void handle(note_running&& q);
  /// True if the turn was committed.
  [[nodiscard]] bool commit(commit_turn&& q);
  void handle(release&& q);
  void handle(state_kept&& q);

  /// Starts the waiting turns that may run now.
  void advance(open_entry& entry);
  /// Ends turns past their deadlines, starts turns that they held up, and continues those that waited long enough for
  /// their state. Writes the notes that are due.
  void check_deadlines(steady_time now);
  void write_notes() { notes_.write_all(); }

 private:
  [[nodiscard]] result<void> begin_turn(open_entry& entry, const open_session& question);
  [[nodiscard]] result<void> room_for_turn(const open_entry& entry) const;
  [[nodiscard]] result<turn_start> check_turn(const open_entry& entry, const open_session& q, bool known) const;
  [[nodiscard]] bool replay(const open_entry& entry, const open_session& question);
  void make_provisional(open_entry& entry);
  [[nodiscard]] std::optional<session_tree> fork_by_name(const session_key& key);
  void fail_turn(open_entry& entry, const running_writer& w);
  void committed(open_entry& entry, running_writer writer, std::uint64_t state_tokens);
  void check_openings(steady_time now);

  session_book& book_;
  session_log& log_;
  tenant_quota& quota_;
  open_sessions& sessions_;
  session_states& states_;
  session_shelf& shelf_;
  turn_opening& opening_;
  const keeper_ports& ports_;
  reply_port& replies_;
  persistence_counters& counters_;
  turn_notes notes_;
};

}  // namespace skein::persistence
