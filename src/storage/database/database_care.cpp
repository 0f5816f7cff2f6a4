// Maintenance of a whole database.
#include <rocksdb/utilities/checkpoint.h>

#include <atomic>
#include <memory>

#include "storage/database/database_impl.hpp"
#include "storage/files/rocksdb_status.hpp"

namespace skein::storage {

result<void> database::compact(const std::stop_token& stop) {
  auto& db = internals();
  // Flush first, so that no log file contains deleted data.
  if (const auto flushed = db.flush({}); !flushed) return flushed.error();
  const std::shared_lock entered(db.gate);
  if (const auto may = db.may_write(); !may) return may.error();
  rocksdb::CompactRangeOptions wish;
  wish.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  wish.blob_garbage_collection_policy = rocksdb::BlobGarbageCollectionPolicy::kForce;
  wish.blob_garbage_collection_age_cutoff = 1.0;
  std::atomic<bool> cancelled{false};
  const std::stop_callback cancel(stop, [&] { cancelled = true; });
  wish.canceled = &cancelled;
  for (auto* const handle : db.handles) {
    const auto status = db.db->CompactRange(wish, handle, nullptr, nullptr);
    if (cancelled) return error{error_kind::cancelled, "compaction was cancelled: the server is shutting down", {}};
    if (const auto done = db.failure.noted(status, "compacting " + db.directory); !done) return done.error();
  }
  return {};
}

result<void> database::backup(const std::filesystem::path& into) {
  auto& db = internals();
  if (db.env->FileExists(into.string()).ok())
    return error{error_kind::conflict, into.string() + " already exists; a backup needs a new directory", {}};
  const std::shared_lock entered(db.gate);
  if (!db.db) return error{error_kind::io, db.directory + " is not open", {}};
  rocksdb::Checkpoint* made = nullptr;
  auto status = rocksdb::Checkpoint::Create(db.db.get(), &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  if (status.ok()) status = checkpoint->CreateCheckpoint(into.string());
  if (!status.ok()) return from_status(status, "copying " + db.directory + " to " + into.string());
  return {};
}

}  // namespace skein::storage
