#pragma once
#include <rocksdb/env.h>
#include <rocksdb/wal_filter.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "storage/database/database_impl.hpp"
#include "storage/records/record_codec.hpp"

/// Handling of a damaged write-ahead log. RocksDB verifies every record of it. Damage at the end is what a power cut
/// leaves: replay stops there, and all earlier writes are restored. After damage in the middle there are intact
/// records.
/// Stopping would lose them too; skipping the damage loses only the records in it. So replay skips it, and the affected
/// sessions are identified by name: requests for them fail as damaged instead of returning an older version.
namespace skein::storage {

/// Observes the records that RocksDB replays.
class log_watcher final : public rocksdb::WalFilter {
 public:
  [[nodiscard]] std::uint64_t records() const { return records_; }
  /// Keys of sessions that a record removed and no later record wrote again.
  [[nodiscard]] const std::set<std::string>& removed() const { return removed_; }

  void ColumnFamilyLogNumberMap(const std::map<std::uint32_t, std::uint64_t>&,
                                const std::map<std::string, std::uint32_t>& numbers) override;
  WalProcessingOption LogRecordFound(unsigned long long, const std::string&, const rocksdb::WriteBatch& batch,
                                     rocksdb::WriteBatch*, bool*) override;
  [[nodiscard]] const char* Name() const override { return "skein"; }

 private:
  std::uint32_t sessions_ = 0;
  std::uint64_t records_ = 0;
  std::set<std::string> removed_;
};

/// The records that can still be read from a damaged log's files.
struct log_remains {
  std::map<session_uid, found_session> sessions;  ///< the last record of each; also with a wrong checksum, because it
                                                  ///< may still name its session
  std::map<session_uid, std::map<version_id, version_record>> versions;  ///< the last record of each
  std::map<session_uid, fork_origin> origins;                            ///< the last record of each fork
};
[[nodiscard]] log_remains remains_of_log(rocksdb::Env& env, const std::string& directory);

/// Findings about a damaged log before the database was opened.
struct damaged_log {
  log_remains remains;
  std::set<std::string> removed;
  bool in_its_middle = false;  ///< intact records follow; false: damage at the end, as after a power cut
};

/// A session with changes in the log that are missing in the database.
struct log_loss {
  session_record session;                ///< as in the database; number 0: not in the database
  session_key key;                       ///< its tenant and id
  std::string why;                       ///< one sentence
  std::optional<session_record> mended;  ///< if the log still has all of it: the session,
  std::vector<version_record> missing;   ///< and the versions to write again
  std::optional<fork_origin> origin;     ///< and, for a fork, where it begins
};
[[nodiscard]] result<std::vector<log_loss>> losses(database::impl& db, const damaged_log& log);

}  // namespace skein::storage
