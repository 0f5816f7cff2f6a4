#pragma once
#include <vector>

#include "base/result.hpp"
#include "storage/database/database_impl.hpp"
#include "storage/records/records.hpp"
#include "storage/records/version_shares.hpp"

namespace skein::storage {

/// The versions from the beginning to `last`, in order, whichever sessions wrote them. The cost is that of reading
/// these versions, and one seek for each session that wrote some. Errors: damaged (a version is missing, or cannot be
/// read and is set aside), io.
[[nodiscard]] result<std::vector<version_record>> read_way(database::impl& db, const version_shares& shares,
                                                           const version_shares::place& last);

/// The versions that forks share, as recorded in a database. Damaged records are left out.
[[nodiscard]] result<version_shares> read_shares(database::impl& db);

/// All readable versions of a session, its own and those that it shares.
[[nodiscard]] std::vector<version_record> readable_versions(database::impl& db, const version_shares& shares,
                                                            session_uid uid);

}  // namespace skein::storage
