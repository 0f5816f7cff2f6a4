#include "actors/persistence/sessions/tenant_quota.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace skein::persistence {

void tenant_quota::change(const config::session_settings& limits) {
  sessions_max_ = limits.tenant_sessions_max;
  versions_max_ = limits.tenant_versions_max;
  bytes_max_ = limits.tenant_bytes_max;
}

void tenant_quota::begin_with(storage::tenant_amounts stored) {
  stored_ = std::move(stored);
  total_ = {};
  for (const auto& [tenant, amount] : stored_) total_ = total_ + amount;
}

void tenant_quota::replace(const tenant_id& tenant, const stored_amount& was, const stored_amount& now) {
  if (was == now) return;
  const auto at = stored_.try_emplace(tenant).first;
  at->second = at->second - was + now;
  total_ = total_ - was + now;
  if (at->second == stored_amount{}) stored_.erase(at);
}

stored_amount tenant_quota::of(const tenant_id& tenant) const {
  const auto at = stored_.find(tenant);
  return at == stored_.end() ? stored_amount{} : at->second;
}

result<void> tenant_quota::allows(const tenant_id& tenant, const stored_amount& was, const stored_amount& now) const {
  const stored_amount then = of(tenant) - was + now;
  const struct {
    const char *what, *key;
    std::uint64_t was, now, then, most;
  } kinds[] = {{"sessions", "sessions.tenant_sessions_max", was.sessions, now.sessions, then.sessions, sessions_max_},
               {"versions", "sessions.tenant_versions_max", was.versions, now.versions, then.versions, versions_max_},
               {"bytes", "sessions.tenant_bytes_max", was.bytes, now.bytes, then.bytes, bytes_max_}};
  for (const auto& kind : kinds)
    if (kind.now > kind.was && kind.most != 0 && kind.then > kind.most)
      return error{error_kind::no_space,
                   std::string(kind.what) + ": " + std::to_string(kind.then) + " exceed the tenant's limit (" +
                       kind.key + " = " + std::to_string(kind.most) + "); delete sessions to free space",
                   ""};
  return {};
}

stored_amount tenant_quota::largest() const {
  stored_amount most;
  for (const auto& [tenant, amount] : stored_) {
    most.sessions = std::max(most.sessions, amount.sessions);
    most.versions = std::max(most.versions, amount.versions);
    most.bytes = std::max(most.bytes, amount.bytes);
  }
  return most;
}

}  // namespace skein::persistence
