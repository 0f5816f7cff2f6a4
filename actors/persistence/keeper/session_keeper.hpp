#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "actors/persistence/keeper/persistence_options.hpp"
#include "actors/persistence/sessions/session_book.hpp"
#include "actors/persistence/sessions/session_log.hpp"
#include "actors/persistence/sessions/tenant_quota.hpp"
#include "actors/persistence/sessions/turn_start.hpp"
#include "actors/persistence/shared/persistence_counters.hpp"
#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "actors/persistence/states/tier_mover.hpp"

namespace skein::persistence {

struct imported_session;

/// Services that a keeper uses; all of them outlive it.
struct keeper_ports {
  std::shared_ptr<storage::database> db;
  std::shared_ptr<storage::state_store> states;
  job_runner& runner;
  reply_sink& replies;
  const clock& time;
  wall_clock wall;
  /// Tells the device to drop the slots it keeps for a session; false: its mailbox is full.
  std::function<bool(session_uid)> forget_slots;
};

/// The sessions of the persistence actor, without a thread of its own: turns, the log, states in their tiers, and
/// administration. Replies go to the reply_sink at once or after a job. Tests step it by hand.
class session_keeper {
 public:
  session_keeper(const persistence_options& options, keeper_ports ports, persistence_counters& counters);
  /// Takes over the sessions and states that earlier processes left on disk.
  void begin();

  // keeper_turns.cpp
  void handle(open_session&& q);
  void handle(note_running&& q);
  void handle(commit_turn&& q);
  void handle(release&& q);
  // keeper_files.cpp
  [[nodiscard]] std::size_t file_bytes(const session_tree& tree, const export_session& q) const;

  // keeper_states.cpp
  void handle(state_kept&& q);
  void handle(slot_kept&& q);
  void handle(slot_dropped&& q);
  // keeper_upkeep.cpp
  void handle(list_sessions&& q);
  void handle(describe_session&& q);
  void handle(fork_session&& q);
  void handle(rollback_session&& q);
  void handle(remove_session&& q);
  void handle(tiers_status&& q);
  // keeper_labels.cpp
  void handle(label_session&& q);

  // keeper_files.cpp
  void handle(export_session&& q);
  void handle(import_session&& q);

  /// Periodic work: deadlines, notes, write-behind, retries. Call after handling messages and at next_wake().
  void tick();
  [[nodiscard]] steady_time next_wake() const;
  /// Writes all dirty data; true if none is left or none can be written.
  [[nodiscard]] bool flush();
  void publish() const;
  /// Thread-safe.
  void change(const config::session_settings& limits) { quota_.change(limits); }
  [[nodiscard]] std::optional<std::string> self_check() const;
  [[nodiscard]] bool disk_works() const { return log_.on_disk() && !log_.failing(); }

 private:
  using answer_to = return_address;
  /// A removal that waits for pending writes of its sessions' states.
  struct removal;

  // keeper_turns.cpp
  [[nodiscard]] result<open_entry*> entry_of(const session_key& key);
  void recount(open_entry& entry);
  [[nodiscard]] result<void> restore(open_entry& entry);
  void recover_running(open_entry& entry);
  [[nodiscard]] bool recover(open_entry& entry, version_record broken);
  [[nodiscard]] std::optional<session_tree> fork_by_name(const session_key& key);
  void advance(open_entry& entry);
  [[nodiscard]] result<void> begin_turn(open_entry& entry, const open_session& question);
  [[nodiscard]] result<void> room_for_turn(const open_entry& entry) const;
  [[nodiscard]] result<turn_start> check_turn(const open_entry& entry, const open_session& q, bool known) const;
  [[nodiscard]] bool replay(const open_entry& entry, const open_session& question);
  void make_provisional(open_entry& entry);
  void write_note(open_entry& entry, running_writer& w);
  void write_notes(steady_time now);
  void fail_turn(open_entry& entry, const running_writer& w);
  void distrust(open_entry& entry, bool versions_too, version_id refused = storage::beginning);
  void committed(open_entry& entry, running_writer writer, std::uint64_t tokens);

