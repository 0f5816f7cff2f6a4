#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/database/database_impl.hpp"

namespace skein::storage {

/// Reads values from RocksDB's blob files by key, without RocksDB: its own repair drops the list of blob files.
/// A blob file is a header of 30 bytes with the number of its column family, then a record for each value: sizes of key
/// and value and an expiration (u64 each), two checksums (u32 each), key, value. These checksums are not verified here:
/// our records have checksums of their own.
class blob_files {
 public:
  /// Indexes all blob files of a directory. Values are read later, so the files must not be removed.
  explicit blob_files(const std::filesystem::path& directory);

  /// The value in the newest file that has one; nullopt if there is none or it cannot be read.
  [[nodiscard]] std::optional<std::string> read(family of, std::string_view key) const;

  /// Files in which damage hides some values, with the reason.
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& damaged() const { return damaged_; }

 private:
  struct place {
    std::filesystem::path file;
    std::uint64_t at = 0, bytes = 0;
  };
  void look_at(const std::filesystem::path& file);

  std::map<std::pair<family, std::string>, place, std::less<>> places_;
  std::vector<std::pair<std::string, std::string>> damaged_;
};

}  // namespace skein::storage
