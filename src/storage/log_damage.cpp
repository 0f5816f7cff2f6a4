#include "storage/log_damage.hpp"

#include <rocksdb/write_batch.h>

#include <algorithm>
#include <utility>

#include "storage/session_check.hpp"
#include "storage/storage_keys.hpp"

namespace skein::storage {
namespace {

// RocksDB's format of logs: blocks of 32 KiB; in them pieces of records, each behind a header of a checksum (4 bytes),
// its length (2 bytes) and a type.
constexpr std::size_t block_bytes = 32 << 10, header_bytes = 7;

/// What records consist of, one after another. A header that points out of its block costs the rest of it.
std::string pieces_of(std::string_view file) {
  std::string pieces;
  for (std::size_t block = 0; block < file.size(); block += block_bytes) {
    std::string_view rest = file.substr(block, block_bytes);
    while (rest.size() > header_bytes) {
      const std::size_t length = static_cast<std::uint8_t>(rest[4]) | static_cast<std::uint8_t>(rest[5]) << 8;
      rest.remove_prefix(header_bytes);
      if (length == 0 || length > rest.size()) break;
      pieces.append(rest.substr(0, length));
      rest.remove_prefix(length);
    }
  }
  return pieces;
}

/// Notes what a batch does to sessions.
class session_changes final : public rocksdb::WriteBatch::Handler {
 public:
  session_changes(std::uint32_t sessions, std::set<std::string>& removed) : sessions_(sessions), removed_(removed) {}
  rocksdb::Status PutCF(std::uint32_t where, const rocksdb::Slice& key, const rocksdb::Slice&) override {
    if (where == sessions_) removed_.erase(key.ToString());
    return {};
  }
  rocksdb::Status DeleteCF(std::uint32_t where, const rocksdb::Slice& key) override {
    if (where == sessions_) removed_.insert(key.ToString());
    return {};
  }
  void LogData(const rocksdb::Slice&) override {}

 private:
  std::uint32_t sessions_;
  std::set<std::string>& removed_;
};

/// Those that can be read; the others are found when somebody asks for them.
std::vector<version_record> versions_of(database::impl& db, session_uid uid) {
  std::vector<version_record> all;
  const std::string first = keys::of_number(uid);
  const auto looked = db.scan(family::versions, first, keys::after_all(first), [&](auto, std::string_view value) {
    if (auto version = decode_version(value, uid)) all.push_back(std::move(*version));
    return true;
  });
  ignore(looked, "what cannot be read is missing then");
  return all;
}

}  // namespace

void log_watcher::ColumnFamilyLogNumberMap(const std::map<std::uint32_t, std::uint64_t>&,
                                           const std::map<std::string, std::uint32_t>& numbers) {
  if (const auto found = numbers.find(std::string(to_string(family::sessions))); found != numbers.end())
    sessions_ = found->second;
}

rocksdb::WalFilter::WalProcessingOption log_watcher::LogRecordFound(unsigned long long, const std::string&,
                                                                    const rocksdb::WriteBatch& batch,
                                                                    rocksdb::WriteBatch*, bool*) {
  ++records_;
  session_changes handler(sessions_, removed_);
  (void)batch.Iterate(&handler);  // what is damaged in it, RocksDB says itself
  return WalProcessingOption::kContinueProcessing;
}

std::vector<found_session> sessions_in_log(rocksdb::Env& env, const std::string& directory) {
  std::vector<std::string> names;
  if (!env.GetChildren(directory, &names).ok()) return {};
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".log"); });
  std::ranges::sort(names);
  std::map<session_uid, found_session> last;
  const std::string mark = session_mark();
  for (const auto& name : names) {
    std::string file;
    if (!rocksdb::ReadFileToString(&env, directory + '/' + name, &file).ok()) continue;
    const std::string pieces = pieces_of(file);
    for (auto at = pieces.find(mark); at != pieces.npos; at = pieces.find(mark, at + 1))
      if (auto found = session_at(std::string_view(pieces).substr(at))) last[found->session.uid] = std::move(*found);
  }
  std::vector<found_session> all;
  for (auto& [uid, found] : last) all.push_back(std::move(found));
  return all;
}

result<std::vector<log_loss>> losses(database::impl& db, const std::vector<found_session>& written,
                                     const std::set<std::string>& removed) {
  std::map<session_uid, session_record> there;
  const auto looked = db.scan(family::sessions, {}, {}, [&](std::string_view, std::string_view value) {
    if (auto session = decode_session(value)) there[session->uid] = std::move(*session);
    return true;
  });
  if (!looked) return looked.error();
  std::vector<log_loss> all;
  const auto add = [&](const session_key& key, const session_record* now, std::string why) {
    all.push_back({key, now ? encode_session(*now) : std::string(),
                   std::move(why) + "; that was in a part of the log that is damaged"});
  };
  const auto lost = [&](const session_key& key, const session_record* now, const session_record& then) {
    const version_id kept = now ? now->last_version : beginning;
    add(key, now,
        "what was done to it after version " + std::to_string(kept) + " is lost" +
            (then.last_version > kept ? ", up to version " + std::to_string(then.last_version) : std::string()));
  };
  for (const auto& [then, whole] : written) {
    const auto same = there.find(then.uid);
    const auto named = std::ranges::find(
        there, then.key, [](const auto& one) -> auto& { return one.second.key; });
    if (same != there.end() && (!whole || same->second != then)) {
      lost(same->second.key, &same->second, then);
    } else if (same != there.end()) {  // its last turn is there; whether those before are
      const auto sound = check_session(same->second, versions_of(db, then.uid));
      if (!sound) add(then.key, &same->second, sound.error().message);
    }
    // Another has its name: made later, or one of both is written wrongly.
    if (same == there.end() && named != there.end() && !whole) lost(named->second.key, &named->second, then);
    if (same == there.end() && named == there.end() && !removed.contains(keys::of_session(then.key)))
      lost(then.key, nullptr, then);
  }
  return all;
}

}  // namespace skein::storage
