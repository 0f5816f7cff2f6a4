#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/persistence/open/keeper_ports.hpp"
#include "actors/persistence/open/open_sessions.hpp"
#include "actors/persistence/open/reply_port.hpp"
#include "actors/persistence/open/session_shelf.hpp"
#include "actors/persistence/open/session_states.hpp"
#include "actors/persistence/sessions/session_book.hpp"
#include "actors/persistence/sessions/session_log.hpp"
#include "actors/persistence/sessions/tenant_quota.hpp"
#include "actors/persistence/turns/turn_keeper.hpp"

namespace skein::persistence {

/// Removes sessions and versions: on request, when they are too old, and without a disk when they take too much memory.
///
/// A removal has two steps. First the states are dropped from memory, so that no further write starts, and turns of the
/// session wait. When pending writes have ended, the session is removed from the log; else a state could be written
/// after its session was removed. Sessions with a common prefix are removed in pieces, so that other requests are
/// handled in between and few of them are in memory at a time.
class session_removal {
 public:
  /// The arguments outlive it. `shelf_bytes_max`: limit of the sessions on the shelf.
  session_removal(session_book& book, session_log& log, tenant_quota& quota, open_sessions& sessions,
                  session_states& states, session_shelf& shelf, turn_keeper& turns, const keeper_ports& ports,
                  reply_port& replies, std::size_t shelf_bytes_max)
      : book_(book),
        log_(log),
        quota_(quota),
        sessions_(sessions),
        states_(states),
        shelf_(shelf),
        turns_(turns),
        ports_(ports),
        replies_(replies),
        shelf_bytes_max_(shelf_bytes_max) {}

  void handle(remove_session&& q);
  /// Removes these sessions, which are in memory and not needed.
  void expire(std::vector<session_key> gone);
  /// Removes the least recently used sessions while those on the shelf exceed the limit.
  void trim_shelf();
  /// The session's name now belongs to another session: removes the old content once its pending state writes have
  /// ended.
  void replace_content(open_entry& entry);

  /// Sessions and versions removed so far.
  [[nodiscard]] std::uint64_t removed_count() const { return removed_count_; }

 private:
  /// A removal that waits for pending writes of its sessions' states.
  struct removal {
    std::vector<session_key> gone{};
    std::uint32_t count = 0;             // sessions that are removed already
    std::optional<return_address> to{};  // none: no client waits for the reply
    std::string prefix{};                // removed one piece after another: all whose names begin so; empty: no others
    session_key at{};                    // the last of them that was looked up
  };

  [[nodiscard]] result<void> take(const session_key& key, removal& r);
  void remove_prefixed(const remove_session& q);
  void remove_next(removal r);
  [[nodiscard]] bool remove_as_branch(const remove_session& q);
  [[nodiscard]] result<void> erase_damaged(const session_key& key);
  void remove_branch(const return_address& to, open_entry& entry, version_id version);
  void finish_branch(const return_address& to, session_uid owner, version_id version);
  void begin(removal r);
  void finish(removal r);

  session_book& book_;
  session_log& log_;
  tenant_quota& quota_;
  open_sessions& sessions_;
  session_states& states_;
  session_shelf& shelf_;
  turn_keeper& turns_;
  const keeper_ports& ports_;
  reply_port& replies_;
  const std::size_t shelf_bytes_max_;
  std::uint64_t removed_count_ = 0;
};

}  // namespace skein::persistence
