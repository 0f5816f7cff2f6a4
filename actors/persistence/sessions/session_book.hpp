#pragma once
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/persistence/sessions/session_tree.hpp"
#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "config/config.hpp"
#include "storage/records/stored_amount.hpp"

namespace skein::persistence {

using storage::session_uid;

/// A running turn, which holds a lease of its session.
struct running_writer {
  lease_id lease = 0;
  return_address owner;
  std::string request_key;
  version_id base = storage::beginning, number = 0;
  state_key key;                          ///< of the state after the turn
  steady_time deadline{};                 ///< for sending `opening`
  std::optional<session_opened> opening;  ///< the reply, while it waits for the state `awaits`
  state_key awaits;                       ///< the state that `opening` waits for
  steady_time patience{};                 ///< how long to wait for that state
  std::optional<state_buffer> state;      ///< of the device's state_kept for `key`, once that was sent; may be null
  std::optional<version_record> note;     ///< the answer so far, if not in the log yet
  std::uint64_t noted_tokens = 0;         ///< tokens of the answer that the log has
  steady_time noted_at{};
};

/// A state that the device is about to send.
struct expected_state {
  steady_time since{};
  std::uint64_t tokens = 0;  ///< that it has processed
};

/// Where a session in memory is in its life.
enum class session_phase : std::uint8_t {
  absent,       ///< it does not exist; turns may wait to make it
  provisional,  ///< its first turns are running; it is dropped if all of them fail
  stored,       ///< it exists: a turn was committed, or it was created without one
  removing      ///< it is being removed: turns wait
};

/// A session in memory, in use or cached. Its phase says whether it exists; every change of the phase is checked.
struct open_entry {
  session_key key;
  session_uid uid = 0;                         ///< 0: none yet
  std::optional<session_tree> tree;            ///< none: the session is absent
  bool in_log = false;                         ///< the log has a record of it
  bool unsaved = false;                        ///< the log does not have all of it
  std::map<lease_id, running_writer> writers;  ///< in starting order, which is the order of their numbers
  std::deque<open_session> waiting;
  std::map<state_key, expected_state> expected;  ///< of committed versions
  std::size_t counted_bytes = 0;                 ///< of the tree, as the book last counted it
  storage::stored_amount stored;                 ///< its part of the tenant's stored amount

  [[nodiscard]] session_phase phase() const { return phase_; }
  [[nodiscard]] bool provisional() const { return phase_ == session_phase::provisional; }
  [[nodiscard]] bool removing() const { return phase_ == session_phase::removing; }
  /// It has committed turns or was created without one; perhaps it is being removed.
  [[nodiscard]] bool exists() const { return tree && !provisional(); }
  [[nodiscard]] bool busy() const { return !writers.empty() || removing(); }
  /// Whether a turn with this request key runs.
  [[nodiscard]] bool answers(std::string_view request_key) const;
  /// Whether it must stay in memory.
  [[nodiscard]] bool needed() const { return busy() || unsaved || !waiting.empty() || !expected.empty(); }

  // ---- changes of the phase ----
  /// absent to provisional: its first turn begins.
  void begin(session_tree first);
  /// absent to stored: it was read from the log, forked, imported or created.
  void hold(session_tree whole);
  /// provisional to stored, or stored as before: a turn was committed.
  void confirm();
  /// To removing.
  void begin_removal();
  /// From removing, back to the phase before.
  void end_removal();
  /// To absent: without its content. Call when no turn runs.
  void drop();

 private:
  session_phase phase_ = session_phase::absent;
  session_phase before_removal_ = session_phase::absent;
};

/// The sessions in memory: which turns run, which turns wait, and which trees stay when memory is short. A tree that is
/// needed is never dropped. Entries have fixed addresses until they are dropped.
///
/// A turn may start while other turns of its session run, up to writers_max, if its starting point does not depend on
/// them: it names an existing version, or a turn by its key, and does not expect a certain head. All other turns start
/// alone, that is, they wait until no turn of the session runs: a turn that continues the head or searches the session
/// for its history; one that expects a head; one that names a missing version, which may be a running answer; and one
/// with the request key of a running turn, whose answer it then gets. Other turns may start beside any running turn.
/// Turns start in the order in which they arrived.
///
/// A turn gets its version number when it starts, and a finished turn becomes the head if its number is above the
/// head's. So the session ends up as if its turns had run one after another in the order of their numbers, whatever
/// the order in which they end; and a turn that starts alone sees the results of all turns before it.
class session_book {
 public:
  explicit session_book(const config::session_settings& options) : options_(options) {}

