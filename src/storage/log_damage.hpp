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
#include "storage/database_impl.hpp"
#include "storage/record_codec.hpp"

/// What to do about a write-ahead log that is damaged in its middle. RocksDB checks every record of it. Damage at the
/// end is what a power cut leaves: replay stops there, and all that was written before is as it was at that time.
/// Behind damage in the middle there are records that are whole; stopping would lose them too, skipping the damage
/// loses those that it hit, here and there. So it is skipped, and what was hit is found by name: a session that was hit
/// is answered as damaged, never as it was some turns ago.
namespace skein::storage {

/// Sees the records that RocksDB replays.
class log_watcher final : public rocksdb::WalFilter {
 public:
  [[nodiscard]] std::uint64_t records() const { return records_; }
  /// Keys of sessions that a record removed, and none wrote again.
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

/// What can still be read of such a log's files.
struct log_remains {
  std::map<session_uid, found_session> sessions;  ///< the last record of each; one with a wrong checksum too, since it
                                                  ///< may say whose it is
  std::map<session_uid, std::map<version_id, version_record>> versions;  ///< the last record of each
};
[[nodiscard]] log_remains remains_of_log(rocksdb::Env& env, const std::string& directory);

/// What was seen of a damaged log before the database was opened.
struct damaged_log {
  log_remains remains;
  std::set<std::string> removed;
  bool in_its_middle = false;  ///< there are whole records behind the damage; else it is as a power cut leaves it
};

/// A session of which something was in the log and is not in the database.
struct log_loss {
  session_record session;                ///< as it is in the database; without a number: it is not there
  session_key key;                       ///< whose it was
  std::string why;                       ///< a sentence
  std::optional<session_record> mended;  ///< all of it is left in the log: as it was,
  std::vector<version_record> missing;   ///< and the versions that have to be written again
};
[[nodiscard]] result<std::vector<log_loss>> losses(database::impl& db, const damaged_log& log);

}  // namespace skein::storage
