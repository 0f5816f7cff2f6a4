#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace skein::storage {

/// What a repair found, and what it did.
struct repair_report {
  struct finding {
    std::string what;  ///< "session 'anna' of tenant 'default'", "000012.sst"
    std::string why;
  };
  std::string trouble;         ///< why the database does not open; empty: it does
  std::vector<finding> files;  ///< that something could not be read of
  std::uint64_t sessions = 0, versions = 0, running = 0, states = 0, prefixes = 0;  ///< that are recovered
  std::uint64_t set_aside = 0;                                                      ///< records in quarantine
  std::vector<finding> lost;                                                        ///< at most `findings_max` are kept
  std::uint64_t lost_count = 0;
  std::filesystem::path aside;  ///< where the old database is; empty: nothing was replaced
  static constexpr std::size_t findings_max = 10000;

  [[nodiscard]] bool sound() const { return trouble.empty() && files.empty() && lost_count == 0; }
};

/// Recovers what can be read of a server's damaged database. What is whole goes into a new database, which then takes
/// the place of the old one in one step; the old one stays beside it under another name. A session that lost versions
/// ends at the newest that is left with all before it; one of which nothing is left is answered as damaged until its
/// name is freed; versions whose session is not known become a session "recovered-NUMBER". Nothing is replaced where
/// the database is sound, or with `dry_run`. A crash leaves the old database as it was. Needs as much free space as the
/// database has.
/// Errors: missing_file (there is no database), in_use (a server runs there), conflict (a newer format), damaged
/// (nothing can be read; it stays), no_space, io.
[[nodiscard]] result<repair_report> repair(const std::filesystem::path& state_directory, bool dry_run);

}  // namespace skein::storage
