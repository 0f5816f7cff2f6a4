#pragma once
#include <rocksdb/env.h>
#include <rocksdb/wal_filter.h>

#include <cstdint>
#include <map>
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

/// What was seen of such a log before the database was opened.
struct damaged_log {
  std::vector<found_session> sessions;
  std::set<std::string> removed;
  bool in_its_middle = false;  ///< there are whole records behind the damage; else it is as a power cut leaves it
};

/// The last record of each session that stands in the log's files, as far as it can still be read; one with a wrong
/// checksum too, since it may say whose it is.
[[nodiscard]] std::vector<found_session> sessions_in_log(rocksdb::Env& env, const std::string& directory);

/// What was in the log of sessions and is not in the database.
struct log_loss {
  session_key session;  ///< whose it was
  std::string now;      ///< the record that there is; empty: none
  std::string why;      ///< a sentence
};
[[nodiscard]] result<std::vector<log_loss>> losses(database::impl& db, const std::vector<found_session>& written,
                                                   const std::set<std::string>& removed);

}  // namespace skein::storage
