#pragma once
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.hpp"

namespace rocksdb {
class Status;
}

namespace skein::storage {

/// Converts a status that is not ok to an error: `doing`, then RocksDB's text. Kinds: no_space, damaged, in_use (the
/// directory is locked), missing_file, io.
[[nodiscard]] error from_status(const rocksdb::Status& status, std::string_view doing);

/// The error of a call of the file system: `doing`, then its text. Kinds: no_space, io.
[[nodiscard]] error failed_at(const std::string& doing, const std::error_code& why);

}  // namespace skein::storage
