#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "storage/database.hpp"
#include "storage/records.hpp"
#include "storage/state_shares.hpp"
#include "storage/stored_amount.hpp"

namespace skein::storage {

class change_list;
enum class safety : std::uint8_t;
struct state_entry;

/// The log of sessions in a database: what makes a turn durable. Every change is one WriteBatch. Reads check magic,
/// format version and checksum; a record that fails is moved to the column family `quarantine`, the call answers
/// error_kind::damaged naming it, and nothing else is touched. Not thread safe; owned by the persistence actor.
/// Errors of writes: no_space, io; then nothing was written.
class session_store {
 public:
  /// Reads what sessions share, and nothing else.
  explicit session_store(std::shared_ptr<database> db);

  [[nodiscard]] result<std::optional<session_record>> find(const session_key& key);
  /// All versions of a session, by number.
  [[nodiscard]] result<std::vector<version_record>> versions(session_uid uid);
  /// Its turns that were noted and not committed, by number. Damaged notes are set aside and left out.
  [[nodiscard]] result<std::vector<running_turn>> running(session_uid uid);

  /// A page of a tenant's sessions in order of their ids, after `after` (empty: from the first), at most `count`.
  /// Damaged entries are set aside and left out. Reads no version and no state.
  [[nodiscard]] result<std::vector<session_record>> list(const tenant_id& tenant, std::string_view after,
                                                         std::uint32_t count);

  /// Everybody who has a session here. Reads one key of each.
  [[nodiscard]] result<std::vector<tenant_id>> tenants();

  /// How much everybody has stored here. Reads the record of each session, and leaves out those that are damaged.
  [[nodiscard]] result<tenant_amounts> amounts();

  /// A number for a new session, never given out before, also by earlier processes.
  [[nodiscard]] result<session_uid> new_uid();
  /// States of other sessions that serve this one too: it has their versions. Known at once, written with its next
  /// commit, and gone with it, or with the second call when it came to no commit.
  void share(session_uid borrower, std::vector<state_key> states);
  void unshare(session_uid borrower);
  [[nodiscard]] const state_shares& shares() const { return shares_; }
  /// Of these states of others, those that nobody needs without this session.
  [[nodiscard]] result<std::vector<state_key>> last_held(session_uid borrower, std::span<const state_key> states);
  /// Writes the session and, if given, versions of it, and forgets the notes of these: all or nothing. `refused`: of
  /// turns that are none, but whose write may have reached the disk; those go.
  [[nodiscard]] result<void> commit(const session_record& session, std::span<const version_record> versions, bool sync,
                                    std::span<const version_id> refused = {});
  [[nodiscard]] result<void> commit_shared(const session_record& session, std::span<const shared_version> versions,
                                           bool sync, std::span<const version_id> refused = {});
  /// Only the record of a session.
  [[nodiscard]] result<void> rewrite(const session_record& session);
  /// As commit, for a session whose versions were staged. What a session that it replaces has in the log goes with
  /// that; its states are left to remove_contents. `replaced`: 0 for none.
  [[nodiscard]] result<void> commit_staged(const session_record& session, session_uid replaced = 0);
  /// Removes what was staged by earlier processes and not committed.
  [[nodiscard]] result<void> drop_staged();
  /// Notes how far a running turn has come. Replaces the note before of the turn with this number.
  [[nodiscard]] result<void> note_running(session_uid uid, const running_turn& turn);
  [[nodiscard]] result<void> forget_running(session_uid uid, version_id number);
  /// All notes of a session.
  [[nodiscard]] result<void> forget_running(session_uid uid);
  /// Removes the session, its versions, its running turns and its states, but for those that others share; and those
  /// of others that it was the last to share.
  [[nodiscard]] result<void> remove(const session_record& session);
  /// Likewise, but for the session's own record, where another session has taken its name.
  [[nodiscard]] result<void> remove_contents(const session_record& session);
  /// Removes versions, and marks others as deleted, with the states of all of them; `session` is as it is after that.
  [[nodiscard]] result<void> remove_versions(const session_record& session, std::span<const version_id> gone,
                                             std::span<const version_record> marked);
  /// A session whose record was set aside is answered as damaged, not as unknown, until this frees its name.
  [[nodiscard]] result<void> forget_damaged(const session_key& key);

 private:
  using each_version = std::function<void(const std::function<void(const version_record&)>&)>;
  [[nodiscard]] result<void> commit_each(const session_record& session, const each_version& versions, bool sync,
                                         std::span<const version_id> refused);
  [[nodiscard]] result<void> write_session(const session_record& session, safety how,
                                           const std::function<void(change_list&)>& more);
  [[nodiscard]] result<void> remove(const session_record& session, bool with_record);
  void load_shares();
  [[nodiscard]] result<std::vector<state_entry>> states_going(session_uid uid,
                                                              const std::function<bool(version_id)>& goes);

  std::shared_ptr<database> db_;
  state_shares shares_;
  std::set<session_uid> unwritten_shares_;
  session_uid next_uid_ = 0, reserved_uids_end_ = 0;
};

/// Writes versions of a session that nobody knows yet, so that its commit is short. In pieces, between which other
/// writes have their turn; on any thread.
[[nodiscard]] result<void> stage_versions(database& db, session_uid uid, std::span<const shared_version> versions);
/// Takes them back.
[[nodiscard]] result<void> unstage_versions(database& db, session_uid uid);

}  // namespace skein::storage
