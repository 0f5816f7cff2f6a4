#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/database_impl.hpp"

namespace skein::storage {

/// Values in RocksDB's blob files by their keys, found in the files themselves: RocksDB's own repair forgets which blob
/// files there are. A blob file is a header of 30 bytes, which has the number of its family, and a record for each
/// value: sizes of key and value and an expiration (u64 each), two checksums (u32 each), key, value. What is read is
/// not checked here; records have checksums of their own.
class blob_files {
 public:
  /// Looks at all blob files of a directory. Values are read later, so the files must stay.
  explicit blob_files(const std::filesystem::path& directory);

  /// The copy in the newest file; nothing where there is none that can be read.
  [[nodiscard]] std::optional<std::string> read(family of, std::string_view key) const;

  /// Files that are damaged so that values could not be found, with the reason.
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
