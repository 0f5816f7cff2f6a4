#pragma once
#include <atomic>
#include <cstdint>

#include "base/result.hpp"
#include "storage/stored_amount.hpp"

namespace skein::persistence {

using storage::stored_amount;

/// What one tenant may store; 0: no limit.
struct tenant_limits {
  std::uint64_t sessions_max = 0, versions_max = 0;
  std::uint64_t bytes_max = 0;  ///< as stored_amount counts them
};

/// How much each tenant stores, and how much it may. Every call but total() and largest() takes the time of a look into
/// a map. Owned by the persistence actor.
class tenant_quota {
 public:
  explicit tenant_quota(const tenant_limits& limits) { change(limits); }

  /// On any thread.
  void change(const tenant_limits& limits);
  /// What the store holds from earlier processes.
  void begin_with(storage::tenant_amounts stored);
  /// A session that counted as `was` now is `now`.
  void replace(const tenant_id& tenant, const stored_amount& was, const stored_amount& now);
  /// Whether it may: no_space, naming the setting, where this exceeds a limit. What does not grow is not limited.
  [[nodiscard]] result<void> allows(const tenant_id& tenant, const stored_amount& was, const stored_amount& now) const;

  [[nodiscard]] const stored_amount& total() const { return total_; }
  /// The most sessions, versions and bytes that any tenant has. Looks at all tenants.
  [[nodiscard]] stored_amount largest() const;
  [[nodiscard]] stored_amount of(const tenant_id& tenant) const;

 private:
  std::atomic<std::uint64_t> sessions_max_{0}, versions_max_{0}, bytes_max_{0};
  storage::tenant_amounts stored_;
  stored_amount total_;
};

}  // namespace skein::persistence
