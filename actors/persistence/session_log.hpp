#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/persistence/session_tree.hpp"
#include "base/clock.hpp"
#include "storage/database.hpp"
#include "storage/records.hpp"
#include "storage/session_store.hpp"

namespace skein::persistence {

using storage::durability;
using storage::session_key;
using storage::session_record;
using storage::session_uid;
using storage::shared_version;
using storage::version_id;
using storage::version_record;

/// The log with a disk that may fail: then turns stay here, in order, up to a ceiling, and are written when the disk
/// takes writes again. Owned by the persistence actor.
class session_log {
 public:
  /// `unsaved_bytes_max`: of the turns that only memory holds.
  session_log(std::shared_ptr<storage::database> db, std::size_t unsaved_bytes_max)
      : db_(std::move(db)), store_(db_), unsaved_bytes_max_(unsaved_bytes_max) {}

  /// The session as it is now, and versions that are new. How safe they are; no_space: neither disk nor memory takes
  /// them, and nothing has changed.
  [[nodiscard]] result<durability> commit(const session_record& session, std::span<const shared_version> versions,
                                          durability wanted, steady_time now);
  /// As commit, but for what cannot wait in memory: the disk takes it, or its error is answered.
  [[nodiscard]] result<void> commit_to_disk(const session_record& session, std::span<const shared_version> versions,
                                            steady_time now);
  /// Likewise, for a session whose versions were staged; `replaced`: the one that had its name and goes with that.
  [[nodiscard]] result<void> commit_staged(const session_record& session, const session_record* replaced,
                                           steady_time now);
  /// The record alone: nothing of what was or is said changes. As commit_to_disk.
  [[nodiscard]] result<void> rewrite(const session_record& session, steady_time now);
  /// Best effort; nothing while the disk fails.
  void note_running(session_uid uid, const version_record& so_far);
  void forget_running(session_uid uid, version_id number);
  void forget_running(session_uid uid);
  /// Of a session with all that belongs to it.
  [[nodiscard]] result<void> remove(const session_record& session, steady_time now);
  /// Of versions.
  [[nodiscard]] result<void> remove_versions(const session_tree::removal& what, steady_time now);
  /// After a refusal: when the write failed, nobody knows whether the disk took it, and it may show when it is opened
  /// again. So what the session is, as far as the write may have changed it, is written again as soon as that is
  /// possible, without the version that was refused (if any). Nothing where the disk was not asked.
  void distrust(const session_record& session, std::span<const shared_version> versions, version_id refused);
  /// Likewise for a session that was to be made, where its name was another's (else null) with these versions: what
  /// there is of it is removed, also what was only in memory.
  void disown(const session_record& session, const session_record* named_so = nullptr,
              std::span<const shared_version> versions = {});
  /// The log has this session, and could not remove it: it does when it can.
  void remove_later(const session_record& session) { disowned_.push_back(session); }
  [[nodiscard]] session_uid new_uid();

  /// Whether writes fail at present; then reads still work.
  [[nodiscard]] bool failing() const { return failing_ || db_->failing(); }
  [[nodiscard]] bool on_disk() const { return db_->on_disk(); }
  /// Tries again, about every two seconds. The sessions that the log has in whole since now.
  [[nodiscard]] std::vector<session_uid> retry(steady_time now);
  [[nodiscard]] steady_time next_retry() const { return failing() ? next_retry_ : steady_time::max(); }

  [[nodiscard]] bool has_unsaved(session_uid uid) const { return unsaved_.contains(uid); }
  [[nodiscard]] std::size_t unsaved_bytes() const { return unsaved_bytes_; }
  [[nodiscard]] std::size_t unsaved_sessions() const { return unsaved_.size(); }
  /// Sessions as only memory has them.
  [[nodiscard]] std::vector<session_record> unsaved_records() const;

  [[nodiscard]] storage::session_store& store() { return store_; }
  [[nodiscard]] const storage::session_store& store() const { return store_; }

 private:
  struct unsaved {
    session_record session;
    std::vector<shared_version> versions;
    std::vector<version_id> refused;  // that the disk may have all the same
    std::size_t bytes = 0;
  };
  void fail(const error& why, session_uid whose, steady_time now);
  void keep(const session_record& session, std::span<const shared_version> versions, std::size_t bytes);

  std::shared_ptr<storage::database> db_;
  storage::session_store store_;
  std::size_t unsaved_bytes_max_;
  std::map<session_uid, unsaved> unsaved_;
  std::size_t unsaved_bytes_ = 0;
  session_uid doubtful_ = 0;  // whose write was the one that failed
  std::vector<session_record> disowned_;
  bool failing_ = false;
  steady_time next_retry_{};
};

}  // namespace skein::persistence
