#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/persistence/sessions/session_tree.hpp"
#include "base/clock.hpp"
#include "storage/database/database.hpp"
#include "storage/records/records.hpp"
#include "storage/sessions/session_store.hpp"

namespace skein::persistence {

using storage::durability;
using storage::session_key;
using storage::session_record;
using storage::session_uid;
using storage::shared_version;
using storage::version_id;
using storage::version_record;

/// The log on a disk that may fail: while it fails, turns stay in memory, in order, up to a limit, and are written once
/// the disk accepts writes again. Owned by the persistence actor.
class session_log {
 public:
  /// `unsaved_bytes_max`: limit of turns that are only in memory.
  session_log(std::shared_ptr<storage::database> db, std::size_t unsaved_bytes_max)
      : db_(std::move(db)), store_(db_), unsaved_bytes_max_(unsaved_bytes_max) {}

  /// Writes the session's record and new versions; returns how durable they are. no_space: neither disk nor memory can
  /// take them, and nothing has changed.
  [[nodiscard]] result<durability> commit(const session_record& session, std::span<const shared_version> versions,
                                          durability wanted, steady_time now);
  /// Like commit, but never keeps data in memory: returns the error if the disk fails.
  [[nodiscard]] result<void> commit_to_disk(const session_record& session, std::span<const shared_version> versions,
                                            steady_time now);
  /// Like commit_to_disk, for a session with staged versions; `replaced`: the session that had its name, removed by the
  /// same write.
  [[nodiscard]] result<void> commit_staged(const session_record& session, const session_record* replaced,
                                           steady_time now);
  /// Writes the record alone, without versions. Like commit_to_disk.
  [[nodiscard]] result<void> rewrite(const session_record& session, steady_time now);
  /// Best effort; nothing while the disk fails.
  void note_running(session_uid uid, const version_record& so_far);
  void forget_running(session_uid uid, version_id number);
  void forget_running(session_uid uid);
  /// Removes a session and everything that belongs to it.
  [[nodiscard]] result<void> remove(const session_record& session, steady_time now);
  /// Removes versions of a session.
  [[nodiscard]] result<void> remove_versions(const session_tree::removal& what, steady_time now);
  /// Call after a refused write: a failed write may still be on disk and appear when the database is opened again. So
  /// the parts of the session that the write may have changed are written again once the disk works, without the
  /// refused version (if any). No effect if the disk was not written to.
  void distrust(const session_record& session, std::span<const shared_version> versions, version_id refused);
  /// Like distrust, for a session that was to be created: everything written of it is removed, from memory too.
  /// `named_so`: the session that has the name, with these versions; null: none.
  void disown(const session_record& session, const session_record* named_so = nullptr,
              std::span<const shared_version> versions = {});
  /// Removes a session once the disk works again.
  void remove_later(const session_record& session) { disowned_.push_back(session); }
  [[nodiscard]] session_uid new_uid();

  /// Whether writes fail at present; reads still work.
  [[nodiscard]] bool failing() const { return failing_ || db_->failing(); }
  [[nodiscard]] bool on_disk() const { return db_->on_disk(); }
  /// There is a disk, and writes to it work.
  [[nodiscard]] bool disk_works() const { return on_disk() && !failing(); }
  /// Retries about every two seconds. Returns the sessions that are now completely in the log.
  [[nodiscard]] std::vector<session_uid> retry(steady_time now);
  [[nodiscard]] steady_time next_retry() const { return failing() ? next_retry_ : steady_time::max(); }

  [[nodiscard]] bool has_unsaved(session_uid uid) const { return unsaved_.contains(uid); }
  [[nodiscard]] std::size_t unsaved_bytes() const { return unsaved_bytes_; }
  [[nodiscard]] std::size_t unsaved_sessions() const { return unsaved_.size(); }
  /// The records of sessions with turns that are only in memory.
  [[nodiscard]] std::vector<session_record> unsaved_records() const;

  [[nodiscard]] storage::session_store& store() { return store_; }
  [[nodiscard]] const storage::session_store& store() const { return store_; }

 private:
  struct unsaved {
    session_record session;
    std::vector<shared_version> versions;
    std::vector<version_id> refused;  // versions that may be on disk nevertheless
    std::size_t bytes = 0;
  };
  void fail(const error& why, session_uid whose, steady_time now);
  void keep(const session_record& session, std::span<const shared_version> versions, std::size_t bytes);

  std::shared_ptr<storage::database> db_;
  storage::session_store store_;
  std::size_t unsaved_bytes_max_;
  std::map<session_uid, unsaved> unsaved_;
  std::size_t unsaved_bytes_ = 0;
  session_uid doubtful_ = 0;  // the session whose write failed
  std::vector<session_record> disowned_;
  bool failing_ = false;
  steady_time next_retry_{};
};

}  // namespace skein::persistence
