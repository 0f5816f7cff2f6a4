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
#include "storage/database/blob_files.hpp"
#include "storage/database/database_impl.hpp"

namespace skein::storage {

struct damaged_file {
  std::string name, why;
};

/// An open RocksDB database with its column family handles.
struct open_files {
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;

  open_files() = default;
  ~open_files();
  open_files(const open_files&) = delete;  // owns the handles
  open_files& operator=(const open_files&) = delete;
};

/// Reads all readable data of a database's files, whichever of them are damaged or missing, without the MANIFEST. Each
/// table file is imported into a temporary database as a hard link, so the original stays unchanged; the log goes
/// through RocksDB's repair. (RocksDB's repair of a whole database drops the blob files, drops a table for one bad
/// block, and refuses tables whose sequence numbers overlap those of the log, as they do after a crash.) For each key
/// the entry with the highest sequence number counts, so deleted keys stay deleted. Data that RocksDB cannot read is
/// recovered if possible: intact blocks of a damaged table, and our own records after damage in the log. These count
/// only if their key has no entry otherwise, or an older one.
class salvage {
 public:
  /// `directory`: no process may write to it. `work`: a new directory on the same file system; the caller removes it
  /// after this object is destroyed. Errors: io, no_space.
  [[nodiscard]] static result<std::unique_ptr<salvage>> open(const std::filesystem::path& directory,
                                                             const std::filesystem::path& work);

  using visitor = std::function<void(std::string_view key, std::string_view value)>;
  /// All entries of a family without blobs, in key order. The contents are not verified.
  [[nodiscard]] result<void> scan(family where, const visitor& use);
  /// A value of a family with blobs, except the quarantine.
  [[nodiscard]] std::optional<std::string> blob(family where, const std::string& key);
  /// Keys and values of the quarantine; a value that cannot be read is empty.
  [[nodiscard]] result<void> quarantine(const visitor& use);

  /// The files that could not be read completely.
  [[nodiscard]] const std::vector<damaged_file>& damaged() const { return damaged_; }

 private:
  /// A column family in one of the opened databases.
  struct source {
    family of;
    rocksdb::DB* db;
    rocksdb::ColumnFamilyHandle* handle;
  };

  salvage(const std::filesystem::path& directory, const std::filesystem::path& work);
  [[nodiscard]] result<void> open_log();
  [[nodiscard]] result<void> seed_families(const std::filesystem::path& into);
  [[nodiscard]] result<void> open_tables();
  [[nodiscard]] result<void> open_table(const std::filesystem::path& file);
  void take_damaged();
  [[nodiscard]] result<void> read_small_blobs();
  void offer(family where, const std::string& key, std::string value);
  using entry_visitor = std::function<void(const rocksdb::KeyVersion& entry)>;
  [[nodiscard]] result<void> each(family where, const entry_visitor& use);

  const std::filesystem::path directory_, work_;
  const std::unique_ptr<rocksdb::Env> env_;                     ///< as in database::impl: see plain_errors
  const std::unique_ptr<rocksdb::Env> env_of_tables_;           ///< without files of options
  const std::vector<rocksdb::ColumnFamilyDescriptor> options_;  ///< one cache for all opened databases
  std::unique_ptr<blob_files> blobs_;
  open_files log_, tables_;
  std::vector<source> sources_;
  struct entry {
    family where;
    std::string key, value;
  };
  std::vector<entry> of_damaged_tables_;  ///< kept until all sources are open
  /// Recovered records that sources_ do not have, or only in an older form.
  std::array<std::map<std::string, std::string>, families> left_out_;
  std::map<std::pair<family, std::string>, std::string> small_blobs_;  ///< values that are in no blob file
  std::vector<damaged_file> damaged_;
};

}  // namespace skein::storage
