#pragma once
#include <span>
#include <vector>

#include "storage/records.hpp"

namespace skein::persistence {

/// Which states of a session are worth the least, where old ones have to go: those whose neighbours are close. What
/// stays lies about 0, 1, 2, 4, 8, ... versions behind the head, also while the head moves on, so that any version is
/// rebuilt from one that is at most as far from it as it is from the head. States ahead of the head (after a roll back)
/// go first.
/// `present`: versions with a state, ascending. Each version answered may go while all others stay; ask again once one
/// is gone.
[[nodiscard]] std::vector<storage::version_id> thinnable(std::span<const storage::version_id> present,
                                                         storage::version_id head);

}  // namespace skein::persistence
