#pragma once
#include <rocksdb/env.h>

#include <memory>

namespace skein::storage {

/// The environment with a full disk made an error like any other: RocksDB recovers from that one in a thread of its
/// own, which waits for the space of a whole write buffer and at times leaves Close() waiting for ever. After all other
/// errors it just stops writing, and database::probe opens it again. The text of the error stays ("No space left ...").
[[nodiscard]] std::unique_ptr<rocksdb::Env> with_plain_errors(rocksdb::Env* env);

}  // namespace skein::storage
