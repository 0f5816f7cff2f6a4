#include "storage/database/rocksdb_options.hpp"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include "base/log/log.hpp"

namespace skein::storage {
namespace {

/// Whether a warning of RocksDB is harmless. A backup (database::backup) disables file deletions; listing the log files
/// for it disables and enables them a second time, and RocksDB warns about both. Its warnings about files that it
/// cannot delete have other texts.
bool is_in_order(std::string_view format) {
  return format.find("File Deletions Disabled, but already disabled.") != format.npos ||
         format.find("File Deletions Enable, but not really enabled.") != format.npos;
}

/// Forwards RocksDB's warnings and errors to our log, instead of LOG files that grow in the directory.
class log_forwarder final : public rocksdb::Logger {
 public:
  log_forwarder() : Logger(rocksdb::WARN_LEVEL) {}
  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override { Logv(rocksdb::WARN_LEVEL, format, arguments); }
  void Logv(rocksdb::InfoLogLevel level, const char* format, va_list arguments) override {
    if (level < rocksdb::WARN_LEVEL || level == rocksdb::HEADER_LEVEL || is_in_order(format)) return;
    std::array<char, 512> line;
    if (std::vsnprintf(line.data(), line.size(), format, arguments) > 0)
      log::warning("rocksdb", {{"text", std::string_view(line.data())}});
  }
  void LogHeader(const char*, va_list) override {}
};

class failure_listener final : public rocksdb::EventListener {
 public:
  explicit failure_listener(std::function<void(const rocksdb::Status&)> failed) : failed_(std::move(failed)) {}
  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* error) override {
    if (!error->ok()) failed_(*error);
  }

 private:
  std::function<void(const rocksdb::Status&)> failed_;
};

rocksdb::ColumnFamilyOptions records(const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions options;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.cache_index_and_filter_blocks = true;  // otherwise their memory is outside every budget
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.max_write_buffer_number = 8;  // a stall in one family stops them all
  options.compression = rocksdb::kNoCompression;
  const auto known = rocksdb::GetSupportedCompressions();
  if (std::ranges::find(known, rocksdb::kLZ4Compression) != known.end()) options.compression = rocksdb::kLZ4Compression;
  return options;
}

rocksdb::ColumnFamilyOptions blobs(const std::shared_ptr<rocksdb::Cache>& cache, std::uint64_t write_buffer_bytes) {
  auto options = records(cache);
  options.compression = rocksdb::kNoCompression;  // floats
  options.enable_blob_files = true;
  options.min_blob_size = 4096;
  options.blob_file_size = 8 << 20;  // a file is deleted with the last of its blobs, so few per file are better
  options.write_buffer_size = write_buffer_bytes / 2;  // one is filled while others are flushed
  // Each writer of states waits for its own flush, so there is one buffer per writer; a stall would stop the log too.
  options.max_write_buffer_number = 16;
  // The file of a flush has only a few keys; a large number of such files costs little.
  options.level0_slowdown_writes_trigger = 200;
  options.level0_stop_writes_trigger = 400;
  // A file is compacted at once when a quarter of its keys are deletions, which frees unreferenced blob files. Live
  // blobs
  // are moved out of half-empty files only by database::compact: ordinary compactions would rewrite them again and
  // again,
  // and a file has only a few states.
  options.table_properties_collector_factories.push_back(rocksdb::NewCompactOnDeletionCollectorFactory(0, 0, 0.25));
  options.enable_blob_garbage_collection = false;
  return options;
}

}  // namespace

rocksdb::DBOptions options_of_database(const database_options& options, rocksdb::Env* env,
                                       std::function<void(const rocksdb::Status&)> failed) {
  rocksdb::DBOptions db;
  db.env = env;
  db.create_if_missing = options.create;
  db.create_missing_column_families = options.create;
  db.max_open_files = static_cast<int>(options.open_files_max);
  db.max_file_opening_threads = 1;  // threads are started per family, and there are few files
  db.db_write_buffer_size = options.write_buffer_bytes;
  db.max_total_wal_size = options.write_buffer_bytes;
  db.max_manifest_file_size = 4 << 20;
  db.advise_random_on_open = false;  // states are read from end to end
  // Buffered states that were not flushed were never acknowledged; a flush could write to a file that failed before.
  db.avoid_flush_during_shutdown = true;
  db.allow_fallocate = false;       // it would reserve the size of the write buffer on a small disk at once
  db.max_bgerror_resume_count = 0;  // database::probe resumes, on the calling thread
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.info_log = std::make_shared<log_forwarder>();
  db.info_log_level = rocksdb::WARN_LEVEL;
  db.listeners.push_back(std::make_shared<failure_listener>(std::move(failed)));
  return db;
}

std::vector<rocksdb::ColumnFamilyDescriptor> options_of_families(const database_options& options) {
  const auto cache = rocksdb::NewLRUCache(options.cache_bytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> all;
  for (std::size_t i = 0; i < families; ++i) {
    const auto of = static_cast<family>(i);
    const bool large = of == family::states || of == family::prefixes || of == family::quarantine;
    all.emplace_back(std::string(to_string(of)), large ? blobs(cache, options.write_buffer_bytes) : records(cache));
  }
  return all;
}

rocksdb::Status make_database(const rocksdb::DBOptions& settings, const std::string& directory,
                              const std::vector<rocksdb::ColumnFamilyDescriptor>& all,
                              std::vector<rocksdb::ColumnFamilyHandle*>& handles, rocksdb::DB*& opened) {
  auto status = rocksdb::DB::Open(settings, directory, {all.front()}, &handles, &opened);
  if (!status.ok()) return status;
  std::vector<rocksdb::ColumnFamilyHandle*> others;
  status = opened->CreateColumnFamilies({all.begin() + 1, all.end()}, &others);
  handles.insert(handles.end(), others.begin(), others.end());
  if (status.ok()) return status;
  for (auto* const handle : handles) (void)opened->DestroyColumnFamilyHandle(handle);
  handles.clear();
  delete std::exchange(opened, nullptr);
  return status;
}

}  // namespace skein::storage
