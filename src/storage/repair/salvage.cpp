#include "storage/repair/salvage.hpp"

#include <rocksdb/file_system.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table_properties.h>
#include <rocksdb/utilities/debug.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <tuple>
#include <utility>

#include "storage/database/log_damage.hpp"
#include "storage/database/rocksdb_options.hpp"
#include "storage/files/log_length.hpp"
#include "storage/files/plain_errors.hpp"
#include "storage/files/rocksdb_status.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/repair/read_around.hpp"

namespace skein::storage {
namespace {

namespace fs = std::filesystem;

/// Entry types in RocksDB's files.
constexpr int type_value = 1, type_blob = 17;

const std::string last_key(1024, '\xff');  ///< after all keys that we write

/// The name of a file in RocksDB's form.
std::string numbered(std::string number, const char* ending) {
  if (number.size() < 6) number.insert(0, 6 - number.size(), '0');
  return number + ending;
}

std::vector<fs::path> files_with(const fs::path& directory, const char* ending, std::error_code& failed) {
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(directory, failed))
    if (entry.path().extension() == ending) all.push_back(entry.path());
  std::ranges::sort(all);
  return all;
}

rocksdb::DBOptions settings_for(const fs::path& directory, rocksdb::Env& env, bool create) {
  database_options wanted;
  wanted.directory = directory;
  auto settings = options_of_database(wanted, &env, [](const rocksdb::Status&) {});
  settings.create_if_missing = settings.create_missing_column_families = create;
  return settings;
}

class silent_log final : public rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

class files_without_options final : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "files_without_options"; }
  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* made,
                                    rocksdb::IODebugContext* debug) override {
    if (fs::path(name).filename().string().starts_with("OPTIONS-")) return rocksdb::IOStatus::NotSupported();
    return FileSystemWrapper::NewWritableFile(name, options, made, debug);
  }
};

/// RocksDB works without its file of options, which it writes, reads back and compares as a whole for each new family:
/// with a family for each table, that takes most of the time of a repair.
class without_options final : public rocksdb::EnvWrapper {
 public:
  explicit without_options(rocksdb::Env* env) : EnvWrapper(env) {
    file_system_ = std::make_shared<files_without_options>(env->GetFileSystem());
    system_clock_ = env->GetSystemClock();
  }
};

/// Collects what RocksDB's repair drops from the log; it reports that only to its own log, as "Log #14: dropping 300
/// bytes; WHY".
class repair_log final : public rocksdb::Logger {
 public:
  explicit repair_log(std::vector<damaged_file>& into) : Logger(rocksdb::INFO_LEVEL), into_(into) {}
  using Logger::Logv;
  void Logv(rocksdb::InfoLogLevel, const char* format, va_list arguments) override { Logv(format, arguments); }
  void Logv(const char* format, va_list arguments) override {
    std::array<char, 512> line;
    if (std::vsnprintf(line.data(), line.size(), format, arguments) <= 0) return;
    std::string_view text = line.data();
    const auto at = text.find("Log #");
    if (at == text.npos) return;
    text.remove_prefix(at + 5);
    const auto end = text.find(": ");
    if (end == text.npos ||
        !(text.substr(end).starts_with(": dropping ") || text.substr(end).starts_with(": ignoring ")))
      return;
    into_.push_back({numbered(std::string(text.substr(0, end)), ".log"), std::string(text.substr(end + 2))});
  }

 private:
  std::vector<damaged_file>& into_;
};

/// Makes a hard link, or a copy if the file system has no links. RocksDB removes the files that it imports.
std::error_code link_to(const fs::path& file, const fs::path& link) {
  std::error_code failed;
  fs::create_hard_link(file, link, failed);
  if (failed) fs::copy_file(file, link, failed);
  return failed;
}

/// Whether `one` is a later form of a record than `other`, by their contents.
bool is_later(family where, std::string_view key, std::string_view one, std::string_view other) {
  if (where == family::sessions) {
    const auto age = [](const session_record& s) { return std::tuple(s.uid, s.last_version, s.used_ms); };
    const auto a = decode_session(one), b = decode_session(other);
    return a && (!b || age(*a) > age(*b));
  }
  if (where != family::state_index) return false;
  const state_key of{keys::number_at(key, 0), keys::number_at(key, 8)};
  const auto a = decode_entry(one, of), b = decode_entry(other, of);
  return a && (!b || a->complete > b->complete);
}

