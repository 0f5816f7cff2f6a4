#include "actors/persistence/states/state_versions.hpp"

#include <algorithm>
#include <iterator>

#include "actors/persistence/states/thinning.hpp"

namespace skein::persistence {

using storage::session_uid;
using storage::state_key;
using storage::version_id;

void state_versions::add(const state_key& key) {
  if (thins_) sessions_[key.owner].versions[version_of(key)] = key;
}

void state_versions::remove(const state_key& key) {
  const auto owner = sessions_.find(key.owner);
  if (owner == sessions_.end()) return;
  auto& versions = owner->second.versions;
  const auto listed = versions.find(version_of(key));
  if (listed != versions.end() && listed->second == key) versions.erase(listed);
  if (versions.empty()) sessions_.erase(owner);
}

bool state_versions::set_head(session_uid owner, version_id head, version_id broken) {
  const auto found = sessions_.find(owner);
  if (found == sessions_.end() || (found->second.head == head && found->second.broken == broken)) return false;
  found->second.head = head;
  found->second.broken = broken;
  return true;
}

std::optional<state_key> state_versions::find(session_uid owner, version_id version) const {
  const auto found = sessions_.find(owner);
  if (found == sessions_.end()) return std::nullopt;
  const auto listed = found->second.versions.find(version);
  if (listed == found->second.versions.end()) return std::nullopt;
  return listed->second;
}

std::vector<state_key> state_versions::of(session_uid owner) const {
  std::vector<state_key> all;
  if (const auto found = sessions_.find(owner); found != sessions_.end())
    for (const auto& [version, key] : found->second.versions) all.push_back(key);
  return all;
}

bool state_versions::is_head(const state_key& key) const {
  const auto owner = sessions_.find(key.owner);
  return owner == sessions_.end() || version_of(key) == owner->second.head ||
         key == owner->second.versions.rbegin()->second;
}

void state_versions::for_each_worth(session_uid owner, const predicate& is_on_disk,
                                    const std::function<void(const state_key&, worth)>& use) const {
  const auto found = sessions_.find(owner);
  if (found == sessions_.end()) return;
  std::vector<version_id> present;
  for (const auto& [version, key] : found->second.versions)
    if (is_on_disk(key)) present.push_back(version);
  const version_id head = found->second.head ? found->second.head : (present.empty() ? 0 : present.back());
  const auto may_go = thinnable(present, head);
  const auto beyond = std::ranges::upper_bound(present, head);
  const version_id newest = beyond == present.begin() ? 0 : *std::prev(beyond);
  for (const version_id version : present) {
    const bool broken = version == found->second.broken;
    const bool thin = !broken && std::ranges::binary_search(may_go, version);
    const bool first = broken || version == newest;
    use(found->second.versions.at(version), thin ? worth::thinnable : first ? worth::newest : worth::old);
  }
}

bool state_versions::survives(const state_key& key, const predicate& will_be_there) const {
  if (!thins_) return true;
  const session& s = sessions_.at(key.owner);
  if (version_of(key) == s.broken) return true;
  const auto self = s.versions.find(version_of(key));
  std::vector<version_id> around{self->first};
  for (auto it = self; it != s.versions.begin();)
    if (will_be_there((--it)->second)) {
      around.insert(around.begin(), it->first);
      break;
    }
  for (auto it = std::next(self); it != s.versions.end(); ++it)
    if (will_be_there(it->second)) {
      around.push_back(it->first);
      break;
    }
  const auto may_go = thinnable(around, s.head ? s.head : s.versions.rbegin()->first);
  return !std::ranges::binary_search(may_go, version_of(key));
}

}  // namespace skein::persistence
