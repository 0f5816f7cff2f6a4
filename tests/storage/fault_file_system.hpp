#pragma once
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/system_clock.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace skein::test {

/// What goes wrong with a file.
enum class fault_kind : std::uint8_t {
  io_error,     ///< the operation does nothing and fails
  no_space,     ///< likewise, as on a full disk
  short_write,  ///< the first half is written, then it fails
  flipped_bit,  ///< of reads: one bit of the data is wrong, without an error
};

/// When: the `first`-th operation that can go wrong so (from 1), and for how many operations it stays so.
struct fault_plan {
  fault_kind kind = fault_kind::io_error;
  bool reads = false;       ///< reads in place of writes, syncs, creations and renames
  std::uint64_t first = 0;  ///< 0: never
  std::uint64_t count = 1;
};

/// The machine's files, with faults. It knows what a power cut would leave: what was synced, in files and names whose
/// folder was synced. Nothing is ever really synced, which would only take time. Thread safe.
class fault_file_system final : public rocksdb::FileSystemWrapper {
 public:
  fault_file_system() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "fault_file_system"; }

  void plan(const fault_plan& plan);
  /// No faults any more.
  void heal();
  /// How many faults there were.
  [[nodiscard]] std::uint64_t faults() const { return faults_; }

  /// From now on nothing reaches the files, as if the process had been killed.
  void freeze() { frozen_ = true; }
  /// After the database was destroyed: the files become what a power cut leaves. A fault ends here.
  void cut_power();
  /// After a kill, or to start again: writes reach the files again, and all of them count as safe.
  void thaw();

  using Slice = rocksdb::Slice;
  using IOStatus = rocksdb::IOStatus;
  using IOOptions = rocksdb::IOOptions;
  using FileOptions = rocksdb::FileOptions;
  using IODebugContext = rocksdb::IODebugContext;
  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* made, IODebugContext* debug) override;
  IOStatus ReopenWritableFile(const std::string& name, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* made, IODebugContext* debug) override;
  IOStatus ReuseWritableFile(const std::string& name, const std::string& old, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSWritableFile>* made, IODebugContext* debug) override;
  IOStatus NewSequentialFile(const std::string& name, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* made, IODebugContext* debug) override;
  IOStatus NewRandomAccessFile(const std::string& name, const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* made, IODebugContext* debug) override;
  IOStatus NewDirectory(const std::string& name, const IOOptions& options, std::unique_ptr<rocksdb::FSDirectory>* made,
                        IODebugContext* debug) override;
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* debug) override;
  IOStatus DeleteFile(const std::string& name, const IOOptions& options, IODebugContext* debug) override;

  // For the files.
  /// What happens to the next write (or sync, ...): nothing or a fault. An error also when frozen.
  [[nodiscard]] std::optional<fault_kind> next_write();
  [[nodiscard]] std::optional<fault_kind> next_read();
  void synced(const std::string& name, std::uint64_t bytes);
  void folder_synced();

 private:
  struct file_fate {
    std::uint64_t synced_bytes = 0;
    bool name_synced = false;
  };
  struct rename_fate {
    std::string from, to;
    std::optional<std::string> replaced;  ///< the content that `to` had
    file_fate replaced_fate;
  };
  [[nodiscard]] std::optional<fault_kind> next(bool read);
  [[nodiscard]] IOStatus writable(const std::string& name, IOStatus opened,
                                  std::unique_ptr<rocksdb::FSWritableFile>* made, std::uint64_t bytes_before);

  std::atomic<bool> frozen_ = false;
  std::atomic<std::uint64_t> faults_ = 0;
  std::mutex mutex_;
  fault_plan plan_;
  std::uint64_t operations_ = 0;
  std::map<std::string, file_fate> files_;  ///< written since the last thaw
  std::vector<rename_fate> renames_;        ///< since the folder was synced
};

/// RocksDB sleeps for a second after each failure in the background; here that is a millisecond.
class hasty_clock final : public rocksdb::SystemClockWrapper {
 public:
  hasty_clock() : SystemClockWrapper(rocksdb::SystemClock::Default()) {}
  const char* Name() const override { return "hasty_clock"; }
  void SleepForMicroseconds(int us) override { SystemClockWrapper::SleepForMicroseconds(us / 1000); }
};

/// The machine's threads with such files and such a clock.
class fault_environment final : public rocksdb::EnvWrapper {
 public:
  explicit fault_environment(std::shared_ptr<fault_file_system> files) : EnvWrapper(rocksdb::Env::Default()) {
    file_system_ = std::move(files);
    system_clock_ = std::make_shared<hasty_clock>();
  }
};

}  // namespace skein::test
