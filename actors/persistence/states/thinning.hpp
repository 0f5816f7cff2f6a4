#pragma once
#include <span>
#include <vector>

#include "storage/records/records.hpp"

namespace skein::persistence {

/// Selects the states of a session that are the first to drop: those with close neighbours. The remaining ones are
/// about 0, 1, 2, 4, 8, ... versions behind the head, also as the head advances, so that any version can be rebuilt
/// from one that is at most as far from it as it is from the head. States ahead of the head (after a rollback) are
/// dropped first. `present`: versions with a state, ascending. Any one of the returned versions may be dropped if all
/// others stay; call again after dropping one.
[[nodiscard]] std::vector<storage::version_id> thinnable(std::span<const storage::version_id> present,
                                                         storage::version_id head);

}  // namespace skein::persistence
