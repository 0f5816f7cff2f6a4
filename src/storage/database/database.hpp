#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>

#include "base/result.hpp"

namespace rocksdb {
class Env;
}

namespace skein::storage {

struct database_options {
  std::filesystem::path directory;                 ///< empty: in memory only
  std::uint64_t cache_bytes = 32ull << 20;         ///< of RocksDB's block cache
  std::uint64_t write_buffer_bytes = 64ull << 20;  ///< of all column families together
  std::uint32_t open_files_max = 512;
  bool create = true;                   ///< create the database if it does not exist; false: missing_file
  bool read_only = false;               ///< changes no file; still refused while another process has the database open
  rocksdb::Env* environment = nullptr;  ///< for fault injection in tests; null: the system's
};

/// The directory of the database in a server's state directory.
[[nodiscard]] std::filesystem::path database_directory(const std::filesystem::path& state_directory);

/// Owner of a RocksDB with our column families: sessions, versions, running, states (blobs), prefixes (blobs), state
/// index, quarantine, meta (format version). Callers see `error`, never rocksdb::Status. Errors of open: conflict
/// (another process has it open, or a newer format; both versions named), damaged, io, no_space.
class database {
 public:
  [[nodiscard]] static result<std::shared_ptr<database>> open(const database_options& options);
  ~database();
  database(const database&) = delete;  // RocksDB locks its directory
  database& operator=(const database&) = delete;

  /// False for a database in memory.
  [[nodiscard]] bool on_disk() const;
  /// Empty for a database in memory.
  [[nodiscard]] const std::filesystem::path& directory() const;
  /// Whether writes fail at present. Reads still work. The owner must call `probe` about once a second until it
  /// succeeds.
  [[nodiscard]] bool failing() const;
  /// Tests whether the disk accepts writes again, and if so recovers, if necessary by reopening the database; states
  /// that
  /// were not flushed are lost then. True if writes work. May wait for the disk.
  [[nodiscard]] bool probe();
  [[nodiscard]] result<void> flush();
  /// Removes deleted and replaced data from the files, blob files included. Takes as long as rewriting all data.
  /// Errors: cancelled, soon after `stop` is requested.
  [[nodiscard]] result<void> compact(const std::stop_token& stop = {});
  /// Makes a copy that opens as a database in a new directory. Files are hard links if the file system allows it.
  /// Errors: conflict (the directory exists), io, no_space.
  [[nodiscard]] result<void> backup(const std::filesystem::path& into);

  struct impl;
  [[nodiscard]] impl& internals() { return *impl_; }

 private:
  explicit database(std::unique_ptr<impl>);
  std::unique_ptr<impl> impl_;
};

}  // namespace skein::storage
