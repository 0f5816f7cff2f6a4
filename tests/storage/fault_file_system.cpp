#include "tests/storage/fault_file_system.hpp"

#include <filesystem>
#include <fstream>

#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

using rocksdb::DataVerificationInfo;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

IOStatus trouble(fault_kind kind) {
  return kind == fault_kind::no_space ? IOStatus::NoSpace("No space left on device (a test)")
                                      : IOStatus::IOError("Input/output error (a test)");
}

class written_file final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  written_file(std::unique_ptr<rocksdb::FSWritableFile> inner, fault_file_system& owner, std::string name,
               std::uint64_t bytes)
      : FSWritableFileOwnerWrapper(std::move(inner)), owner_(owner), name_(std::move(name)), bytes_(bytes) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    const auto fault = owner_.next_write();
    if (fault == fault_kind::short_write) {
      const Slice half(data.data(), data.size() / 2);
      if (FSWritableFileOwnerWrapper::Append(half, options, debug).ok()) bytes_ += half.size();
    }
    if (fault) return trouble(*fault);
    const auto done = FSWritableFileOwnerWrapper::Append(data, options, debug);
    if (done.ok()) bytes_ += data.size();
    return done;
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Truncate(std::uint64_t bytes, const IOOptions& options, IODebugContext* debug) override {
    if (const auto fault = owner_.next_write()) return trouble(*fault);
    bytes_ = bytes;
    return FSWritableFileOwnerWrapper::Truncate(bytes, options, debug);
  }
  IOStatus Flush(const IOOptions& options, IODebugContext* debug) override {
    if (const auto fault = owner_.next_write()) return trouble(*fault);
    return FSWritableFileOwnerWrapper::Flush(options, debug);
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    if (const auto fault = owner_.next_write()) return trouble(*fault);
    owner_.synced(name_, bytes_);
    return IOStatus::OK();
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override { return Sync(options, debug); }
  IOStatus RangeSync(std::uint64_t, std::uint64_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }

 private:
  fault_file_system& owner_;
  const std::string name_;
  std::uint64_t bytes_;
};

/// A copy of what was read with one bit of it wrong, in the reader's buffer.
void flip(Slice* read, char* scratch) {
  if (read->empty()) return;
  if (read->data() != scratch) std::copy_n(read->data(), read->size(), scratch);
  char& byte = scratch[read->size() / 2];
  byte = static_cast<char>(byte ^ 16);
  *read = Slice(scratch, read->size());
}

class sequential_file final : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  sequential_file(std::unique_ptr<rocksdb::FSSequentialFile> inner, fault_file_system& owner)
      : FSSequentialFileOwnerWrapper(std::move(inner)), owner_(owner) {}
  IOStatus Read(std::size_t n, const IOOptions& options, Slice* read, char* scratch, IODebugContext* debug) override {
    const auto fault = owner_.next_read();
    if (fault && *fault != fault_kind::flipped_bit) return trouble(*fault);
    const auto done = FSSequentialFileOwnerWrapper::Read(n, options, read, scratch, debug);
    if (fault && done.ok()) flip(read, scratch);
    return done;
  }

 private:
  fault_file_system& owner_;
};

class random_file final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  random_file(std::unique_ptr<rocksdb::FSRandomAccessFile> inner, fault_file_system& owner)
      : FSRandomAccessFileOwnerWrapper(std::move(inner)), owner_(owner) {}
  IOStatus Read(std::uint64_t offset, std::size_t n, const IOOptions& options, Slice* read, char* scratch,
                IODebugContext* debug) const override {
    const auto fault = owner_.next_read();
    if (fault && *fault != fault_kind::flipped_bit) return trouble(*fault);
    const auto done = FSRandomAccessFileOwnerWrapper::Read(offset, n, options, read, scratch, debug);
    if (fault && done.ok()) flip(read, scratch);
    return done;
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* requests, std::size_t count, const IOOptions& options,
                     IODebugContext* debug) override {
    for (std::size_t i = 0; i < count; ++i)
      requests[i].status =
          Read(requests[i].offset, requests[i].len, options, &requests[i].result, requests[i].scratch, debug);
    return IOStatus::OK();
  }

 private:
  fault_file_system& owner_;
};

class folder final : public rocksdb::FSDirectoryWrapper {
 public:
  folder(std::unique_ptr<rocksdb::FSDirectory> inner, fault_file_system& owner)
      : FSDirectoryWrapper(std::move(inner)), owner_(owner) {}
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    if (const auto fault = owner_.next_write()) return trouble(*fault);
    owner_.folder_synced();
    return IOStatus::OK();
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions&) override {
    return Fsync(options, debug);
  }

 private:
  fault_file_system& owner_;
};

}  // namespace

void fault_file_system::plan(const fault_plan& wanted) {
  const std::lock_guard entered(mutex_);
  plan_ = wanted;
  operations_ = 0;
}

void fault_file_system::heal() { plan({}); }

std::optional<fault_kind> fault_file_system::next(bool read) {
  if (frozen_ && !read) return fault_kind::io_error;
  const std::lock_guard entered(mutex_);
  if (plan_.first == 0 || read != plan_.reads) return {};
  ++operations_;
  if (operations_ < plan_.first || operations_ - plan_.first >= plan_.count) return {};
  ++faults_;
  return plan_.kind;
}

