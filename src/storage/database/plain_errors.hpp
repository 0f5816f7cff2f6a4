#pragma once
#include <rocksdb/env.h>

#include <memory>

namespace skein::storage {

/// Wraps an environment so that a full disk is reported as an ordinary I/O error. RocksDB would recover from "no space"
/// in its own thread, which waits for the space of a whole write buffer and sometimes makes Close() wait forever. After
/// other errors it only stops writing, and database::probe reopens it. The error text stays ("No space left ...").
[[nodiscard]] std::unique_ptr<rocksdb::Env> with_plain_errors(rocksdb::Env* env);

}  // namespace skein::storage
