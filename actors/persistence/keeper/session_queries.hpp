#pragma once
#include "actors/persistence/open/keeper_ports.hpp"
#include "actors/persistence/open/open_sessions.hpp"
#include "actors/persistence/open/reply_port.hpp"
#include "actors/persistence/open/session_states.hpp"
#include "actors/persistence/sessions/tenant_quota.hpp"
#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "actors/persistence/states/tiered_cache.hpp"

namespace skein::persistence {

/// Answers questions about sessions: lists, descriptions, and where their states are. Changes nothing, except that a
/// described session is loaded into memory.
class session_queries {
 public:
  /// The arguments outlive it.
  session_queries(const tenant_quota& quota, open_sessions& sessions, const session_states& states,
                  const tiered_cache& cache, const keeper_ports& ports, reply_port& replies)
      : quota_(quota), sessions_(sessions), states_(states), cache_(cache), ports_(ports), replies_(replies) {}

  void handle(list_sessions&& q);
  void handle(describe_session&& q);
  void handle(tiers_status&& q);

 private:
  [[nodiscard]] listed_session listed(session_record record) const;

  const tenant_quota& quota_;
  open_sessions& sessions_;
  const session_states& states_;
  const tiered_cache& cache_;
  const keeper_ports& ports_;
  reply_port& replies_;
};

}  // namespace skein::persistence
