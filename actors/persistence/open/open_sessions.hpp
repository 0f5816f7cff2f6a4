#pragma once
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "actors/persistence/open/keeper_ports.hpp"
#include "actors/persistence/sessions/session_book.hpp"
#include "actors/persistence/sessions/session_log.hpp"
#include "actors/persistence/sessions/tenant_quota.hpp"
#include "actors/persistence/shared/persistence_counters.hpp"
#include "actors/persistence/states/tiered_cache.hpp"
#include "base/result.hpp"

namespace skein::persistence {

/// Finds sessions by name: in memory, else in the log, from which it loads them. It keeps memory, log and the amounts
/// of the tenants in agreement.
class open_sessions {
 public:
  /// The arguments outlive it.
  open_sessions(session_book& book, session_log& log, tenant_quota& quota, tiered_cache& states,
                const keeper_ports& ports, persistence_counters& counters)
      : book_(book), log_(log), quota_(quota), states_(states), ports_(ports), counters_(counters) {}

  /// Takes over the tenants and the amounts that the log has.
  void begin();
  void know_stored_tenants();

  /// The entry of a name, which may be absent. Interrupted answers of a session that is loaded become unfinished
  /// versions. Errors: invalid_argument (length of the id), damaged, and those of the log.
  [[nodiscard]] result<open_entry*> entry_of(const session_key& key);
  /// Sessions by id: those of the log, replaced by newer records in memory, and those that are only in memory.
  [[nodiscard]] result<std::vector<session_record>> all(const tenant_id& tenant, std::string_view after,
                                                        std::uint32_t count);
  /// Tenants that have been named, or have sessions in the log.
  [[nodiscard]] const std::set<tenant_id>& tenants() const { return tenants_; }

  /// Call after adding, changing or dropping the tree of an entry.
  void recount(open_entry& entry);
  /// Call for an entry that hold() has just made stored, with a session that is in the log.
  void made(open_entry& entry);
  /// Call after a failed write: the log may have more or less of the session than it should. `refused`: a version that
  /// it should not have.
  void distrust(open_entry& entry, bool versions_too, version_id refused = storage::beginning);

 private:
  [[nodiscard]] result<void> restore(open_entry& entry);
  void recover_running(open_entry& entry);
  [[nodiscard]] bool recover(open_entry& entry, version_record broken);

  session_book& book_;
  session_log& log_;
  tenant_quota& quota_;
  tiered_cache& states_;
  const keeper_ports& ports_;
  persistence_counters& counters_;
  std::set<tenant_id> tenants_{default_tenant};
};

}  // namespace skein::persistence
