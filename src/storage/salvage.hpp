#pragma once
#include <rocksdb/db.h>
#include <rocksdb/utilities/debug.h>

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "storage/blob_files.hpp"
#include "storage/database_impl.hpp"

namespace skein::storage {

struct damaged_file {
  std::string name, why;
};

/// A database that RocksDB has open.
struct open_files {
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;

  open_files() = default;
  ~open_files();
  open_files(const open_files&) = delete;  // owns the handles
  open_files& operator=(const open_files&) = delete;
};

/// All that can be read of a database's files, whichever of them are damaged or missing, and with no use of the list of
/// files (MANIFEST). Each table file is taken by itself into a database beside, as links, so that nothing is changed
/// here; the log goes through RocksDB's repair. (Its repair of a whole database forgets the blob files, drops a table
/// for one bad block, and refuses tables whose numbers overlap those of the log, as they do after a crash.) Of each key
/// the entry with the highest sequence number counts, so what was deleted stays deleted. What RocksDB cannot read is
/// read as well where that is possible: the sound blocks of a damaged table, and our own records behind damage in the
/// log. They count where nothing else is known of their key, or something older.
class salvage {
 public:
  /// `directory`: no process may write there. `work`: a directory that does not exist yet, on the same file system; its
  /// owner removes it when this is gone. Errors: io, no_space.
  [[nodiscard]] static result<std::unique_ptr<salvage>> open(const std::filesystem::path& directory,
                                                             const std::filesystem::path& work);

  using visitor = std::function<void(std::string_view key, std::string_view value)>;
  /// All entries of a family that holds no blobs, in order of their keys. Nothing in them is checked.
  [[nodiscard]] result<void> scan(family where, const visitor& use);
  /// A value of a family of blobs, but for the quarantine.
  [[nodiscard]] std::optional<std::string> blob(family where, const std::string& key);
  /// Keys and values of the quarantine; the value is empty where it cannot be read.
  [[nodiscard]] result<void> quarantine(const visitor& use);

  /// The files that something could not be read of.
  [[nodiscard]] const std::vector<damaged_file>& damaged() const { return damaged_; }

 private:
  /// A family in one of the sources.
  struct source {
    family of;
    rocksdb::DB* db;
    rocksdb::ColumnFamilyHandle* handle;
  };

  salvage(const std::filesystem::path& directory, const std::filesystem::path& work);
  [[nodiscard]] result<void> open_log();
  [[nodiscard]] result<void> seed_families(const std::filesystem::path& into);
  [[nodiscard]] result<void> open_tables();
  void open_table(const std::filesystem::path& file);
  void take_damaged();
  [[nodiscard]] result<void> read_small_blobs();
  void offer(family where, const std::string& key, std::string value);
  using entry_visitor = std::function<void(const rocksdb::KeyVersion& entry)>;
  [[nodiscard]] result<void> each(family where, const entry_visitor& use);

  const std::filesystem::path directory_, work_;
  const std::vector<rocksdb::ColumnFamilyDescriptor> options_;  ///< one cache for all that is opened
  std::unique_ptr<blob_files> blobs_;
  open_files log_, tables_;
  std::vector<source> sources_;
  struct entry {
    family where;
    std::string key, value;
  };
  std::vector<entry> of_damaged_tables_;                               ///< until all sources are known
  std::array<std::map<std::string, std::string>, families> left_out_;  ///< of the sources, and the newest of its key
  std::map<std::pair<family, std::string>, std::string> small_blobs_;  ///< that are in no blob file
  std::vector<damaged_file> damaged_;
};

}  // namespace skein::storage
