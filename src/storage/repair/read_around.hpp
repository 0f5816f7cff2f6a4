#pragma once
#include <rocksdb/sst_file_reader.h>

#include <map>
#include <string>

namespace skein::storage {

/// All readable entries of a table file with damaged blocks. RocksDB stops at the first damaged block, so the file is
/// read forward from its beginning, backward from its end, and from keys in between. Keys whose newest entry in this
/// file is a deletion are left out.
[[nodiscard]] std::map<std::string, std::string> read_around_damage(rocksdb::SstFileReader& file);

}  // namespace skein::storage