  // session_keeper.cpp
  void look_for_largest(steady_time now);

  // keeper_states.cpp
  [[nodiscard]] tier_mover::write writer_of(const state_key& key, state_buffer state) const;
  [[nodiscard]] std::optional<state_key> state_of(session_uid owner, version_id version) const;
  [[nodiscard]] std::optional<state_key> expected_of(const open_entry& entry, version_id version);
  [[nodiscard]] session_record begin_fork(const open_entry& origin, version_id version, const session_key& as);
  [[nodiscard]] std::vector<state_key> states_before(const open_entry& entry, version_id version);
  void forget_content(open_entry& entry);
  void unshare(session_uid borrower);
  void forget_states(session_uid owner);
  [[nodiscard]] result<void> erase(const session_record& session);
  void forget_shared(std::span<const state_key> gone);
  void resolve(open_entry& entry, running_writer& w);
  void give_state(const open_entry& entry, running_writer& w, version_id from, const state_key& key,
                  state_buffer state);
  void put_state(const open_entry& entry, const state_key& key, state_buffer state, std::uint64_t tokens);
  void resolve_waiting(const state_key& key);
  void check_openings(steady_time now);
  void forget_expected(steady_time now);

  // keeper_files.cpp
  [[nodiscard]] result<void> take_in(const import_session& q, imported_session&& in);
  void unstage(session_uid uid);
  void replace_content(open_entry& entry);

  // keeper_upkeep.cpp
  [[nodiscard]] listed_session listed(session_record record) const;
  [[nodiscard]] result<std::vector<session_record>> all_sessions(const tenant_id& tenant, std::string_view after,
                                                                 std::uint32_t count);
  [[nodiscard]] result<open_entry*> free_for_fork(const session_key& name);
  [[nodiscard]] result<void> erase_damaged(const session_key& key);
  void remove_branch(const remove_session& q, open_entry& entry, version_id version);
  void finish_branch(answer_to to, session_uid owner, version_id version);
  void begin_removal(removal r);
  void finish_removal(const removal& r);
  [[nodiscard]] bool clock_is_sound(steady_time now);
  void age_out();
  void forget_slots(session_uid gone);
  void repeat_forget();
  void give_back_space();
  void shelve(const session_record& record);
  void unshelve(session_uid uid);
  void saved(session_uid uid);
  void trim_shelf();

  void refuse(const return_address& to, error why);
  void deliver(reply r) { ports_.replies.deliver(std::move(r)); }

  const persistence_options options_;
  keeper_ports ports_;
  persistence_counters& counters_;
  session_log log_;
  session_book book_;
  tenant_quota quota_;
  tier_mover tiers_;
  std::set<tenant_id> tenants_{default_tenant};
  std::vector<session_uid> unforgotten_;  // removed sessions that could not be sent to the device yet
  std::uint64_t sessions_removed_ = 0, removals_flushed_ = 0;
  // Without a disk: sessions by last use, to limit the memory they take.
  struct shelved {
    session_uid uid;
    session_key key;
    std::uint64_t bytes;
  };
  std::list<shelved> shelf_;  // least recently used first
  std::map<session_uid, std::list<shelved>::iterator> on_shelf_;
  std::uint64_t shelf_bytes_ = 0;
  steady_time next_check_{}, next_age_check_{}, next_quota_look_{};
  std::optional<session_key> aging_;  // the last session whose age was checked; none: no check is in progress
  struct {
    steady_time at{};
    std::int64_t ms = 0;
  } last_look_;  // last reading of both clocks
  steady_time clock_sound_from_{};
};

/// Copies the counts of `tiers` to the counters; `now` gives the age of the oldest dirty state.
void publish_tier(const tier_mover& tiers, steady_time now, tier_counters& to);

}  // namespace skein::persistence
