#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "actors/persistence/keeper/persistence_options.hpp"
#include "actors/persistence/keeper/session_aging.hpp"
#include "actors/persistence/keeper/session_changes.hpp"
#include "actors/persistence/keeper/session_files.hpp"
#include "actors/persistence/keeper/session_queries.hpp"
#include "actors/persistence/keeper/session_removal.hpp"
#include "actors/persistence/open/keeper_ports.hpp"
#include "actors/persistence/open/open_sessions.hpp"
#include "actors/persistence/open/reply_port.hpp"
#include "actors/persistence/open/session_shelf.hpp"
#include "actors/persistence/open/session_states.hpp"
#include "actors/persistence/sessions/session_book.hpp"
#include "actors/persistence/sessions/session_log.hpp"
#include "actors/persistence/sessions/tenant_quota.hpp"
#include "actors/persistence/shared/persistence_counters.hpp"
#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "actors/persistence/states/tier_mover.hpp"
#include "actors/persistence/turns/turn_keeper.hpp"
#include "actors/persistence/turns/turn_opening.hpp"

namespace skein::persistence {

/// The sessions of the persistence actor, without a thread of its own: turns, the log, states in their tiers, and
/// administration. Replies go to the reply_sink at once or after a job. Tests step it by hand.
///
/// This class passes messages on and does the periodic work. The parts, each with its own members, in the order in
/// which they know each other:
///
///   session_book, session_log, tenant_quota, tier_mover   what is in memory, in the log, stored, and in which tier
///   open_sessions     finds and loads sessions
///   session_states    which states sessions have, share and lose
///   turn_opening      the state from which a turn resumes
///   turn_keeper       the life of a turn
///   session_removal   removal of sessions and versions
///   session_queries, session_changes, session_files, session_aging
class session_keeper {
 public:
  session_keeper(const persistence_options& options, keeper_ports ports, persistence_counters& counters);
  session_keeper(const session_keeper&) = delete;  // its parts point to each other
  session_keeper& operator=(const session_keeper&) = delete;
  /// Takes over the sessions and states that earlier processes left on disk.
  void begin();

  void handle(open_session&& q) { turns_.handle(std::move(q)); }
  void handle(note_running&& q) { turns_.handle(std::move(q)); }
  void handle(commit_turn&& q);
  void handle(release&& q) { turns_.handle(std::move(q)); }
  void handle(state_kept&& q) { turns_.handle(std::move(q)); }
  void handle(slot_kept&& q) { tiers_.cache().slot_kept(q.key, q.device); }
  void handle(slot_dropped&& q) { tiers_.cache().slot_dropped(q.key, q.device); }
  void handle(list_sessions&& q) { queries_.handle(std::move(q)); }
  void handle(describe_session&& q) { queries_.handle(std::move(q)); }
  void handle(tiers_status&& q) { queries_.handle(std::move(q)); }
  void handle(fork_session&& q) { changes_.handle(std::move(q)); }
  void handle(rollback_session&& q) { changes_.handle(std::move(q)); }
  void handle(label_session&& q) { changes_.handle(std::move(q)); }
  void handle(remove_session&& q) { removals_.handle(std::move(q)); }
  void handle(export_session&& q) { files_.handle(std::move(q)); }
  void handle(import_session&& q) { files_.handle(std::move(q)); }

  /// Periodic work: deadlines, notes, write-behind, retries. Call after handling messages and at next_wake().
  void tick();
  [[nodiscard]] steady_time next_wake() const;
  /// Writes all dirty data; true if none is left or none can be written.
  [[nodiscard]] bool flush();
  void publish() const;
  /// Thread-safe.
  void change(const config::session_settings& limits) { quota_.change(limits); }
  [[nodiscard]] std::optional<std::string> self_check() const;
  [[nodiscard]] bool disk_works() const { return log_.disk_works(); }

 private:
  [[nodiscard]] tier_mover::write writer_of(const state_key& key, state_buffer state) const;
  void look_for_largest(steady_time now);
  void retry_log(steady_time now);
  void give_back_space();

  const persistence_options options_;
  const keeper_ports ports_;
  persistence_counters& counters_;
  reply_port replies_;
  session_log log_;
  session_book book_;
  tenant_quota quota_;
  tier_mover tiers_;
  session_shelf shelf_;
  open_sessions sessions_;
  session_states states_;
  turn_opening opening_;
  turn_keeper turns_;
  session_removal removals_;
  session_queries queries_;
  session_changes changes_;
  session_files files_;
  session_aging aging_;
  std::uint64_t removals_flushed_ = 0;
  steady_time next_check_{}, next_age_check_{}, next_quota_look_{};
};

}  // namespace skein::persistence
