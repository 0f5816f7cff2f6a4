#include "storage/files/rocksdb_status.hpp"

#include <rocksdb/status.h>

#include <string>

namespace skein::storage {
namespace {

/// RocksDB reports a held lock as IOError; only the text tells.
bool is_lock(const rocksdb::Status& status, std::string_view text) {
  return status.IsIOError() && (text.find("lock hold by current process") != text.npos ||
                                text.find("LOCK: Resource temporarily unavailable") != text.npos);
}

error_kind kind_of(const rocksdb::Status& status, std::string_view text) {
  if (is_lock(status, text)) return error_kind::in_use;
  if (status.IsNoSpace() || text.find("No space left on device") != text.npos ||
      text.find("Disk quota exceeded") != text.npos)
    return error_kind::no_space;
  if (status.IsCorruption()) return error_kind::damaged;
  if (status.IsPathNotFound()) return error_kind::missing_file;
  return error_kind::io;
}

}  // namespace

error from_status(const rocksdb::Status& status, std::string_view doing) {
  const std::string text = status.ToString();
  return {kind_of(status, text), std::string(doing).append(": ").append(text), {}};
}

error failed_at(const std::string& doing, const std::error_code& why) {
  const auto kind = why == std::errc::no_space_on_device ? error_kind::no_space : error_kind::io;
  return error{kind, doing + ": " + why.message(), {}};
}

}  // namespace skein::storage
