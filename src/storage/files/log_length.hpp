#pragma once
#include <rocksdb/env.h>

#include <string>

#include "base/result.hpp"

/// Damage that RocksDB cannot tell from a torn write. It verifies every record of its logs (*.log, MANIFEST-*), but not
/// the length in a record's header. A length that points past the end of the file looks as if the writer had died
/// there: RocksDB silently drops the record and all later ones, in a MANIFEST whole data files with them. The record's
/// checksum tells the two apart: if it matches for a shorter length, the write is complete and the length is damaged.
namespace skein::storage {

/// Checks the ends of all logs in the directory. Writes the right length if it is proven and `mend` is set; without
/// `mend`, fails with `damaged`, naming the file. Errors: `io` if a file cannot be read or written.
[[nodiscard]] result<void> check_log_lengths(rocksdb::Env& env, const std::string& directory, bool mend);

}  // namespace skein::storage
