#pragma once
#include <rocksdb/sst_file_reader.h>

#include <map>
#include <string>

namespace skein::storage {

/// All entries of a table file that can be read, whichever of its blocks are damaged: RocksDB stops at the first such
/// block, so the file is read forward from its beginning, backward from its end, and from keys between both. An entry
/// whose newest form in this file is a deletion does not show.
[[nodiscard]] std::map<std::string, std::string> read_around_damage(rocksdb::SstFileReader& file);

}  // namespace skein::storage
