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

namespace skein::persistence {

using storage::session_uid;

struct session_book_options {
  std::size_t tree_bytes_max = std::size_t{64} << 20;  ///< of trees that nobody needs at present
  std::uint32_t waiters_max = 16;                      ///< turns that wait for one session
  bool wait_when_busy = true;                          ///< false: a second turn is refused
};

/// A turn that holds its session's lease.
struct running_writer {
  lease_id lease = 0;
  return_address owner;
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
  bool provisional = false;          ///< the turn that runs is to make it; goes with that turn if it fails
  bool removing = false;             ///< it is about to go: turns wait
  bool unsaved = false;              ///< the log does not have all of it
  std::optional<running_writer> writer;
  std::deque<open_session> waiting;
  std::map<state_key, steady_time> expected;  ///< states of committed versions that the device is about to send
  std::size_t counted_bytes = 0;              ///< of the tree, as the book last counted it

  [[nodiscard]] bool busy() const { return writer || removing; }
  /// Whether it must stay in memory.
  [[nodiscard]] bool needed() const { return busy() || unsaved || !waiting.empty() || !expected.empty(); }
};

/// The sessions in memory: who may write to which, who waits, and which trees stay when memory is short. A tree that is
/// needed is never dropped. Entries have fixed addresses until they are dropped.
class session_book {
 public:
  explicit session_book(const session_book_options& options) : options_(options) {}

  /// Null: not in memory.
  [[nodiscard]] open_entry* find(const session_key& key);
  [[nodiscard]] open_entry* find(session_uid uid);
  /// Of a turn that holds a lease.
  [[nodiscard]] open_entry* find_lease(lease_id lease);
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
  /// Ends a lease. `committed`: its number is used; else the next turn gets the number, but another key.
  void end(open_entry& entry, bool committed);
  /// The next turn that waits, if the session is free.
  [[nodiscard]] std::optional<open_session> next(open_entry& entry);

  /// Takes back the turn of this address, waiting or opened but not committed. The entry of a lease that is to end.
  open_entry* withdraw(const return_address& owner);
  /// Takes out the turns that waited until their deadline.
  [[nodiscard]] std::vector<open_session> expire(steady_time now);
  /// All entries with a turn that runs.
  [[nodiscard]] std::vector<open_entry*> leased();

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
  [[nodiscard]] state_key key_for(session_uid uid, version_id number) const;

  session_book_options options_;
  std::list<open_entry> recent_;  // most recently used first
  std::map<session_key, place_in_list> by_key_;
  std::unordered_map<session_uid, place_in_list> by_uid_;
  std::unordered_map<lease_id, place_in_list> by_lease_;
  std::map<session_key, place_in_list> crowded_;  // those where turns wait
  // A turn that failed may have left a state on its way to us under its number. So the next turn with this number gets
  // another key: the upper half of the key's number counts the attempts.
  std::unordered_map<session_uid, std::uint32_t> attempts_;
  std::uint32_t first_attempt_ = 0;
  lease_id last_lease_ = 0;
  std::size_t tree_bytes_ = 0;
  std::uint32_t waiters_ = 0;
};

}  // namespace skein::persistence
