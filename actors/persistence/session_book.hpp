#pragma once
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "actors/persistence/persistence_mailbox.hpp"
#include "actors/persistence/session_tree.hpp"
#include "storage/stored_amount.hpp"

namespace skein::persistence {

using storage::session_uid;

struct session_book_options {
  std::size_t tree_bytes_max = std::size_t{64} << 20;  ///< of trees that nobody needs at present
  std::uint32_t writers_max = 8;                       ///< turns of one session that run at a time
  std::uint32_t waiters_max = 16;                      ///< turns that wait for one session
  bool wait_when_busy = true;                          ///< false: a turn that would have to wait is refused
};

/// A turn that runs: it holds a lease of its session.
struct running_writer {
  lease_id lease = 0;
  return_address owner;
  std::string request_key;
  version_id base = storage::beginning, number = 0;
  state_key key;                          ///< of the state that the turn leaves
  steady_time deadline{};                 ///< for the answer below
  std::optional<session_opened> opening;  ///< the answer, as long as a state that it needs is on its way
  state_key awaits;                       ///< that state
  steady_time patience{};                 ///< until then, if it comes from the device
  bool state_answered = false;            ///< the device has said what becomes of `key`
  state_buffer state;                     ///< what it said
  std::optional<version_record> note;     ///< how far the answer has come, if the log does not know
  std::uint64_t noted_tokens = 0;         ///< that the log knows
  steady_time noted_at{};
};

/// A session that somebody works with, or that stays in memory in case.
struct open_entry {
  session_key key;
  session_uid uid = 0;               ///< 0: none yet
  std::optional<session_tree> tree;  ///< none: there is no such session
  bool in_log = false;               ///< the log has a record of it
  bool provisional = false;          ///< the turns that run are to make it; goes with the last of them if all fail
  bool removing = false;             ///< it is about to go: turns wait
  bool unsaved = false;              ///< the log does not have all of it
  std::map<lease_id, running_writer> writers;  ///< in the order in which they began, which is that of their numbers
  std::deque<open_session> waiting;
  std::map<state_key, steady_time> expected;  ///< states of committed versions that the device is about to send
  std::size_t counted_bytes = 0;              ///< of the tree, as the book last counted it
  storage::stored_amount stored;              ///< as it counts in what its tenant has stored

  [[nodiscard]] bool busy() const { return !writers.empty() || removing; }
  /// Whether it must stay in memory.
  [[nodiscard]] bool needed() const { return busy() || unsaved || !waiting.empty() || !expected.empty(); }
};

/// The sessions in memory: which turns run, who waits, and which trees stay when memory is short. A tree that is needed
/// is never dropped. Entries have fixed addresses until they are dropped.
///
/// A turn runs beside others of its session, up to writers_max, when where it goes on hangs on none of them: it names a
/// version that is there, or a turn by its key, and expects nothing of the head. All others run alone at their
/// beginning, that is they wait until no turn runs: one that goes on at the head or looks for its history in the
/// session; one that expects a head; one that names what is not there, which may be an answer that runs; and one with
/// the request key of a turn that runs, whose answer it then gets. Once begun, any turn lets others run beside it.
/// Nobody overtakes: turns begin in the order in which they came.
///
/// A turn has its version's number from its beginning, and a finished one is the head if its number is above the
/// head's. So a session becomes what it would be if its turns had run one after another by their numbers, in whatever
/// order they end; and who runs alone at its beginning sees what all before it have made.
class session_book {
 public:
  explicit session_book(const session_book_options& options) : options_(options) {}

  /// Null: not in memory.
  [[nodiscard]] open_entry* find(const session_key& key);
  [[nodiscard]] open_entry* find(session_uid uid);
  /// A turn and its session.
  struct place_of_turn {
    open_entry* entry = nullptr;       ///< null: there is no such turn
    running_writer* writer = nullptr;  ///< null: it waited
  };
  [[nodiscard]] place_of_turn find_lease(lease_id lease);
  /// Adds what find() did not have.
  open_entry& add(open_entry entry);
  /// After `uid` was given to an entry that had none.
  void numbered(open_entry& entry);
  /// After the tree of an entry came, grew or went.
  void recount(open_entry& entry);
  /// The session is gone; who waits stays.
  void forget_content(open_entry& entry);

  enum class place : std::uint8_t { free, waits, refused, full };
  /// Takes a turn in: free (it may begin now), or it waits, or not (then it is untouched).
  [[nodiscard]] place enter(open_entry& entry, open_session& question);
  running_writer& begin(open_entry& entry, const open_session& question, version_id base);
  /// Ends a lease. `committed`: its number is used; else another turn may get the number, but with another key.
  void end(open_entry& entry, lease_id lease, bool committed);
  /// The next turn that waits, if it may begin now.
  [[nodiscard]] std::optional<open_session> next(open_entry& entry);

  /// Takes back the turn of this address: one that waited has gone, for one that runs the lease is to end.
  place_of_turn withdraw(const return_address& owner);
  /// Takes out the turns that waited until their deadline; those behind them may begin then.
  [[nodiscard]] std::vector<open_session> expire(steady_time now);
  /// Of all turns that run.
  [[nodiscard]] std::vector<lease_id> running() const;
  /// Sessions for which turns wait.
  [[nodiscard]] std::vector<open_entry*> awaited();

  /// Drops what nobody needs: entries without a session, and trees over the budget, least recently used first.
  void tidy();

  template <typename Visit>
  void for_each(Visit visit) {
    for (auto& entry : recent_) visit(entry);
  }
  [[nodiscard]] std::size_t tree_bytes() const { return tree_bytes_; }
  [[nodiscard]] std::uint32_t leases() const { return static_cast<std::uint32_t>(by_lease_.size()); }
  [[nodiscard]] std::uint32_t waiters() const { return waiters_; }
  [[nodiscard]] std::uint32_t entries() const { return static_cast<std::uint32_t>(recent_.size()); }
  /// What must hold between calls; a sentence for the first thing that does not.
  [[nodiscard]] std::optional<std::string> self_check() const;

 private:
  using place_in_list = std::list<open_entry>::iterator;
  void touch(place_in_list at);
  void drop(place_in_list at);
  [[nodiscard]] bool may_begin(const open_entry& entry, const open_session& question) const;

  session_book_options options_;
  std::list<open_entry> recent_;  // most recently used first
  std::map<session_key, place_in_list> by_key_;
  std::unordered_map<session_uid, place_in_list> by_uid_;
  std::map<lease_id, place_in_list> by_lease_;
  std::map<session_key, place_in_list> crowded_;  // those where turns wait
  // A turn that failed may have left a state on its way to us under its number, which another turn may get. So the
  // upper half of a key's number counts the turns that failed before.
  std::uint32_t failures_ = 0;
  lease_id last_lease_ = 0;
  std::size_t tree_bytes_ = 0;
  std::uint32_t waiters_ = 0;
};

}  // namespace skein::persistence
