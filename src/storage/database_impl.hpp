#pragma once
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/database.hpp"

/// RocksDB behind `database`, for this folder alone.
namespace skein::storage {

/// The column families, in the order of their handles.
enum class family : std::uint8_t {
  meta,         ///< format version, counters; RocksDB calls it "default" and insists on it
  sessions,     ///< by tenant and id
  versions,     ///< by session number and version
  running,      ///< by session number
  states,       ///< blobs, by session number and version
  prefixes,     ///< blobs, by number
  state_index,  ///< what there is in the two before, without the blobs
  quarantine,   ///< damaged records, by family and key
};
inline constexpr std::size_t families = 8;
[[nodiscard]] std::string_view to_string(family of);

/// How far a write has got when it returns.
enum class safety : std::uint8_t {
  buffered,  ///< in memory; for what a flush follows
  logged,    ///< in the write-ahead log: survives the process
  synced,    ///< and synced: survives the machine
};

/// Changes that are made together or not at all. Ranges of keys are not erased as such: RocksDB 7.8, where it checks
/// itself as Debian's does, aborts when a file cannot be made while such an erasure is in memory.
class change_list {
 public:
  explicit change_list(std::span<rocksdb::ColumnFamilyHandle* const> handles) : handles_(handles) {}
  void put(family where, std::string_view key, std::string_view value);
  void erase(family where, std::string_view key);
  [[nodiscard]] rocksdb::WriteBatch& batch() { return batch_; }

 private:
  std::span<rocksdb::ColumnFamilyHandle* const> handles_;
  rocksdb::WriteBatch batch_;
};

struct damaged_log;

/// Thread safe. Calls may come at the same time; only while the database is opened again after a failure do they wait.
struct database::impl {
  explicit impl(const database_options& options);
  ~impl();
  impl(const impl&) = delete;  // RocksDB locks its directory
  impl& operator=(const impl&) = delete;

  /// Errors: as database::open.
  [[nodiscard]] result<void> open();

  [[nodiscard]] result<void> write(safety how, const std::function<void(change_list&)>& changes);
  /// Hands the value to `use`, valid during the call; false: there is none. `use` must not call this object.
  /// `verified`: RocksDB checks its own checksums, which takes longer than reading where it was built for any machine;
  /// without, the caller checks the value.
  [[nodiscard]] result<bool> read(family where, std::string_view key, const std::function<void(std::string_view)>& use,
                                  bool verified = true);
  /// Keys from `first` to before `end` (empty: to the last) in order, until `use` says false; it must not call this
  /// object.
  [[nodiscard]] result<void> scan(family where, std::string_view first, std::string_view end,
                                  const std::function<bool(std::string_view key, std::string_view value)>& use);
  /// Everything that is buffered goes to files of these families, all if empty.
  [[nodiscard]] result<void> flush(std::span<const family> of);
  /// Of a family, that are not in files yet.
  [[nodiscard]] std::uint64_t buffered_bytes(family of);
  [[nodiscard]] bool probe();
  /// The first of so many numbers for sessions, never given out before. Synced: states are stored under these numbers
  /// without passing through the log, so a number that a power cut gave out twice could find the state of another one.
  [[nodiscard]] result<std::uint64_t> take_session_numbers(std::uint64_t count);

  /// The outcome of something that writes. After the first failure no more of it reaches RocksDB until `probe` has
  /// opened the database again: Debian's RocksDB aborts when it is to write to a file that failed before.
  [[nodiscard]] result<void> noted(const rocksdb::Status& outcome, std::string_view doing);
  /// The failure that lasts, if one does.
  [[nodiscard]] result<void> may_write() const;

  const database_options options;
  const std::string directory;
  std::unique_ptr<rocksdb::Env> memory;       ///< where there is no directory
  const std::unique_ptr<rocksdb::Env> plain;  ///< see plain_errors
  rocksdb::Env* const env;
  std::atomic<bool> failing{false};
  /// Sessions of which the log, where it was damaged, lost the newest turns; found when the database was opened.
  std::vector<std::string> log_losses;
  std::atomic<std::uint32_t> records_set_aside{0};  ///< in quarantine
  std::atomic<std::uint32_t> buffered_flushes{0};

  // One of these waits until nobody else uses the database, to close and open it again.
  std::shared_mutex gate;
  std::unique_ptr<rocksdb::DB> db;  ///< null while it can not be opened
  std::array<rocksdb::ColumnFamilyHandle*, families> handles{};
  bool writable = false;

 private:
  [[nodiscard]] result<void> open_families(bool read_only, bool create);
  [[nodiscard]] result<void> check_format();
  [[nodiscard]] result<void> look_at_format();
  [[nodiscard]] rocksdb::Status open_to_look(rocksdb::WALRecoveryMode how, rocksdb::WalFilter* watcher);
  [[nodiscard]] rocksdb::Status look_past_damage(const rocksdb::Status& damage);
  [[nodiscard]] rocksdb::WALRecoveryMode recovery_mode() const;
  [[nodiscard]] result<void> answer_for_losses();
  [[nodiscard]] result<void> start_format();
  void close();
  [[nodiscard]] bool is_there() const;
  void fail(const rocksdb::Status& why);
  [[nodiscard]] bool disk_takes_writes();
  [[nodiscard]] bool open_again();

  std::unique_ptr<damaged_log> damaged_log_;  ///< until the database is open

  std::mutex writing_;          ///< one write after the other, so that none follows one that fails
  mutable std::mutex failure_;  ///< guards why_failing_
  error why_failing_;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> lock_file_;  ///< device and inode of LOCK, where it was opened
  rocksdb::FileLock* lock_ = nullptr;  ///< of read-only users: RocksDB itself locks for writers alone
};

}  // namespace skein::storage
