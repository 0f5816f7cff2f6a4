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
  std::filesystem::path directory;                 ///< empty: in memory only, gone with the process
  std::uint64_t cache_bytes = 32ull << 20;         ///< of RocksDB's block cache
  std::uint64_t write_buffer_bytes = 64ull << 20;  ///< of all column families together
  std::uint32_t open_files_max = 512;
  bool create = true;                   ///< make what is not there; else missing_file
  bool read_only = false;               ///< changes no file; refused like any other while another process has it open
  rocksdb::Env* environment = nullptr;  ///< tests put faults in; null: the system's
};

/// Where the database lies in a server's state directory.
[[nodiscard]] std::filesystem::path database_directory(const std::filesystem::path& state_directory);

/// A RocksDB with our column families, opened and owned in one place: sessions, versions, running, states (blobs),
/// prefixes (blobs), state index, quarantine, meta (format version). rocksdb::Status becomes our error here and travels
/// no further. Errors of open: conflict (another process has it, or a newer format; both versions named), damaged, io,
/// no_space.
class database {
 public:
  [[nodiscard]] static result<std::shared_ptr<database>> open(const database_options& options);
  ~database();
  database(const database&) = delete;  // RocksDB locks its directory
  database& operator=(const database&) = delete;

  /// Survives the process; false where it lives in memory.
  [[nodiscard]] bool on_disk() const;
  /// Empty where it lives in memory.
  [[nodiscard]] const std::filesystem::path& directory() const;
  /// Whether writes fail at present. Reads go on. Somebody has to call `probe` every second or so until it is over.
  [[nodiscard]] bool failing() const;
  /// Tries whether the disk takes writes again, and if so does what it takes to go on, to the point of opening the
  /// database anew; states that were not flushed are lost then. True: writes work. May wait for the disk.
  [[nodiscard]] bool probe();
  [[nodiscard]] result<void> flush();
  /// Drops what was deleted or replaced from the files, in blob files too. Takes as long as writing everything anew;
  /// cancelled soon after `stop` is asked for.
  [[nodiscard]] result<void> compact(const std::stop_token& stop = {});
  /// A copy that opens as a database, in a directory that does not exist yet; files are shared where the file system
  /// can (links). Errors: conflict (it exists), io, no_space.
  [[nodiscard]] result<void> backup(const std::filesystem::path& into);

  struct impl;
  [[nodiscard]] impl& internals() { return *impl_; }

 private:
  explicit database(std::unique_ptr<impl>);
  std::unique_ptr<impl> impl_;
};

}  // namespace skein::storage
