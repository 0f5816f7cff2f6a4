#pragma once
#include <cstddef>

#include "actors/persistence/keeper/persistence_options.hpp"
#include "actors/persistence/keeper/session_removal.hpp"
#include "actors/persistence/open/keeper_ports.hpp"
#include "actors/persistence/open/open_sessions.hpp"
#include "actors/persistence/open/reply_port.hpp"
#include "actors/persistence/open/session_shelf.hpp"
#include "actors/persistence/open/session_states.hpp"
#include "actors/persistence/sessions/session_log.hpp"
#include "actors/persistence/sessions/tenant_quota.hpp"
#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "actors/persistence/states/tiered_cache.hpp"

namespace skein::persistence {

struct imported_session;

/// Export and import of sessions as files. Reading and writing a file is a job; content of a file is checked before
/// use.
class session_files {
 public:
  /// The arguments outlive it.
  session_files(const persistence_options& options, session_log& log, tenant_quota& quota, open_sessions& sessions,
                session_states& states, const tiered_cache& cache, session_shelf& shelf, session_removal& removals,
                const keeper_ports& ports, reply_port& replies)
      : options_(options),
        log_(log),
        quota_(quota),
        sessions_(sessions),
        states_(states),
        cache_(cache),
        shelf_(shelf),
        removals_(removals),
        ports_(ports),
        replies_(replies) {}

  void handle(export_session&& q);
  void handle(import_session&& q);

 private:
  [[nodiscard]] result<void> take_in(const import_session& q, imported_session&& in);
  void unstage(session_uid uid);

  const persistence_options& options_;
  session_log& log_;
  tenant_quota& quota_;
  open_sessions& sessions_;
  session_states& states_;
  const tiered_cache& cache_;
  session_shelf& shelf_;
  session_removal& removals_;
  const keeper_ports& ports_;
  reply_port& replies_;
};

}  // namespace skein::persistence
