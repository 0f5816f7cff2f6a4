#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "storage/database/database.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/version_shares.hpp"

namespace skein::storage {

class change_list;

/// The versions that forks share with other sessions in a database, for session_store. The record of a fork names the
/// session and the version at which it begins; the fork does not write the versions before that. They belong to all
/// sessions that share them: when a session is deleted or drops versions, those that forks need stay until the last
/// such fork is deleted. A deleted session whose versions stay is a stem. A separate step (`trim`) finds the versions
/// that no fork needs; the deletion records it in its batch, and the next start repeats it after a crash.
class version_forks {
 public:
  /// Reads the records of forks; damaged ones are set aside.
  explicit version_forks(std::shared_ptr<database> db);

  [[nodiscard]] const version_shares& shares() const { return shares_; }
  /// Whether the session was deleted and its versions are only kept for forks.
  [[nodiscard]] bool is_stem(session_uid uid) const;
  /// The versions that a fork shares; empty for other sessions. Errors: as read_way.
  [[nodiscard]] result<std::vector<version_record>> inherited(session_uid uid);

  /// Adds a fork, which is known at once and written with its next commit. `from` has the version and offers all
  /// versions before it except `deleted` (ascending).
  void fork(session_uid fork, session_uid from, version_id version, std::vector<version_id> deleted);
  /// Removes a fork that was never committed.
  void unfork(session_uid fork);
  /// Adds to a commit of a session what is not written yet, or may not be because a write failed.
  void add_to(change_list& changes, session_uid uid);
  void added(session_uid uid);

  /// The deletion of a session and of the versions that it wrote, except those that forks need.
  struct leaving {
    session_uid uid = 0;
    bool stays = false;                 ///< it becomes a stem
    bool origin_due = false;            ///< its origin may keep fewer versions afterwards
    std::optional<fork_origin> origin;  ///< before the deletion
    std::vector<std::string> versions;  ///< keys of the versions to delete at once
  };
  [[nodiscard]] result<leaving> leave(session_uid uid);
  void add_to(change_list& changes, const leaving& gone) const;
  void left(const leaving& gone, bool written);

  /// The effect on shared versions when a session drops versions or marks them as deleted.
  struct dropping {
    session_uid uid = 0;
    std::optional<fork_origin> before, after;  ///< its origin; nullopt: unchanged
    bool origin_due = false;
    std::vector<version_record> kept;  ///< its own versions that stay for forks
    std::vector<version_id> gone;      ///< its own versions to delete
  };
  [[nodiscard]] result<dropping> drop(session_uid uid, std::span<const version_id> gone,
                                      std::span<const version_record> marked);
  void add_to(change_list& changes, const dropping& less) const;
  void dropped(const dropping& less, bool written);

  /// Deletes the versions that no fork needs any more. If a write fails, a later call or the next start does it.
  void trim();

 private:
  struct stem {
    bool session_lives = false;
  };
  struct cut;
  void load_origins(database::impl& db);
  [[nodiscard]] result<std::optional<fork_origin>> origin_of(session_uid uid);
  [[nodiscard]] bool needs_trim(const std::optional<fork_origin>& origin) const;
  void set_origin(session_uid uid, const std::optional<fork_origin>& origin);
  [[nodiscard]] result<void> trim(session_uid uid);
  [[nodiscard]] result<void> free_stem(session_uid uid);
  [[nodiscard]] result<cut> cut_of(session_uid uid, bool session_lives, const std::optional<fork_origin>& origin);
  [[nodiscard]] bool has_unwritten_forks(session_uid owner) const;

  std::shared_ptr<database> db_;
  version_shares shares_;
  std::map<session_uid, fork_origin> unwritten_;
  std::map<session_uid, stem> stems_;  ///< sessions that keep versions for forks
  std::set<session_uid> due_;          ///< those of them that may keep too many
  std::set<session_uid> doubtful_;     ///< sessions whose stem record is in doubt after a failed write
};

}  // namespace skein::storage