/// Iterates over a source in key order: the newest entry of each key, including deletions.
class cursor {
 public:
  cursor(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& handle) : db_(db), handle_(handle) { fill(""); }
  [[nodiscard]] const rocksdb::Status& status() const { return status_; }
  [[nodiscard]] const rocksdb::KeyVersion* now() const { return at_ < page_.size() ? &page_[at_] : nullptr; }
  void next() {
    const std::string key = page_[at_].user_key;
    while (at_ < page_.size() && page_[at_].user_key == key) ++at_;
    if (at_ == page_.size() && page_.size() == page_entries) fill(key + '\0');
  }

 private:
  static constexpr std::size_t page_entries = 32;
  void fill(const std::string& first) {
    page_.clear();
    at_ = 0;
    status_ = rocksdb::GetAllKeyVersions(&db_, &handle_, first, last_key, page_entries, &page_);
    if (!status_.ok()) page_.clear();
  }

  rocksdb::DB& db_;
  rocksdb::ColumnFamilyHandle& handle_;
  std::vector<rocksdb::KeyVersion> page_;
  std::size_t at_ = 0;
  rocksdb::Status status_;
};

}  // namespace

open_files::~open_files() {
  if (!db) return;
  for (auto* const one : handles) (void)db->DestroyColumnFamilyHandle(one);
  (void)db->Close();
}

salvage::salvage(const fs::path& directory, const fs::path& work)
    : directory_(directory),
      work_(work),
      env_(with_plain_errors(rocksdb::Env::Default())),
      env_of_tables_(std::make_unique<without_options>(env_.get())),
      options_(options_of_families({})) {}

result<std::unique_ptr<salvage>> salvage::open(const fs::path& directory, const fs::path& work) {
  std::unique_ptr<salvage> made(new salvage(directory, work));
  made->blobs_ = std::make_unique<blob_files>(directory);
  for (const auto& [file, why] : made->blobs_->damaged()) made->damaged_.push_back({file, why});
  for (const auto step : {&salvage::open_log, &salvage::open_tables, &salvage::read_small_blobs})
    if (const auto done = ((*made).*step)(); !done) return done.error();
  made->take_damaged();
  return made;
}

/// Converts the log's entries to tables, by RocksDB's repair of a database with only these logs. Works on copies,
/// because it corrects wrong lengths.
result<void> salvage::open_log() {
  const fs::path place = work_ / "log";
  std::error_code failed;
  for (const auto& each : {place, work_ / "seed", work_ / "tables"})
    if (fs::create_directories(each, failed); failed) return failed_at("making " + each.string(), failed);
  for (const auto& file : files_with(directory_, ".log", failed)) {
    fs::copy_file(file, place / file.filename(), failed);
    if (failed == std::errc::no_space_on_device) return failed_at("copying " + file.string(), failed);
    if (failed) damaged_.push_back({file.filename(), failed.message()});
  }
  if (const auto mended = check_log_lengths(*rocksdb::Env::Default(), place.string(), true); !mended)
    return mended.error();
  if (const auto seeded = seed_families(place); !seeded) return seeded.error();
  auto settings = settings_for(place, *env_, false);
  auto listening = settings;
  listening.info_log = std::make_shared<repair_log>(damaged_);
  listening.info_log_level = rocksdb::INFO_LEVEL;
  auto status = rocksdb::RepairDB(place.string(), listening, options_);
  for (const auto& [file, why] : damaged_)  // RocksDB goes on without the log for which the disk had no room
    if (auto full = from_status(rocksdb::Status::IOError(why), "reading " + file); full.kind == error_kind::no_space)
      return full;
  rocksdb::DB* opened = nullptr;
  if (status.ok()) status = rocksdb::DB::OpenForReadOnly(settings, place.string(), options_, &log_.handles, &opened);
  if (!status.ok()) return from_status(status, "reading the log of " + directory_.string());
  log_.db.reset(opened);
  for (std::size_t i = 0; i < families; ++i) sources_.push_back({static_cast<family>(i), opened, log_.handles[i]});
  return {};
}

