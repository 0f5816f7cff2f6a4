#pragma once
#include <rocksdb/options.h>

#include <functional>
#include <vector>

#include "storage/database_impl.hpp"

namespace skein::storage {

/// Options of the whole database. `failing` is told when RocksDB cannot write in the background (true) and when it has
/// recovered (false), on RocksDB's threads.
[[nodiscard]] rocksdb::DBOptions options_of_database(const database_options& options, rocksdb::Env* env,
                                                     std::function<void(bool)> failing);

/// All column families by name with their options, in the order of `family`.
[[nodiscard]] std::vector<rocksdb::ColumnFamilyDescriptor> options_of_families(const database_options& options);

}  // namespace skein::storage
