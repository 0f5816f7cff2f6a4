#pragma once
#include <rocksdb/options.h>

#include <functional>
#include <vector>

#include "storage/database/database_impl.hpp"

namespace skein::storage {

/// Options of the whole database. RocksDB calls `failed` from its own threads if a background write fails.
[[nodiscard]] rocksdb::DBOptions options_of_database(const database_options& options, rocksdb::Env* env,
                                                     std::function<void(const rocksdb::Status&)> failed);

/// All column families by name with their options, in the order of `family`.
[[nodiscard]] std::vector<rocksdb::ColumnFamilyDescriptor> options_of_families(const database_options& options);

}  // namespace skein::storage
