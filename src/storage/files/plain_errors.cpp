#include "storage/files/plain_errors.hpp"

#include <rocksdb/file_system.h>

#include <string>
#include <utility>

namespace skein::storage {
namespace {

using rocksdb::DataVerificationInfo;
using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

IOStatus plain(IOStatus status) {
  return status.ok() || !status.IsNoSpace() ? status : IOStatus::IOError(status.ToString());
}

class plain_file final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using base = rocksdb::FSWritableFileOwnerWrapper;
  using base::base;
  IOStatus Append(const Slice& data, const IOOptions& o, IODebugContext* d) override {
    return plain(base::Append(data, o, d));
  }
  IOStatus Append(const Slice& data, const IOOptions& o, const DataVerificationInfo& v, IODebugContext* d) override {
    return plain(base::Append(data, o, v, d));
  }
  IOStatus PositionedAppend(const Slice& data, std::uint64_t at, const IOOptions& o, IODebugContext* d) override {
    return plain(base::PositionedAppend(data, at, o, d));
  }
  IOStatus PositionedAppend(const Slice& data, std::uint64_t at, const IOOptions& o, const DataVerificationInfo& v,
                            IODebugContext* d) override {
    return plain(base::PositionedAppend(data, at, o, v, d));
  }
  IOStatus Truncate(std::uint64_t size, const IOOptions& o, IODebugContext* d) override {
    return plain(base::Truncate(size, o, d));
  }
  IOStatus Close(const IOOptions& o, IODebugContext* d) override { return plain(base::Close(o, d)); }
  IOStatus Flush(const IOOptions& o, IODebugContext* d) override { return plain(base::Flush(o, d)); }
  IOStatus Sync(const IOOptions& o, IODebugContext* d) override { return plain(base::Sync(o, d)); }
  IOStatus Fsync(const IOOptions& o, IODebugContext* d) override { return plain(base::Fsync(o, d)); }
  IOStatus RangeSync(std::uint64_t at, std::uint64_t bytes, const IOOptions& o, IODebugContext* d) override {
    return plain(base::RangeSync(at, bytes, o, d));
  }
};

class plain_files final : public rocksdb::FileSystemWrapper {
 public:
  using base = rocksdb::FileSystemWrapper;
  using base::base;
  using made_file = std::unique_ptr<rocksdb::FSWritableFile>;
  const char* Name() const override { return "plain_files"; }
  IOStatus NewWritableFile(const std::string& name, const FileOptions& o, made_file* made, IODebugContext* d) override {
    return wrapped(base::NewWritableFile(name, o, made, d), made);
  }
  IOStatus ReopenWritableFile(const std::string& name, const FileOptions& o, made_file* made,
                              IODebugContext* d) override {
    return wrapped(base::ReopenWritableFile(name, o, made, d), made);
  }
  IOStatus ReuseWritableFile(const std::string& name, const std::string& old, const FileOptions& o, made_file* made,
                             IODebugContext* d) override {
    return wrapped(base::ReuseWritableFile(name, old, o, made, d), made);
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& o, IODebugContext* d) override {
    return plain(base::RenameFile(from, to, o, d));
  }
  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions& o, IODebugContext* d) override {
    return plain(base::LinkFile(from, to, o, d));
  }

 private:
  static IOStatus wrapped(IOStatus opened, made_file* made) {
    if (opened.ok()) *made = std::make_unique<plain_file>(std::move(*made));
    return plain(std::move(opened));
  }
};

/// The wrapped environment's threads and clock, with files whose errors are plain. The free space is unknown, without
/// which RocksDB does not recover by itself, whichever call reports "no space".
class plain_environment final : public rocksdb::EnvWrapper {
 public:
  explicit plain_environment(rocksdb::Env* env) : EnvWrapper(env) {
    file_system_ = std::make_shared<plain_files>(env->GetFileSystem());
    system_clock_ = env->GetSystemClock();
  }
  rocksdb::Status GetFreeSpace(const std::string&, std::uint64_t*) override { return rocksdb::Status::NotSupported(); }
};

}  // namespace

std::unique_ptr<rocksdb::Env> with_plain_errors(rocksdb::Env* env) { return std::make_unique<plain_environment>(env); }

}  // namespace skein::storage
