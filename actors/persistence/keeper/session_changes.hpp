#pragma once
#include "actors/persistence/keeper/session_removal.hpp"
#include "actors/persistence/open/keeper_ports.hpp"
#include "actors/persistence/open/open_sessions.hpp"
#include "actors/persistence/open/reply_port.hpp"
#include "actors/persistence/open/session_shelf.hpp"
#include "actors/persistence/open/session_states.hpp"
#include "actors/persistence/sessions/session_book.hpp"
#include "actors/persistence/sessions/session_log.hpp"
#include "actors/persistence/sessions/tenant_quota.hpp"
#include "actors/persistence/shared/persistence_mailbox.hpp"

namespace skein::persistence {

/// Changes of sessions outside turns: forks, rollback, titles and metadata, and sessions that are created before their
/// first turn.
class session_changes {
 public:
  /// The arguments outlive it.
  session_changes(session_book& book, session_log& log, tenant_quota& quota, open_sessions& sessions,
                  session_states& states, session_shelf& shelf, session_removal& removals, const keeper_ports& ports,
                  reply_port& replies)
      : book_(book),
        log_(log),
        quota_(quota),
        sessions_(sessions),
        states_(states),
        shelf_(shelf),
        removals_(removals),
        ports_(ports),
        replies_(replies) {}

  void handle(fork_session&& q);
  void handle(rollback_session&& q);
  void handle(label_session&& q);

 private:
  [[nodiscard]] result<open_entry*> free_for_fork(const session_key& name);

  session_book& book_;
  session_log& log_;
  tenant_quota& quota_;
  open_sessions& sessions_;
  session_states& states_;
  session_shelf& shelf_;
  session_removal& removals_;
  const keeper_ports& ports_;
  reply_port& replies_;
};

}  // namespace skein::persistence
