#pragma once
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "storage/database/database.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/state_shares.hpp"
#include "storage/sessions/version_forks.hpp"

namespace skein::storage {

class change_list;

/// The states that forks share with other sessions in a database, for session_store. Each fork has a list of them in
/// the log. Decides which stored states go with a session or with some of its versions.
class shared_states {
 public:
  /// Reads the lists; damaged ones are set aside.
  explicit shared_states(std::shared_ptr<database> db);

  [[nodiscard]] const state_shares& all() const { return shares_; }

  /// Takes effect at once and is written with the session's next commit.
  void share(session_uid borrower, std::vector<state_key> states);
  void unshare(session_uid borrower);
  /// Adds to a commit of a session its list, if it is not written yet or may not be because a write failed.
  void add_to(change_list& changes, session_uid borrower) const;
  void added(session_uid borrower) { unwritten_.erase(borrower); }

  /// The deletion of a session.
  void erase_from(change_list& changes, session_uid borrower) const;
  void erased(session_uid borrower, bool written);

  using versions = std::function<bool(version_id)>;
  /// The list of a session without the states of versions that go.
  [[nodiscard]] std::vector<state_key> without(session_uid borrower, const versions& goes) const;
  /// Replaces the list of a session, if it has one.
  void add_to(change_list& changes, session_uid borrower, const std::vector<state_key>& less) const;
  void dropped(session_uid borrower, std::vector<state_key> less, bool written);

  /// Of these states of other sessions, those that no session would need without this one.
  [[nodiscard]] result<std::vector<state_key>> last_held(session_uid borrower, std::span<const state_key> states,
                                                         const version_forks& forks);
  /// The stored states to remove with versions of a session: its own that no session shares, and those of other
  /// sessions that only it still shared.
  [[nodiscard]] result<std::vector<state_entry>> going(session_uid uid, const versions& goes,
                                                       const version_forks& forks);

 private:
  void doubt(session_uid borrower);

  std::shared_ptr<database> db_;
  state_shares shares_;
  std::set<session_uid> unwritten_;  ///< sessions whose list must be written with the next commit
};

}  // namespace skein::storage
