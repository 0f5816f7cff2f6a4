#pragma once
#include <string_view>

#include "base/error.hpp"

namespace rocksdb {
class Status;
}

namespace skein::storage {

/// Converts a status that is not ok to an error: `doing`, then RocksDB's text. Kinds: no_space, damaged, in_use (the
/// directory is locked), missing_file, io.
[[nodiscard]] error from_status(const rocksdb::Status& status, std::string_view doing);

}  // namespace skein::storage
