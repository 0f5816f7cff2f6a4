#include "storage/records/version_shares.hpp"

namespace skein::storage {

void version_shares::set(session_uid fork, const place& last) {
  forget(fork);
  by_fork_[fork] = last;
  ++ends_[last.owner][last.version];
}

void version_shares::forget(session_uid fork) {
  const auto found = by_fork_.find(fork);
  if (found == by_fork_.end()) return;
  const auto owner = ends_.find(found->second.owner);
  const auto end = owner->second.find(found->second.version);
  if (--end->second == 0) owner->second.erase(end);
  if (owner->second.empty()) ends_.erase(owner);
  by_fork_.erase(found);
}

std::optional<version_shares::place> version_shares::of(session_uid fork) const {
  const auto found = by_fork_.find(fork);
  return found == by_fork_.end() ? std::nullopt : std::optional(found->second);
}

version_id version_shares::inherited(session_uid uid) const {
  const auto found = by_fork_.find(uid);
  return found == by_fork_.end() ? beginning : found->second.version;
}

version_shares::place version_shares::written_by(session_uid uid, version_id version) const {
  place at{uid, version};
  while (version <= inherited(at.owner)) {
    const session_uid before = by_fork_.at(at.owner).owner;
    if (inherited(before) >= inherited(at.owner)) break;  // damage: that session cannot have written the version
    at.owner = before;
  }
  return at;
}

bool version_shares::may_have(session_uid owner, version_id version) const {
  const auto found = ends_.find(owner);
  return found != ends_.end() && found->second.rbegin()->first >= version;
}

std::vector<version_id> version_shares::ends(session_uid owner) const {
  std::vector<version_id> all;
  if (const auto found = ends_.find(owner); found != ends_.end())
    for (const auto& [end, forks] : found->second) all.push_back(end);
  return all;
}

std::uint32_t version_shares::forks_at(const place& where) const {
  const auto owner = ends_.find(where.owner);
  if (owner == ends_.end()) return 0;
  const auto end = owner->second.find(where.version);
  return end == owner->second.end() ? 0 : end->second;
}

}  // namespace skein::storage
