#pragma once
#include <rocksdb/env.h>

#include <memory>

namespace skein::storage {

/// Wraps an environment so that a full disk is reported as an ordinary I/O error. RocksDB would recover from "no space"
/// in its own thread: that sometimes makes Close() wait forever, and it flushes each column family, so that the log is
/// not replayed for those whose flush succeeded. If the disk has stored the write that failed, a crash then leaves half
/// of it. After other errors RocksDB only stops writing, and database::probe reopens it. The error text stays ("No
/// space left ...").
[[nodiscard]] std::unique_ptr<rocksdb::Env> with_plain_errors(rocksdb::Env* env);

}  // namespace skein::storage
