#pragma once
#include <rocksdb/env.h>

#include <string>

#include "base/result.hpp"

/// Damage that RocksDB cannot tell from a torn write. It checks every record of its logs (*.log, MANIFEST-*), but not
/// the length in a record's header: one that points behind the end of the file reads as if the writer had died there,
/// and the record and all behind it are gone without a word; of a MANIFEST with them whole files of data. The record's
/// own checksum knows better: where it holds for a shorter length, nothing is torn and the length is what was hit.
namespace skein::storage {

/// Looks at the ends of all logs of the directory and writes the right length where that is proven (`mend`), or only
/// says so: an error of the kind `damaged` that names the file. Errors: `io` when a file cannot be read or written.
[[nodiscard]] result<void> check_log_lengths(rocksdb::Env& env, const std::string& directory, bool mend);

}  // namespace skein::storage
