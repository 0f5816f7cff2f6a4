#pragma once
#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <functional>
#include <string>
#include <vector>

#include "storage/database/database_impl.hpp"

namespace skein::storage {

/// Options of the whole database. RocksDB calls `failed` from its own threads if a background write fails.
[[nodiscard]] rocksdb::DBOptions options_of_database(const database_options& options, rocksdb::Env* env,
                                                     std::function<void(const rocksdb::Status&)> failed);

/// All column families by name with their options, in the order of `family`.
[[nodiscard]] std::vector<rocksdb::ColumnFamilyDescriptor> options_of_families(const database_options& options);

/// Opens a database that does not exist yet, with these column families; the first is RocksDB's own. DB::Open with
/// create_missing_column_families does the same more slowly: after each family it writes the file of options, reads it
/// back and compares it.
[[nodiscard]] rocksdb::Status make_database(const rocksdb::DBOptions& settings, const std::string& directory,
                                            const std::vector<rocksdb::ColumnFamilyDescriptor>& all,
                                            std::vector<rocksdb::ColumnFamilyHandle*>& handles, rocksdb::DB*& opened);

}  // namespace skein::storage
