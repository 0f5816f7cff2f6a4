#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "storage/database/database.hpp"
#include "storage/records/records.hpp"
#include "storage/records/state_shares.hpp"
#include "storage/records/stored_amount.hpp"
#include "storage/sessions/running_notes.hpp"
#include "storage/sessions/shared_states.hpp"
#include "storage/sessions/version_forks.hpp"

namespace skein::storage {

class change_list;
enum class safety : std::uint8_t;

/// Stores sessions in a database and makes turns durable. Every change is one WriteBatch. Reads verify magic, format
/// version and checksum. A record that fails is moved to the column family `quarantine`, the call returns
/// error_kind::damaged naming it, and no other record changes. Not thread safe; owned by the persistence actor.
/// Errors of writes: no_space, io. The write may have reached the disk nevertheless: then the database has it once it
/// is opened again, after a crash or by `database::probe`, and the caller writes again what should be there.
class session_store {
 public:
  /// Reads the lists of shared states, nothing else.
  explicit session_store(std::shared_ptr<database> db) : db_(std::move(db)), forks_(db_), states_(db_), notes_(db_) {}

  [[nodiscard]] result<std::optional<session_record>> find(const session_key& key);
  /// All versions of a session, by number.
  [[nodiscard]] result<std::vector<version_record>> versions(session_uid uid);
  /// Its turns that were noted but not committed, by number. Damaged notes are set aside and left out.
  [[nodiscard]] result<std::vector<running_turn>> running(session_uid uid) { return notes_.of(uid); }

  /// A page of a tenant's sessions ordered by id, after `after` (empty: from the first), at most `count`.
  /// Damaged entries are set aside and left out. Reads no version and no state.
  [[nodiscard]] result<std::vector<session_record>> list(const tenant_id& tenant, std::string_view after,
                                                         std::uint32_t count);

  /// All tenants with sessions. Reads one key per tenant.
  [[nodiscard]] result<std::vector<tenant_id>> tenants();

  /// What each tenant has stored. Reads the record of each session and leaves out damaged ones.
  [[nodiscard]] result<tenant_amounts> amounts();

  /// A number for a new session, never given out before, not even by an earlier process.
  [[nodiscard]] result<session_uid> new_uid();
  /// Lets a session share states of other sessions, whose versions it also has. Takes effect at once and is written
  /// with the session's next commit. Ends when the session is removed; `unshare` undoes it if the commit never happens.
  void share(session_uid borrower, std::vector<state_key> states) { states_.share(borrower, std::move(states)); }
  void unshare(session_uid borrower) { states_.unshare(borrower); }
  [[nodiscard]] const state_shares& shares() const { return states_.all(); }
  /// Makes a session the fork of another one, which is in the log and offers `version` and all versions before it,
  /// except `deleted` (ascending). No commit of the fork writes these versions. The fork is known at once, is written
  /// with its next commit, and ends with the session or, if no commit succeeded, with `unfork`.
  void fork(session_uid fork, session_uid from, version_id version, std::vector<version_id> deleted) {
    forks_.fork(fork, from, version, std::move(deleted));
  }
  void unfork(session_uid fork) { forks_.unfork(fork); }
  [[nodiscard]] const version_shares& forks() const { return forks_.shares(); }
  /// Deletes kept versions that no fork needs any more and that an earlier process could not delete.
  void trim_forks() { forks_.trim(); }
  /// Of these states of other sessions, those that no session would need without this one.
  [[nodiscard]] result<std::vector<state_key>> last_held(session_uid borrower, std::span<const state_key> states) {
    return states_.last_held(borrower, states, forks_);
  }
  /// Writes the session and the given versions and removes their running notes, atomically. `refused`: versions of
  /// failed turns, whose write may have reached the disk; they are removed. `replaced`: as for commit_staged.
  [[nodiscard]] result<void> commit(const session_record& session, std::span<const version_record> versions, bool sync,
                                    std::span<const version_id> refused = {});
  [[nodiscard]] result<void> commit_shared(const session_record& session, std::span<const shared_version> versions,
                                           bool sync, std::span<const version_id> refused = {},
                                           session_uid replaced = 0);
  /// Writes only the session's own record.
  [[nodiscard]] result<void> rewrite(const session_record& session);
  /// As commit, for a session whose versions were staged. Also removes the versions and running notes of the session
  /// that it replaces (`replaced`; 0: none); the states of that session are left to remove_contents.
  [[nodiscard]] result<void> commit_staged(const session_record& session, session_uid replaced = 0);
  /// Removes versions that earlier processes staged and did not commit.
  [[nodiscard]] result<void> drop_staged();
  /// Notes the progress of a running turn. Replaces the turn's previous note.
  [[nodiscard]] result<void> note_running(session_uid uid, const running_turn& turn) { return notes_.note(uid, turn); }
  [[nodiscard]] result<void> forget_running(session_uid uid, version_id number) { return notes_.forget(uid, number); }
  /// Removes all notes of a session.
  [[nodiscard]] result<void> forget_running(session_uid uid) { return notes_.forget(uid); }
  /// Removes the session, its versions, its running turns and its states, except states that other sessions share. Also
  /// removes states of other sessions that only it still shared.
  [[nodiscard]] result<void> remove(const session_record& session);
  /// Likewise, except the session's own record, for when another session has taken its name.
  [[nodiscard]] result<void> remove_contents(const session_record& session);
  /// Removes the versions `gone`, writes the versions `marked` (marked as deleted), and removes the states of all of
  /// them. `session` is the session's record after that.
  [[nodiscard]] result<void> remove_versions(const session_record& session, std::span<const version_id> gone,
                                             std::span<const version_record> marked);
  /// Frees the name of a session whose record was set aside; until then, requests for it fail as damaged, not as
  /// unknown.
  [[nodiscard]] result<void> forget_damaged(const session_key& key);

 private:
  using each_version = std::function<void(const std::function<void(const version_record&)>&)>;
  [[nodiscard]] result<void> commit_each(const session_record& session, const each_version& versions, bool sync,
                                         std::span<const version_id> refused, session_uid replaced);
  [[nodiscard]] result<void> write_session(const session_record& session, session_uid replaced, safety how,
                                           const std::function<void(change_list&)>& more);
  [[nodiscard]] result<void> remove(const session_record& session, bool with_record);

  std::shared_ptr<database> db_;
  version_forks forks_;
  shared_states states_;
  running_notes notes_;
  session_uid next_uid_ = 0, reserved_uids_end_ = 0;
};

/// Writes versions of a session before its commit, to keep the commit short. Writes in pieces, so that other writes can
/// run in between. Any thread.
[[nodiscard]] result<void> stage_versions(database& db, session_uid uid, std::span<const shared_version> versions);
/// Removes them again.
[[nodiscard]] result<void> unstage_versions(database& db, session_uid uid);

}  // namespace skein::storage
