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
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/database/database.hpp"
#include "storage/files/opened_directory.hpp"
#include "storage/files/write_failure.hpp"

/// The implementation of `database`, used only within this folder.
namespace skein::storage {

/// The column families, in the order of their handles.
enum class family : std::uint8_t {
  meta,         ///< format version, counters; RocksDB's mandatory family "default"
  sessions,     ///< by tenant and id
  versions,     ///< by session number and version
  running,      ///< by session number
  states,       ///< blobs, by session number and version
  prefixes,     ///< blobs, by number
  state_index,  ///< keys and sizes of the states and prefixes, without the blobs
  quarantine,   ///< damaged records, by family and key
};
inline constexpr std::size_t families = 8;
[[nodiscard]] std::string_view to_string(family of);

/// How durable a write is when it returns.
enum class safety : std::uint8_t {
  buffered,  ///< in memory only; for writes that a flush follows
  logged,    ///< in the write-ahead log: survives the process
  synced,    ///< and synced: survives a power cut
};

/// Changes that are applied atomically. There is no erasure of key ranges: RocksDB 7.8 with assertions enabled, as in
/// Debian, aborts if it fails to create a file while a range erasure is in memory.
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

/// Thread safe. Calls run concurrently; they wait only while the database is reopened after a failure.
struct database::impl {
  explicit impl(const database_options& options);
  ~impl();
  impl(const impl&) = delete;  // RocksDB locks its directory
  impl& operator=(const impl&) = delete;

  /// Errors: as database::open.
  [[nodiscard]] result<void> open();

  [[nodiscard]] result<void> write(safety how, const std::function<void(change_list&)>& changes);
  /// Passes the value to `use`, valid during the call; false if the key does not exist. `use` must not call this
  /// object.
  /// `verified`: RocksDB verifies its checksums, which takes longer than the read itself in a build without
  /// CPU-specific
  /// instructions. If false, the caller verifies the value.
  [[nodiscard]] result<bool> read(family where, std::string_view key, const std::function<void(std::string_view)>& use,
                                  bool verified = true);
  /// Visits the keys in [`first`, `end`) (empty `end`: to the last) in order until `use` returns false. `use` must not
  /// call this object.
  [[nodiscard]] result<void> scan(family where, std::string_view first, std::string_view end,
                                  const std::function<bool(std::string_view key, std::string_view value)>& use);
  /// Writes the buffered data of these families to files; empty: of all.
  [[nodiscard]] result<void> flush(std::span<const family> of);
  /// Bytes of a family that are not in files yet.
  [[nodiscard]] std::uint64_t buffered_bytes(family of);
  [[nodiscard]] bool probe();
  /// Reserves `count` session numbers and returns the first; none was given out before. Synced, because states are
  /// stored
  /// under these numbers without the log: if a power cut reset the counter, a session could find another one's state.
  [[nodiscard]] result<std::uint64_t> take_session_numbers(std::uint64_t count);

  /// The current failure, if there is one.
  [[nodiscard]] result<void> may_write() const;

  const database_options options;
  const std::string directory;
  std::unique_ptr<rocksdb::Env> memory;       ///< null if there is a directory
  const std::unique_ptr<rocksdb::Env> plain;  ///< see plain_errors
  rocksdb::Env* const env;
  /// Notes the outcome of each write. While it is on, no write reaches RocksDB until `probe` has reopened the database:
  /// Debian's RocksDB aborts if it writes to a file after a failed write.
  write_failure failure;
  /// Sessions that lost their newest turns to damage in the log; found when the database was opened.
  std::vector<std::string> log_losses;
  std::atomic<std::uint32_t> records_set_aside{0};  ///< number of records in quarantine
  std::atomic<std::uint32_t> buffered_flushes{0};

  // Shared by all calls; locked exclusively to close and reopen the database.
  std::shared_mutex gate;
  std::unique_ptr<rocksdb::DB> db;  ///< null while the database cannot be opened
  std::array<rocksdb::ColumnFamilyHandle*, families> handles{};
  bool writable = false;

 private:
  [[nodiscard]] result<void> open_families(bool read_only, bool create);
  [[nodiscard]] result<void> check_format();
  [[nodiscard]] result<void> look_at_format();
  [[nodiscard]] rocksdb::Status open_to_look(rocksdb::WALRecoveryMode how, rocksdb::WalFilter* watcher);
  [[nodiscard]] rocksdb::Status look_past_damage(const rocksdb::Status& damage);
  [[nodiscard]] rocksdb::WALRecoveryMode recovery_mode() const;
  [[nodiscard]] result<void> start_format();
  void close();
  [[nodiscard]] bool disk_takes_writes();
  [[nodiscard]] bool open_again();

  std::unique_ptr<damaged_log> damaged_log_;  ///< until the database is open

  std::mutex writing_;  ///< serializes writes, so that none follows a failed one
  opened_directory opened_;
  rocksdb::FileLock* lock_ = nullptr;  ///< held by read-only users: RocksDB itself locks for writers only
};

}  // namespace skein::storage
