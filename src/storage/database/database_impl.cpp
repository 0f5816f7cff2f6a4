#include "storage/database/database_impl.hpp"

#include <rocksdb/options.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/log/log.hpp"
#include "storage/database/log_damage.hpp"
#include "storage/database/log_repair.hpp"
#include "storage/database/rocksdb_options.hpp"
#include "storage/files/log_length.hpp"
#include "storage/files/plain_errors.hpp"
#include "storage/files/rocksdb_status.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/storage_keys.hpp"

namespace skein::storage {
namespace {

constexpr std::string_view probe_key = "probe";

rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
std::string_view view(const rocksdb::Slice& bytes) { return {bytes.data(), bytes.size()}; }

/// Creates the directory readable by its owner only: conversations are private.
result<void> make_directory(const std::string& path) {
  std::error_code failed;
  if (std::filesystem::create_directories(path, failed))
    std::filesystem::permissions(path, std::filesystem::perms::owner_all, failed);
  if (!failed) return {};
  return failed_at("cannot create the directory " + path, failed);
}

/// Checks that the directory holds no data of a database. If CURRENT is missing, RocksDB assumes that there is no
/// database, creates one and removes the files of the old one. A MANIFEST or an empty log without data is what an
/// interrupted start leaves.
result<void> holds_no_records(rocksdb::Env& env, const std::string& directory) {
  std::vector<std::string> names;
  if (!env.GetChildren(directory, &names).ok()) return {};
  const auto found = std::ranges::find_if(names, [&](const std::string& name) {
    std::uint64_t bytes = 0;
    const bool log = name.ends_with(".log") && env.GetFileSize(directory + '/' + name, &bytes).ok() && bytes > 0;
    return log || name.ends_with(".sst") || name.ends_with(".blob");
  });
  if (found == names.end()) return {};
  return error{error_kind::damaged,
               directory + "/CURRENT is missing, but the directory has files of a database (" + *found + ")",
               {}};
}

rocksdb::Env* environment_below(const database_options& wanted, rocksdb::Env* memory) {
  if (wanted.environment) return wanted.environment;
  return memory ? memory : rocksdb::Env::Default();
}

error closed() { return {error_kind::io, "the database could not be opened again after a failure", {}}; }

}  // namespace

std::string_view to_string(family of) {
  switch (of) {
    case family::meta: return "default";
    case family::sessions: return "sessions";
    case family::versions: return "versions";
    case family::running: return "running";
    case family::states: return "states";
    case family::prefixes: return "prefixes";
    case family::state_index: return "state_index";
    case family::quarantine: return "quarantine";
  }
  return "unknown";
}

void change_list::put(family where, std::string_view key, std::string_view value) {
  batch_.Put(handles_[static_cast<std::size_t>(where)], slice(key), slice(value));
}
void change_list::erase(family where, std::string_view key) {
  batch_.Delete(handles_[static_cast<std::size_t>(where)], slice(key));
}
database::impl::impl(const database_options& wanted)
    : options(wanted),
      directory(wanted.directory.empty() ? "/skein" : wanted.directory.string()),
      memory(wanted.directory.empty() && !wanted.environment ? rocksdb::NewMemEnv(rocksdb::Env::Default()) : nullptr),
      plain(with_plain_errors(environment_below(wanted, memory.get()))),
      env(plain.get()),
      failure(directory),
      opened_(directory) {
  if (memory) (void)memory->CreateDirIfMissing(directory);  // RocksDB warns if it has to create it
}

database::impl::~impl() { close(); }

void database::impl::close() {
  if (db) {
    for (auto*& handle : handles) {
      if (handle) db->DestroyColumnFamilyHandle(handle);
      handle = nullptr;
    }
    if (const auto closed = db->Close(); !closed.ok())
      log::warning("closing the database failed", {{"text", closed.ToString()}});
    db.reset();
  }
  writable = false;
  if (lock_) env->UnlockFile(std::exchange(lock_, nullptr));
}

result<void> database::impl::open() {
  const bool there = env->FileExists(directory + "/CURRENT").ok();
  std::error_code unseen;
  if (!there && !memory && !options.environment && !std::filesystem::exists(directory + "/CURRENT", unseen) && unseen)
    return error{error_kind::io, "looking into " + directory + ": " + unseen.message(), {}};
  if (!there && !memory)
    if (const auto free = holds_no_records(*env, directory); !free) return free.error();
  if (!there && (options.read_only || !options.create))
    return error{error_kind::missing_file, "there is no database in " + directory, {}};
  if (there) {
    if (const auto known = look_at_format(); !known) return known.error();
  } else if (memory == nullptr && !options.environment) {
    if (const auto made = make_directory(directory); !made) return made.error();
  }
  if (const auto opened = open_families(options.read_only, options.create); !opened) return opened.error();
  if (const auto known = check_format(); !known) {
    close();
    return known.error();
  }
  std::uint32_t count = 0;
  const auto counted =
      scan(family::quarantine, {}, {}, [&](std::string_view, std::string_view) { return ++count > 0; });
  ignore(counted, "records in quarantine need not be readable");
  records_set_aside = count;
  if (!damaged_log_) return {};
  auto lost = log_repair(*this, std::move(damaged_log_)).run();
  if (!lost) return lost.error();
  log_losses = std::move(*lost);
  return {};
}

/// Checks the format before any file can change: files of a newer program stay unchanged.
result<void> database::impl::look_at_format() {
  rocksdb::FileLock* lock = nullptr;
  const auto locked = env->LockFile(directory + "/LOCK", &lock);
  if (!locked.ok()) {
    auto why = from_status(locked, "opening " + directory);
    if (why.kind == error_kind::in_use)
      why.message = directory + " is in use by another process (" + locked.ToString() + ")";
    // A read-only file system has no locks, and no other process can write to it.
    if (!options.read_only || why.kind == error_kind::in_use) return why;
  }
  const auto lengths = check_log_lengths(*env, directory, !options.read_only);
  if (!lengths) {
    if (lock) env->UnlockFile(lock);
    return lengths.error();
  }
  // Fails if the log has any damage.
  auto status = open_to_look(rocksdb::WALRecoveryMode::kAbsoluteConsistency, nullptr);
  if (status.IsCorruption()) status = look_past_damage(status);
  result<void> known;
  if (!status.ok()) {
    known = from_status(status, "opening " + directory);
  } else {
    known = check_format();
    close();
  }
  if (lock && known && options.read_only)
    lock_ = lock;
  else if (lock)
    env->UnlockFile(lock);
  return known;
}

rocksdb::Status database::impl::open_to_look(rocksdb::WALRecoveryMode how, rocksdb::WalFilter* watcher) {
  rocksdb::DB* opened = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> one;
  auto settings = options_of_database(options, env, [](const rocksdb::Status&) {});
  settings.wal_recovery_mode = how;
  settings.wal_filter = watcher;
  auto descriptors = options_of_families(options);
  if (!watcher) descriptors.resize(1);  // the watcher gets the names of the open families
  auto status = rocksdb::DB::OpenForReadOnly(settings, directory, descriptors, &one, &opened);
  if (!status.ok()) return status;
  db.reset(opened);
  std::ranges::copy(one, handles.begin());
  return status;
}

/// Opens the database again as replay will: up to damage at the end of the log, past damage in the middle.
rocksdb::Status database::impl::look_past_damage(const rocksdb::Status& damage) {
  log_watcher all, first;
  const auto past = open_to_look(rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords, &all);
  close();
  auto before = open_to_look(rocksdb::WALRecoveryMode::kPointInTimeRecovery, &first);
  const bool in_its_middle = past.ok() && (!before.ok() || all.records() > first.records());
  if (!before.ok() && !past.ok()) return before;
  close();
  log::warning("the log of sessions is damaged", {{"directory", directory},
                                                  {"where", in_its_middle ? "in its middle" : "at its end"},
                                                  {"why", damage.ToString()}});
  const auto& watcher = in_its_middle ? all : first;
  damaged_log_ = std::make_unique<damaged_log>(remains_of_log(*env, directory), watcher.removed(), in_its_middle);
  return open_to_look(recovery_mode(), nullptr);
}

rocksdb::WALRecoveryMode database::impl::recovery_mode() const {
  return damaged_log_ && damaged_log_->in_its_middle ? rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords
                                                     : rocksdb::WALRecoveryMode::kPointInTimeRecovery;
}

result<std::uint64_t> database::impl::take_session_numbers(std::uint64_t count) {
  std::string bytes;
  const auto found = read(family::meta, keys::next_uid, [&](std::string_view value) { bytes = value; });
  if (!found) return found.error();
  std::uint64_t next = 1;
  if (*found) {
    const auto known = decode_number(bytes, record_kind::counter);
    if (!known) return known.error();
    next = *known;
  }
  const auto taken = write(safety::synced, [&](change_list& changes) {
    changes.put(family::meta, keys::next_uid, encode_number(record_kind::counter, next + count));
  });
  if (!taken) return taken.error();
  return next;
}

result<void> database::impl::check_format() {
  std::string record;
  const auto found = read(family::meta, keys::format, [&](std::string_view value) { record = value; });
  if (!found) return found.error();
  if (!*found) return start_format();
  const auto format = decode_number(record, record_kind::database_format);
  if (!format) return error{format.error().kind, directory + ": " + format.error().message, {}};
  if (*format < record_format || *format > database_format_with_forks)
    return error{error_kind::conflict,
                 directory + " has format " + std::to_string(*format) + "; this program reads formats up to " +
                     std::to_string(database_format_with_forks),
                 {}};
  return {};
}

/// For a new database, or one whose creation was interrupted: it has no records yet.
result<void> database::impl::start_format() {
  bool empty = true;
  for (const family of : {family::meta, family::sessions, family::versions, family::states}) {
    if (!handles[static_cast<std::size_t>(of)]) continue;  // when only the format is checked
    const auto looked = scan(of, {}, {}, [&](std::string_view, std::string_view) { return empty = false; });
    if (!looked) return looked.error();
  }
  if (!empty) return error{error_kind::conflict, directory + " has records, but no format record", {}};
  if (!writable) return {};
  return write(safety::synced, [](change_list& changes) {
    changes.put(family::meta, keys::format, encode_number(record_kind::database_format, record_format));
  });
}

/// `create`: creates the database if it is missing; never while it is in use, because clients still request its data.
result<void> database::impl::open_families(bool read_only, bool create) {
  auto settings = options_of_database(options, env, [this](const rocksdb::Status& why) { failure.begin(why); });
  settings.create_if_missing = settings.create_missing_column_families = create;
  settings.wal_recovery_mode = recovery_mode();
  const auto descriptors = options_of_families(options);
  rocksdb::DB* opened = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> all;
  rocksdb::Status status;
  if (read_only)
    status = rocksdb::DB::OpenForReadOnly(settings, directory, descriptors, &all, &opened);
  else if (create && !env->FileExists(directory + "/CURRENT").ok())
    status = make_database(settings, directory, descriptors, all, opened);
  else
    status = rocksdb::DB::Open(settings, directory, descriptors, &all, &opened);
  if (!status.ok()) {
    auto why = from_status(status, "opening " + directory);
    if (status.IsInvalidArgument())  // missing or unknown column families
      why.kind = error_kind::conflict;
    return why;
  }
  db.reset(opened);
  std::ranges::copy(all, handles.begin());
  writable = !read_only;
  if (writable && !memory) opened_.remember();
  return {};
}

result<void> database::impl::may_write() const {
  if (!db) return closed();
  if (failure.is_on()) return failure.why();
  if (!writable) return error{error_kind::io, directory + " is open read-only", {}};
  return {};
}

result<void> database::impl::write(safety how, const std::function<void(change_list&)>& changes) {
  const std::shared_lock entered(gate);
  const std::lock_guard alone(writing_);
  if (const auto may = may_write(); !may) return may.error();
  if (how != safety::buffered && !opened_.is_there())
    return failure.noted(rocksdb::Status::IOError("the directory was removed or replaced"), "writing to " + directory)
        .error();
  change_list list(handles);
  changes(list);
  rocksdb::WriteOptions wish;
  wish.sync = how == safety::synced;
  wish.disableWAL = how == safety::buffered;
  return failure.noted(db->Write(wish, &list.batch()), "writing to " + directory);
}

result<bool> database::impl::read(family where, std::string_view key, const std::function<void(std::string_view)>& use,
                                  bool verified) {
  const std::shared_lock entered(gate);
  if (!db) return closed();
  rocksdb::ReadOptions wish;
  wish.verify_checksums = verified;
  rocksdb::PinnableSlice value;
  const auto status = db->Get(wish, handles[static_cast<std::size_t>(where)], slice(key), &value);
  if (status.IsNotFound()) return false;
  if (!status.ok()) return from_status(status, "reading " + std::string(to_string(where)) + " of " + directory);
  use(view(value));
  return true;
}

result<void> database::impl::scan(family where, std::string_view first, std::string_view end,
                                  const std::function<bool(std::string_view, std::string_view)>& use) {
  const std::shared_lock entered(gate);
  if (!db) return closed();
  rocksdb::ReadOptions wish;
  const rocksdb::Slice bound = slice(end);
  if (!end.empty()) wish.iterate_upper_bound = &bound;
  wish.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> at(db->NewIterator(wish, handles[static_cast<std::size_t>(where)]));
  for (at->Seek(slice(first)); at->Valid(); at->Next())
    if (!use(view(at->key()), view(at->value()))) break;
  if (!at->status().ok())
    return from_status(at->status(), "reading " + std::string(to_string(where)) + " of " + directory);
  return {};
}

result<void> database::impl::flush(std::span<const family> of) {
  const std::shared_lock entered(gate);
  if (const auto may = may_write(); !may) return may.error();
  std::vector<rocksdb::ColumnFamilyHandle*> wanted;
  for (const family one : of) wanted.push_back(handles[static_cast<std::size_t>(one)]);
  if (of.empty()) wanted.assign(handles.begin(), handles.end());
  return failure.noted(db->Flush({}, wanted), "writing to " + directory);
}

std::uint64_t database::impl::buffered_bytes(family of) {
  const std::shared_lock entered(gate);
  std::uint64_t bytes = 0;
  if (db)
    db->GetIntProperty(handles[static_cast<std::size_t>(of)], rocksdb::DB::Properties::kCurSizeAllMemTables, &bytes);
  return bytes;
}

bool database::impl::probe() {
  const auto try_it = [&] {
    return write(safety::logged, [](change_list& changes) {
      changes.put(family::meta, probe_key, encode_number(record_kind::counter, 0));
    });
  };
  // After a failure RocksDB must be reopened; if that fails too, reads stop working. So test first whether it can
  // succeed.
  return try_it() || (disk_takes_writes() && open_again() && try_it());
}

bool database::impl::disk_takes_writes() {
  if (!opened_.is_there()) return false;  // files that are still open can be read
  const std::string name = directory + "/probe.tmp", bytes(1 << 20, 'x');
  const bool taken = rocksdb::WriteStringToFile(env, bytes, name, true).ok();
  return env->DeleteFile(name).ok() && taken;
}

bool database::impl::open_again() {
  const std::unique_lock alone(gate);
  if (options.read_only) return false;
  close();
  failure.end();
  const auto opened = open_families(false, false);
  if (opened && !failure.is_on()) return true;
  failure.resume();
  if (!opened) ignore(open_families(true, false), "reads continue if the database opens");
  return false;
}

}  // namespace skein::storage
