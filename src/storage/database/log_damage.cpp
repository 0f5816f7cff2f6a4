#include "storage/database/log_damage.hpp"

#include <rocksdb/write_batch.h>

#include <algorithm>
#include <utility>

#include "storage/database/shared_way.hpp"
#include "storage/files/log_blocks.hpp"
#include "storage/records/session_check.hpp"
#include "storage/records/storage_keys.hpp"

namespace skein::storage {
namespace {

/// The concatenated fragments of all records. A header that points past the end of its block drops the rest of the
/// block.
std::string pieces_of(std::string_view file) {
  std::string pieces;
  for (std::size_t block = 0; block < file.size(); block += log_block_bytes) {
    std::string_view rest = file.substr(block, log_block_bytes);
    while (rest.size() > log_header_bytes) {
      const std::size_t length = header_at(rest).length;
      rest.remove_prefix(log_header_bytes);
      if (length == 0 || length > rest.size()) break;
      pieces.append(rest.substr(0, length));
      rest.remove_prefix(length);
    }
  }
  return pieces;
}

/// Tracks which sessions a batch removes or writes again.
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

template <typename Use>
void for_each_mark(std::string_view bytes, record_kind kind, Use use) {
  const std::string mark = mark_of(kind);
  for (auto at = bytes.find(mark); at != bytes.npos; at = bytes.find(mark, at + 1)) use(bytes.substr(at));
}

using versions_by_id = std::map<version_id, version_record>;

/// The readable versions; damaged ones are detected when a request reads them.
versions_by_id versions_of(database::impl& db, const version_shares& shares, session_uid uid) {
  versions_by_id all;
  for (auto& version : readable_versions(db, shares, uid)) all[version.id] = std::move(version);
  return all;
}

std::vector<version_record> as_list(const versions_by_id& versions) {
  std::vector<version_record> list;
  for (const auto& [id, version] : versions) list.push_back(version);
  return list;
}

/// Restores the session from the log if possible: only the damaged record is lost, but RocksDB also skips the records
/// after it in its block.
void mend(database::impl& db, const version_shares& shares, log_loss& loss, const session_record& then,
          versions_by_id versions, const log_remains& left) {
  const auto found = left.versions.find(then.uid);
  if (found != left.versions.end())
    for (const auto& [id, version] : found->second)
      if (id <= then.last_version && versions[id] != version) {
        versions[id] = version;
        loss.missing.push_back(version);
      }
  if (check_session(then, as_list(versions))) {
    loss.mended = then;
    return;
  }
  const auto origin = left.origins.find(then.uid);
  if (origin == left.origins.end() || shares.of(then.uid)) return;
  const auto way = read_way(db, shares, {origin->second.owner, origin->second.shown});
  if (!way) return;
  for (const auto& version : *way) versions[version.id] = version;
  if (!check_session(then, as_list(versions))) return;
  loss.mended = then;
  loss.origin = origin->second;
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
  (void)batch.Iterate(&handler);  // RocksDB reports damage in the batch itself
  return WalProcessingOption::kContinueProcessing;
}

log_remains remains_of_log(rocksdb::Env& env, const std::string& directory) {
  log_remains left;
  std::vector<std::string> names;
  if (!env.GetChildren(directory, &names).ok()) return left;
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".log"); });
  std::ranges::sort(names);
  const std::string folder = directory + '/';
  for (const auto& name : names) {
    std::string file;
    if (!rocksdb::ReadFileToString(&env, folder + name, &file).ok()) continue;
    const std::string all = pieces_of(file);
    for_each_mark(all, record_kind::session, [&](std::string_view rest) {
      if (auto found = session_at(rest)) left.sessions[found->session.uid] = std::move(*found);
    });
    for_each_mark(all, record_kind::fork_origin, [&](std::string_view rest) {
      if (auto found = origin_at(rest)) left.origins[found->fork] = std::move(found->origin);
    });
    for_each_mark(all, record_kind::version, [&](std::string_view rest) {
      if (auto found = version_at(rest)) left.versions[found->owner][found->version.id] = std::move(found->version);
    });
  }
  return left;
}

result<std::vector<log_loss>> losses(database::impl& db, const damaged_log& log) {
  std::map<session_uid, session_record> there;
  const auto looked = db.scan(family::sessions, {}, {}, [&](std::string_view, std::string_view value) {
    if (auto session = decode_session(value)) there[session->uid] = std::move(*session);
    return true;
  });
  if (!looked) return looked.error();
  const auto shares = read_shares(db);
  if (!shares) return shares.error();
  std::vector<log_loss> all;
  for (const auto& [uid, found] : log.remains.sessions) {
    const auto& [then, whole] = found;
    auto now = there.find(uid);
    if (now == there.end()) {
      // Another session has its name: created later, or one of the names or numbers is damaged.
      now = std::ranges::find(
          there, then.key, [](const auto& one) -> auto& { return one.second.key; });
      if (now != there.end() ? whole : log.removed.contains(keys::of_session(then.key))) continue;
    }
    const bool known = now != there.end();
    log_loss loss{known ? now->second : session_record(), known ? now->second.key : then.key, {}, {}, {}, {}};
    const auto& session = loss.session;
    auto versions = versions_of(db, *shares, uid);
    if (whole && session == then) {  // its last turn is there; check the earlier ones
      const auto sound = check_session(then, as_list(versions));
      if (sound) continue;
      loss.why = sound.error().message;
    } else {
      loss.why = "its changes after version " + std::to_string(session.last_version) + " are lost" +
                 (then.last_version > session.last_version ? ", up to version " + std::to_string(then.last_version)
                                                           : std::string());
    }
    loss.why += "; they were in a damaged part of the log";
    if (whole) mend(db, *shares, loss, then, std::move(versions), log.remains);
    all.push_back(std::move(loss));
  }
  return all;
}

}  // namespace skein::storage
