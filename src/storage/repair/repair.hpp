#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace skein::storage {

/// Findings and result of a repair.
struct repair_report {
  struct finding {
    std::string what;  ///< "session 'anna' of tenant 'default'", "000012.sst"
    std::string why;
  };
  std::string trouble;         ///< why the database does not open; empty if it opens
  std::vector<finding> files;  ///< files that could not be read completely
  std::uint64_t sessions = 0, versions = 0, running = 0, states = 0, prefixes = 0;  ///< recovered
  std::uint64_t set_aside = 0;                                                      ///< records in quarantine
  std::vector<finding> lost;                                                        ///< at most `findings_max` are kept
  std::uint64_t lost_count = 0;
  std::filesystem::path aside;  ///< new path of the old database; empty: nothing was replaced
  static constexpr std::size_t findings_max = 10000;

  [[nodiscard]] bool sound() const { return trouble.empty() && files.empty() && lost_count == 0; }
};

/// Recovers the readable data of a server's damaged database. Intact records are copied into a new database, which then
/// atomically replaces the old one; the old one stays next to it under another name. A session that lost versions ends
/// at the newest version with complete history. A session that lost all versions is reported as damaged until its name
/// is freed. Versions of an unknown session become a session "recovered-NUMBER". Nothing is replaced if the database is
/// sound, or with `dry_run`. A crash leaves the old database unchanged. Needs free space of the database's size, or of
/// twice its size where the file system has no hard links. Errors: missing_file (there is no database), in_use (a
/// server is running), conflict (a newer format), damaged (nothing can be read; the database stays), no_space, io.
[[nodiscard]] result<repair_report> repair(const std::filesystem::path& state_directory, bool dry_run);

}  // namespace skein::storage