std::optional<fault_kind> fault_file_system::next_write() { return next(false); }
std::optional<fault_kind> fault_file_system::next_read() { return next(true); }

void fault_file_system::synced(const std::string& name, std::uint64_t bytes) {
  const std::lock_guard entered(mutex_);
  files_[name].synced_bytes = bytes;
}

void fault_file_system::folder_synced() {
  const std::lock_guard entered(mutex_);
  for (auto& [name, fate] : files_) fate.name_synced = true;
  renames_.clear();
}

void fault_file_system::cut_power() {
  const std::lock_guard entered(mutex_);
  for (auto rename = renames_.rbegin(); rename != renames_.rend(); ++rename) {
    std::error_code gone;
    std::filesystem::rename(rename->to, rename->from, gone);
    if (gone) continue;
    if (const auto moved = files_.extract(rename->to)) files_[rename->from] = moved.mapped();
    if (!rename->replaced) continue;
    std::ofstream(rename->to, std::ios::binary) << *rename->replaced;
    files_[rename->to] = rename->replaced_fate;
  }
  for (const auto& [name, fate] : files_) {
    std::error_code gone;
    if (!fate.name_synced)
      std::filesystem::remove(name, gone);
    else if (std::filesystem::file_size(name, gone) > fate.synced_bytes && !gone)
      std::filesystem::resize_file(name, fate.synced_bytes);
  }
  files_.clear();
  renames_.clear();
  plan_ = {};
  frozen_ = false;
}

void fault_file_system::thaw() {
  const std::lock_guard entered(mutex_);
  files_.clear();
  renames_.clear();
  plan_ = {};
  frozen_ = false;
}

IOStatus fault_file_system::writable(const std::string& name, IOStatus opened,
                                     std::unique_ptr<rocksdb::FSWritableFile>* made, std::uint64_t bytes_before) {
  if (!opened.ok()) return opened;
  {
    const std::lock_guard entered(mutex_);
    if (bytes_before == 0) files_[name] = {};
  }
  made->reset(new written_file(std::move(*made), *this, name, bytes_before));
  return opened;
}

IOStatus fault_file_system::NewWritableFile(const std::string& name, const FileOptions& options,
                                            std::unique_ptr<rocksdb::FSWritableFile>* made, IODebugContext* debug) {
  if (const auto fault = next_write()) return trouble(*fault);
  return writable(name, FileSystemWrapper::NewWritableFile(name, options, made, debug), made, 0);
}

IOStatus fault_file_system::ReopenWritableFile(const std::string& name, const FileOptions& options,
                                               std::unique_ptr<rocksdb::FSWritableFile>* made, IODebugContext* debug) {
  if (const auto fault = next_write()) return trouble(*fault);
  std::error_code missing;
  const auto bytes = std::filesystem::file_size(name, missing);
  return writable(name, FileSystemWrapper::ReopenWritableFile(name, options, made, debug), made, missing ? 0 : bytes);
}

IOStatus fault_file_system::ReuseWritableFile(const std::string&, const std::string&, const FileOptions&,
                                              std::unique_ptr<rocksdb::FSWritableFile>*, IODebugContext*) {
  return IOStatus::NotSupported("files are not used again");
}

IOStatus fault_file_system::NewSequentialFile(const std::string& name, const FileOptions& options,
                                              std::unique_ptr<rocksdb::FSSequentialFile>* made, IODebugContext* debug) {
  const auto opened = FileSystemWrapper::NewSequentialFile(name, options, made, debug);
  if (opened.ok()) made->reset(new sequential_file(std::move(*made), *this));
  return opened;
}

IOStatus fault_file_system::NewRandomAccessFile(const std::string& name, const FileOptions& options,
                                                std::unique_ptr<rocksdb::FSRandomAccessFile>* made,
                                                IODebugContext* debug) {
  const auto opened = FileSystemWrapper::NewRandomAccessFile(name, options, made, debug);
  if (opened.ok()) made->reset(new random_file(std::move(*made), *this));
  return opened;
}

IOStatus fault_file_system::NewDirectory(const std::string& name, const IOOptions& options,
                                         std::unique_ptr<rocksdb::FSDirectory>* made, IODebugContext* debug) {
  const auto opened = FileSystemWrapper::NewDirectory(name, options, made, debug);
  if (opened.ok()) made->reset(new folder(std::move(*made), *this));
  return opened;
}

IOStatus fault_file_system::RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                                       IODebugContext* debug) {
  if (const auto fault = next_write()) return trouble(*fault);
  const std::lock_guard entered(mutex_);
  rename_fate fate{from, to, {}, {}};
  if (std::filesystem::exists(to)) {
    fate.replaced = test::content_of(to);
    const auto known = files_.find(to);
    fate.replaced_fate = known != files_.end() ? known->second : file_fate{fate.replaced->size(), true};
  }
  const auto done = FileSystemWrapper::RenameFile(from, to, options, debug);
  if (!done.ok()) return done;
  if (auto moved = files_.extract(from)) files_[to] = moved.mapped();
  renames_.push_back(std::move(fate));
  return done;
}

IOStatus fault_file_system::DeleteFile(const std::string& name, const IOOptions& options, IODebugContext* debug) {
  if (frozen_) return trouble(fault_kind::io_error);
  {
    const std::lock_guard entered(mutex_);
    files_.erase(name);
  }
  return FileSystemWrapper::DeleteFile(name, options, debug);
}

}  // namespace skein::test