/// RocksDB's repair knows only families that have a table, and drops the log's entries of others. So this makes a table
/// for each family, with a deletion of the empty key, which is never used.
result<void> salvage::seed_families(const fs::path& into) {
  const fs::path seed = work_ / "seed";
  {
    open_files made;
    rocksdb::DB* opened = nullptr;
    auto status = make_database(settings_for(seed, *env_, true), seed.string(), options_, made.handles, opened);
    if (!status.ok()) return from_status(status, "making " + seed.string());
    made.db.reset(opened);
    for (auto* const one : made.handles)
      if (status.ok()) status = opened->Delete({}, one, "");
    if (status.ok()) status = opened->Flush({}, made.handles);
    if (!status.ok()) return from_status(status, "making " + seed.string());
  }
  // File numbers that no log reaches: they are given out one by one.
  std::uint64_t number = std::uint64_t{1} << 40;
  std::error_code failed;
  for (const auto& file : files_with(seed, ".sst", failed)) {
    fs::rename(file, into / numbered(std::to_string(number++), ".sst"), failed);
    if (failed) return failed_at("moving " + file.string(), failed);
  }
  return {};
}

result<void> salvage::open_tables() {
  const fs::path place = work_ / "tables";
  rocksdb::DB* opened = nullptr;
  std::vector<rocksdb::ColumnFamilyDescriptor> only{options_[0]};
  auto settings = settings_for(place, *env_of_tables_, true);
  settings.info_log =
      std::make_shared<silent_log>();  // it warns about each foreign file, and about the missing options
  const auto status = rocksdb::DB::Open(settings, place.string(), only, &tables_.handles, &opened);
  if (!status.ok()) return from_status(status, "making " + place.string());
  tables_.db.reset(opened);
  std::error_code failed;
  for (const auto& file : files_with(directory_, ".sst", failed))
    if (const auto done = open_table(file); !done) return done;
  if (failed) return failed_at("listing " + directory_.string(), failed);
  return {};
}

/// Imports a table file as a family of its own if it is intact. A full disk is no damage: it ends the repair.
result<void> salvage::open_table(const fs::path& path) {
  const std::string name = path.filename();
  rocksdb::SstFileReader file{rocksdb::Options(rocksdb::DBOptions(), options_[0].options)};
  auto status = file.Open(path.string());
  const auto properties = status.ok() ? file.GetTableProperties() : nullptr;
  std::size_t of = 0;
  while (properties && of < families && properties->column_family_name != to_string(static_cast<family>(of))) ++of;
  if (!properties || of == families) {
    damaged_.push_back({name, status.ok() ? "its column family is unknown" : status.ToString()});
    return {};
  }
  const auto where = static_cast<family>(of);
  status = file.VerifyChecksum();
  if (status.ok()) {
    const auto failed = link_to(path, work_ / name);
    if (failed == std::errc::no_space_on_device) return failed_at("copying " + path.string(), failed);
    if (failed) status = rocksdb::Status::IOError("linking " + path.string(), failed.message());
  }
  if (status.ok()) {
    rocksdb::LiveFileMetaData meta;
    meta.column_family_name = name;
    meta.name = '/' + name;
    meta.db_path = work_.string();
    meta.level = 0;
    meta.smallest_seqno = 0;
    meta.largest_seqno = std::uint64_t{1} << 50;  // the file contains its real numbers; this is only an upper bound
    rocksdb::ExportImportFilesMetaData list;
    list.db_comparator_name = rocksdb::BytewiseComparator()->Name();
    list.files.push_back(meta);
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    rocksdb::ImportColumnFamilyOptions how;
    how.move_files = true;  // moves the link
    auto options = options_[of].options;
    options.disable_auto_compactions = true;
    status = tables_.db->CreateColumnFamilyWithImport(options, name, how, list, &handle);
    if (status.ok()) {
      tables_.handles.push_back(handle);
      sources_.push_back({where, tables_.db.get(), handle});
      return {};
    }
    if (auto why = from_status(status, "importing " + path.string()); why.kind == error_kind::no_space) return why;
  }
  damaged_.push_back({name, std::string(to_string(where)) + ": " + status.ToString()});
  for (auto& [key, value] : read_around_damage(file)) of_damaged_tables_.push_back({where, key, std::move(value)});
  return {};
}

