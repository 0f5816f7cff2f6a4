#include "storage/repair/repair.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>
#include <utility>

#include "storage/database/database.hpp"
#include "storage/files/rocksdb_status.hpp"
#include "storage/repair/recovery.hpp"
#include "storage/repair/salvage.hpp"

namespace skein::storage {
namespace {

namespace fs = std::filesystem;

/// Holds the database's lock so that no server starts meanwhile. The lock file is in the old database and moves aside
/// with it.
class directory_lock {
 public:
  explicit directory_lock(const fs::path& directory) {
    status_ = rocksdb::Env::Default()->LockFile((directory / "LOCK").string(), &lock_);
  }
  ~directory_lock() {
    if (lock_) (void)rocksdb::Env::Default()->UnlockFile(lock_);
  }
  directory_lock(const directory_lock&) = delete;  // one owner unlocks
  directory_lock& operator=(const directory_lock&) = delete;
  [[nodiscard]] const rocksdb::Status& status() const { return status_; }

 private:
  rocksdb::FileLock* lock_ = nullptr;
  rocksdb::Status status_;
};

/// The directory in which the new database is built. It contains only links and copies, so it may be removed at any
/// time.
class workplace {
 public:
  explicit workplace(fs::path path) : path_(std::move(path)) { remove(); }
  ~workplace() { remove(); }
  workplace(const workplace&) = delete;  // one owner removes it
  workplace& operator=(const workplace&) = delete;
  [[nodiscard]] fs::path remains() const { return path_ / "remains"; }
  [[nodiscard]] fs::path made() const { return path_ / "made"; }
  [[nodiscard]] result<void> make() const {
    if (std::error_code failed; !fs::create_directories(path_, failed) && failed)
      return failed_at("creating " + path_.string(), failed);
    return {};
  }

 private:
  void remove() const {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path path_;
};

result<void> check_space(const fs::path& directory) {
  std::error_code failed;
  std::uint64_t needed = 0;
  for (const auto& entry : fs::directory_iterator(directory, failed)) {
    std::error_code unknown;
    if (const auto bytes = entry.file_size(unknown); !unknown) needed += bytes;
  }
  const auto space = fs::space(directory, failed);
  if (failed || space.available >= needed) return {};
  return error{error_kind::no_space,
               "not enough space to repair " + directory.string() + ": " + std::to_string(needed) +
                   " bytes are needed, " + std::to_string(space.available) + " are free",
               {}};
}

/// "sessions.damaged-20261125T170000Z", with a number appended if that exists.
fs::path name_aside(const fs::path& directory) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32] = "";
  if (gmtime_r(&now, &parts)) (void)std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
  const std::string name = directory.string() + ".damaged-" + text;
  fs::path free = name;
  std::error_code unknown;
  for (int n = 2; fs::exists(free, unknown); ++n) free = name + '-' + std::to_string(n);
  return free;
}

/// Gives the new files to the old owner: the server may run as another user than the repair.
void give_to_owner_of(const fs::path& old, const fs::path& made) {
  struct stat owner {};
  if (::geteuid() != 0 || ::stat(old.c_str(), &owner) != 0) return;
  const auto give = [&](const fs::path& path) {
    if (::lchown(path.c_str(), owner.st_uid, owner.st_gid) != 0)
      return;  // the server reports it if it cannot read them
  };
  give(made);
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(made, failed)) give(entry.path());
}

void sync_directory(const fs::path& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)::fsync(fd);
  ::close(fd);
}

/// Swaps atomically if the file system can; otherwise a server could start in between, find no database and create a
/// new one.
result<void> replace(const fs::path& directory, const fs::path& made, const fs::path& aside) {
  const auto failure = [&] {
    return failed_at("replacing " + directory.string(), std::error_code(errno, std::generic_category()));
  };
  if (::rename(made.c_str(), aside.c_str()) != 0) return failure();
  if (::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, directory.c_str(), RENAME_EXCHANGE) == 0) return {};
  const bool in_two_steps = errno == EINVAL || errno == ENOSYS;
  auto why_not = failure();
  if (::rename(aside.c_str(), made.c_str()) != 0 || !in_two_steps) return why_not;
  if (::rename(directory.c_str(), aside.c_str()) != 0) return failure();
  if (::rename(made.c_str(), directory.c_str()) == 0) return {};
  auto why = failure();
  (void)::rename(aside.c_str(), directory.c_str());
  return why;
}

/// Why the database does not open; empty if it does. Errors: in_use, forbidden: then it must not be repaired.
result<std::string> trouble_of(const fs::path& directory) {
  const auto opened = database::open({.directory = directory, .create = false, .read_only = true});
  if (opened) return std::string();
  const auto& why = opened.error();
  if (why.kind == error_kind::in_use || why.kind == error_kind::forbidden) return why;
  return why.message;
}

/// Reads the damaged database and, if `write`, writes the intact records to work.made().
result<repair_report> recover(const fs::path& directory, const workplace& work, bool write) {
  repair_report report;
  if (const auto made = work.make(); !made) return made.error();
  auto remains = salvage::open(directory, work.remains());
  if (!remains) return remains.error();
  for (const auto& file : (*remains)->damaged()) report.files.push_back({file.name, file.why});
  std::shared_ptr<database> made;
  if (write) {
    auto opened = database::open({.directory = work.made()});
    if (!opened) return opened.error();
    made = std::move(*opened);
  }
  const auto done = recovery(**remains, made ? &made->internals() : nullptr, report).run();
  if (!done) return done.error();
  if (made)
    if (const auto flushed = made->flush(); !flushed) return flushed.error();
  return report;
}

/// Replaces the old database by the new one; returns the new path of the old one.
result<fs::path> swap_in(const fs::path& directory, const workplace& work) {
  give_to_owner_of(directory, work.made());
  sync_directory(work.made());
  fs::path aside = name_aside(directory);
  if (const auto done = replace(directory, work.made(), aside); !done) return done.error();
  sync_directory(directory.parent_path());
  return aside;
}

}  // namespace

result<repair_report> repair(const fs::path& state_directory, bool dry_run) {
  const fs::path directory = database_directory(state_directory);
  if (std::error_code unknown; !fs::is_directory(directory, unknown))
    return error{error_kind::missing_file, "there is no database in " + directory.string(), {}};
  const auto trouble = trouble_of(directory);
  if (!trouble) return trouble.error();
  const directory_lock lock(directory);
  if (!lock.status().ok()) return from_status(lock.status(), "opening " + directory.string());
  const fs::path place = directory.string() + ".repair";
  if (dry_run || trouble->empty()) {  // a database that opens may be sound; then nothing is written
    auto looked = recover(directory, workplace(place), false);
    if (looked) looked->trouble = *trouble;
    if (!looked || dry_run || looked->sound()) return looked;
  }
  if (const auto room = check_space(directory); !room) return room.error();
  const workplace work(place);
  auto report = recover(directory, work, true);
  if (!report) return report;
  report->trouble = *trouble;
  if (report->sessions + report->prefixes + report->set_aside == 0)
    return error{error_kind::damaged, "nothing in " + directory.string() + " can be read; it was not changed", {}};
  auto aside = swap_in(directory, work);
  if (!aside) return aside.error();
  report->aside = std::move(*aside);
  return report;
}

}  // namespace skein::storage
