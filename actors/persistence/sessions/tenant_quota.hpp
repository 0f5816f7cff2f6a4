#pragma once
#include <atomic>
#include <cstdint>

#include "base/result.hpp"
#include "config/config.hpp"
#include "storage/records/stored_amount.hpp"

namespace skein::persistence {

using storage::stored_amount;

/// The amount that each tenant stores, and its limits: the settings sessions.tenant_*; bytes as stored_amount counts
/// them. Calls other than begin_with() and largest() cost one map lookup. Owned by the persistence actor.
class tenant_quota {
 public:
  explicit tenant_quota(const config::session_settings& limits) { change(limits); }

  /// Thread-safe.
  void change(const config::session_settings& limits);
  /// Sets the amounts that earlier processes stored.
  void begin_with(storage::tenant_amounts stored);
  /// Changes a session's amount from `was` to `now`.
  void replace(const tenant_id& tenant, const stored_amount& was, const stored_amount& now);
  /// Whether a session may grow from `was` to `now`: no_space, with the name of the setting, if that exceeds a limit.
  /// An amount that does not grow is always allowed.
  [[nodiscard]] result<void> allows(const tenant_id& tenant, const stored_amount& was, const stored_amount& now) const;

  [[nodiscard]] const stored_amount& total() const { return total_; }
  /// The maximum of sessions, of versions and of bytes over all tenants. Visits every tenant.
  [[nodiscard]] stored_amount largest() const;
  [[nodiscard]] stored_amount of(const tenant_id& tenant) const;

 private:
  std::atomic<std::uint64_t> sessions_max_{0}, versions_max_{0}, bytes_max_{0};
  storage::tenant_amounts stored_;
  stored_amount total_;
};

}  // namespace skein::persistence