void salvage::take_damaged() {
  for (auto& entry : std::exchange(of_damaged_tables_, {})) offer(entry.where, entry.key, std::move(entry.value));
  const auto left = remains_of_log(*rocksdb::Env::Default(), directory_.string());
  for (const auto& [uid, found] : left.sessions)
    if (found.whole) offer(family::sessions, keys::of_session(found.session.key), encode_session(found.session));
  for (const auto& [uid, versions] : left.versions)
    for (const auto& [id, version] : versions)
      offer(family::versions, keys::of_version(uid, id), encode_version(uid, version));
}

/// Keeps the record if it is the newest of its key.
void salvage::offer(family where, const std::string& key, std::string value) {
  std::optional<rocksdb::KeyVersion> known;
  for (const auto& one : sources_) {
    std::vector<rocksdb::KeyVersion> newest;
    if (one.of != where || !rocksdb::GetAllKeyVersions(one.db, one.handle, key, key, 1, &newest).ok()) continue;
    if (!newest.empty() && (!known || newest.front().sequence > known->sequence)) known = std::move(newest.front());
  }
  if (known && (known->type != type_value || !is_later(where, key, value, known->value))) return;
  auto& kept = left_out_[static_cast<std::size_t>(where)];
  const auto [at, is_new] = kept.try_emplace(key, value);
  if (!is_new && is_later(where, key, value, at->second)) at->second = std::move(value);
}

/// Visits the newest entry of each key, in order, except deletions.
result<void> salvage::each(family where, const entry_visitor& use) {
  std::vector<cursor> all;
  for (const auto& one : sources_)
    if (one.of == where) all.emplace_back(*one.db, *one.handle);
  for (;;) {
    const rocksdb::KeyVersion* newest = nullptr;
    for (const auto& one : all) {
      if (!one.status().ok()) return from_status(one.status(), "reading " + std::string(to_string(where)));
      const auto* const now = one.now();
      if (!now || (newest && now->user_key > newest->user_key)) continue;
      if (!newest || now->user_key < newest->user_key || now->sequence > newest->sequence) newest = now;
    }
    if (!newest) return {};
    if (newest->type == type_value || newest->type == type_blob) use(*newest);
    const std::string key = newest->user_key;
    for (auto& one : all)
      if (one.now() && one.now()->user_key == key) one.next();
  }
}

result<void> salvage::scan(family where, const visitor& use) {
  const auto& others = left_out_[static_cast<std::size_t>(where)];
  auto other = others.begin();
  const auto read = each(where, [&](const rocksdb::KeyVersion& entry) {
    for (; other != others.end() && other->first < entry.user_key; ++other) use(other->first, other->second);
    if (other == others.end() || other->first != entry.user_key) use(entry.user_key, entry.value);
  });
  for (; other != others.end(); ++other) use(other->first, other->second);
  return read;
}

/// There are few: the last parts of states, and whole states of small models.
result<void> salvage::read_small_blobs() {
  for (const family where : {family::states, family::prefixes}) {
    const auto read = each(where, [&](const rocksdb::KeyVersion& entry) {
      if (entry.type == type_value) small_blobs_[{where, entry.user_key}] = entry.value;
    });
    if (!read) return read;
  }
  return {};
}

std::optional<std::string> salvage::blob(family where, const std::string& key) {
  if (const auto small = small_blobs_.find({where, key}); small != small_blobs_.end()) return small->second;
  if (auto found = blobs_->read(where, key)) return found;
  const auto& others = left_out_[static_cast<std::size_t>(where)];
  if (const auto other = others.find(key); other != others.end()) return other->second;
  return {};
}

result<void> salvage::quarantine(const visitor& use) {
  const auto in_file = [&](const std::string& key) { return blobs_->read(family::quarantine, key); };
  const auto read = each(family::quarantine, [&](const rocksdb::KeyVersion& entry) {
    use(entry.user_key, entry.type == type_blob ? in_file(entry.user_key).value_or("") : entry.value);
  });
  for (const auto& [key, value] : left_out_[static_cast<std::size_t>(family::quarantine)])
    use(key, in_file(key).value_or(value));
  return read;
}

}  // namespace skein::storage
