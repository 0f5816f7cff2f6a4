#pragma once
#include <string_view>

#include "base/error.hpp"

namespace rocksdb {
class Status;
}

namespace skein::storage {

/// What a status that is not ok means to us, with RocksDB's own text after `doing`. Kinds: no_space, damaged, in_use
/// (the directory is locked), missing_file, io.
[[nodiscard]] error from_status(const rocksdb::Status& status, std::string_view doing);

}  // namespace skein::storage