  /// Null: not in memory.
  [[nodiscard]] open_entry* find(const session_key& key);
  [[nodiscard]] open_entry* find(session_uid uid);
  /// A turn and its session.
  struct place_of_turn {
    open_entry* entry = nullptr;       ///< null: there is no such turn
    running_writer* writer = nullptr;  ///< null: the turn was waiting
  };
  [[nodiscard]] place_of_turn find_lease(lease_id lease);
  /// Adds an entry that find() did not find.
  open_entry& add(open_entry entry);
  /// Call after setting the uid of an entry that had none.
  void numbered(open_entry& entry);
  /// Call after adding, changing or dropping the tree of an entry.
  void recount(open_entry& entry);
  /// Drops an entry that no turn needs. The session is read from the log when it is used again.
  void forget(const open_entry& entry) { drop(by_key_.at(entry.key)); }
  /// Drops the session's content; waiting turns stay.
  void forget_content(open_entry& entry);

  enum class place : std::uint8_t { free, waits, refused, full };
  /// Accepts a turn: `free` (it may start now), `waits` (it was queued), or `refused` or `full` (it is untouched).
  [[nodiscard]] place enter(open_entry& entry, open_session& question);
  running_writer& begin(open_entry& entry, const open_session& question, version_id base);
  /// Ends a lease. `committed`: its number is used; else a later turn may get the same number with another key.
  void end(open_entry& entry, lease_id lease, bool committed);
  /// The next waiting turn, if it may start now.
  [[nodiscard]] std::optional<open_session> next(open_entry& entry);

  /// Cancels the turn of this address: a waiting turn is removed; for a running one, the caller must end the lease.
  place_of_turn withdraw(const return_address& owner);
  /// Removes waiting turns whose deadline has passed; the turns behind them may then start.
  [[nodiscard]] std::vector<open_session> expire(steady_time now);
  /// The leases of all running turns.
  [[nodiscard]] std::vector<lease_id> running() const;
  /// Sessions for which turns wait.
  [[nodiscard]] std::vector<open_entry*> awaited();

  /// Drops entries that are not needed while trees exceed the budget, least recently used first.
  void tidy();

  template <typename Visit>
  void for_each(Visit visit) {
    for (auto& entry : recent_) visit(entry);
  }
  [[nodiscard]] std::size_t tree_bytes() const { return tree_bytes_; }
  [[nodiscard]] std::uint32_t leases() const { return static_cast<std::uint32_t>(by_lease_.size()); }
  [[nodiscard]] std::uint32_t waiters() const { return waiters_; }
  [[nodiscard]] std::uint32_t entries() const { return static_cast<std::uint32_t>(recent_.size()); }
  /// Checks the invariants between calls; describes the first one that is violated.
  [[nodiscard]] std::optional<std::string> self_check() const;

 private:
  using place_in_list = std::list<open_entry>::iterator;
  void touch(place_in_list at);
  void drop(place_in_list at);
  [[nodiscard]] bool may_begin(const open_entry& entry, const open_session& question) const;

  config::session_settings options_;
  std::list<open_entry> recent_;  // most recently used first
  std::map<session_key, place_in_list> by_key_;
  std::unordered_map<session_uid, place_in_list> by_uid_;
  std::map<lease_id, place_in_list> by_lease_;
  std::map<session_key, place_in_list> crowded_;  // sessions with waiting turns
  // The device may still send a state for a failed turn, whose number a later turn may get. So the upper half of a
  // key's number is the count of turns that failed before.
  std::uint32_t failures_ = 0;
  lease_id last_lease_ = 0;
  std::size_t tree_bytes_ = 0;
  std::uint32_t waiters_ = 0;
};

}  // namespace skein::persistence
