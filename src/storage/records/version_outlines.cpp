#include "storage/records/version_outlines.hpp"

#include <algorithm>
#include <utility>

namespace skein::storage {

void version_outlines::add_origin(session_uid fork, fork_origin origin) {
  shares_.set(fork, {origin.owner, origin.last});
  origins_[fork] = std::move(origin);
}

const fork_origin* version_outlines::origin_of(session_uid fork) const {
  const auto found = origins_.find(fork);
  return found == origins_.end() ? nullptr : &found->second;
}

std::optional<std::vector<version_outline>> version_outlines::inherited(session_uid fork) const {
  std::vector<version_outline> way;
  const fork_origin* const origin = origin_of(fork);
  if (!origin) return way;
  version_shares::place at{origin->owner, origin->shown};
  while (at.version != beginning) {
    at = shares_.written_by(at.owner, at.version);
    const auto written = written_.find(at.owner);
    if (written == written_.end()) return {};
    const auto found = std::ranges::lower_bound(written->second, at.version, {}, &version_outline::id);
    if (found == written->second.end() || found->id != at.version || found->parent >= found->id) return {};
    way.push_back(*found);
    way.back().deleted = std::ranges::binary_search(origin->deleted, found->id);
    at.version = found->parent;
  }
  std::ranges::reverse(way);
  return way;
}

}  // namespace skein::storage
