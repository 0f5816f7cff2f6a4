#include "actors/persistence/keeper/session_keeper.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log/log.hpp"

namespace skein::persistence {
namespace {

using namespace std::chrono_literals;

constexpr auto check_pause = 20ms;  // between checks of deadlines, while turns run or wait
constexpr auto age_check_pause = 60s;

}  // namespace

session_keeper::session_keeper(const persistence_options& options, keeper_ports ports, persistence_counters& counters)
    : options_(options),
      ports_(std::move(ports)),
      counters_(counters),
      replies_(ports_.replies, counters),
      log_(ports_.db, options.sessions.unsaved_bytes_max),
      book_(options.sessions),
      quota_(options.sessions),
      tiers_(options.session_states, ports_.states, ports_.runner, ports_.time, ports_.wall,
             {[this](const state_key& key) { opening_.resolve_waiting(key); }, [](const state_key&) {},
              [this](const state_key& key, state_buffer state) { return writer_of(key, std::move(state)); }}),
      shelf_(log_.on_disk()),
      sessions_(book_, log_, quota_, tiers_.cache(), ports_, counters),
      states_(book_, log_, sessions_, tiers_, ports_),
      opening_(book_, log_, states_, tiers_, ports_, replies_, counters),
      turns_(book_, log_, quota_, sessions_, states_, shelf_, opening_, ports_, replies_, counters),
      removals_(book_, log_, quota_, sessions_, states_, shelf_, turns_, ports_, replies_,
                options_.sessions.unsaved_bytes_max),
      queries_(quota_, sessions_, states_, tiers_.cache(), ports_, replies_),
      changes_(book_, log_, quota_, sessions_, states_, shelf_, removals_, ports_, replies_),
      files_(options_, log_, quota_, sessions_, states_, tiers_.cache(), shelf_, removals_, ports_, replies_),
      aging_(log_, sessions_, removals_, ports_,
             static_cast<std::int64_t>(options_.sessions.session_age_max_s * 1000)) {}

tier_mover::write session_keeper::writer_of(const state_key& key, state_buffer state) const {
  const auto what = tiers_.cache().label_of(key);
  storage::state_label label{what.model, what.tenant, key, what.tokens};
  return [label = std::move(label), state = std::move(state)](storage::state_store& store) {
    return store.put(label, state->view());
  };
}

void session_keeper::begin() {
  counters_.on_disk = log_.on_disk();
  if (!log_.on_disk()) return;
  ignore(ports_.states->drop_incomplete(), "incomplete states are unreachable");
  ignore(log_.store().drop_staged(), "staged versions are unreachable");
  log_.store().trim_forks();
  sessions_.begin();
  look_for_largest(ports_.time.now());
  publish();  // even if no message arrives
  auto stored = ports_.states->list();
  if (!stored) {
    log::error("stored states cannot be listed; they will be rebuilt from tokens", {{"why", stored.error().message}});
    return;
  }
  sessions_.know_stored_tenants();  // session_aging checks their sessions
  std::ranges::sort(*stored, {}, &storage::stored_state::used_ms);
  for (const auto& state : *stored) tiers_.cache().found(state.key, state.bytes, state.used_ms);
}

void session_keeper::handle(commit_turn&& q) {
  if (turns_.commit(std::move(q))) removals_.trim_shelf();
}

// ---------------------------------------------------------------- periodic work

void session_keeper::tick() {
  const steady_time now = ports_.time.now();
  retry_log(now);
  tiers_.move(disk_works(), false);
  if (now < next_check_) return;
  next_check_ = now + check_pause;
  turns_.check_deadlines(now);
  states_.repeat_forget();
  book_.tidy();
  look_for_largest(now);
  if (now >= next_age_check_) {
    next_age_check_ = now + age_check_pause;
    states_.stop_expecting_old(now);
    give_back_space();
    aging_.begin_check(now);
  }
  aging_.step();
}

/// The log has these sessions completely again, so their states may be written too.
void session_keeper::retry_log(steady_time now) {
  for (const session_uid uid : log_.retry(now)) {
    open_entry* const entry = book_.find(uid);
    if (!entry) continue;
    entry->unsaved = false;
    entry->in_log = true;
    if (entry->tree) states_.may_write(*entry);
  }
}

/// Flushes the database after removals: deleted data takes space until the deletions are in files too.
void session_keeper::give_back_space() {
  const std::uint64_t removals = removals_.removed_count() + tiers_.moves().removals;
  if (!disk_works() || std::exchange(removals_flushed_, removals) == removals) return;
  ports_.runner.run([db = ports_.db]() -> aftermath {
    ignore(db->flush(), "the next write reports the failure");
    return [] {};
  });
}

steady_time session_keeper::next_wake() const {
  const bool hurry = book_.waiters() + book_.leases() > 0 || states_.must_repeat() || aging_.in_progress();
  const steady_time soon = hurry ? next_check_ : next_age_check_;
  const steady_time write =
      disk_works() ? tiers_.cache().next_write() : steady_time::max();  // on a failing disk it is always overdue
  return std::min({soon, log_.next_retry(), write});
}

bool session_keeper::flush() {
  turns_.write_notes();
  retry_log(ports_.time.now());
  if (!disk_works()) return tiers_.settled();
  tiers_.move(true, true);
  return tiers_.settled() && tiers_.cache().count().dirty == 0;
}

// ---------------------------------------------------------------- counters

/// Visits all tenants, so it runs at most once a second.
void session_keeper::look_for_largest(steady_time now) {
  if (now < next_quota_look_) return;
  next_quota_look_ = now + std::chrono::seconds(1);
  const stored_amount most = quota_.largest();
  counters_.largest_sessions = most.sessions;
  counters_.largest_versions = most.versions;
  counters_.largest_bytes = most.bytes;
}

void session_keeper::publish() const {
  publish_tier(tiers_, ports_.time.now(), counters_.sessions);
  counters_.tree_bytes = book_.tree_bytes();
  counters_.stored_sessions = quota_.total().sessions;
  counters_.stored_versions = quota_.total().versions;
  counters_.stored_bytes = quota_.total().bytes;
  counters_.open_sessions = book_.entries();
  counters_.leases = book_.leases();
  counters_.waiters = book_.waiters();
  counters_.unsaved_bytes = log_.unsaved_bytes();
  counters_.unsaved_sessions = static_cast<std::uint32_t>(log_.unsaved_sessions());
  counters_.disk_fails = log_.failing();
}

std::optional<std::string> session_keeper::self_check() const {
  if (auto wrong = book_.self_check()) return wrong;
  return tiers_.cache().self_check();
}

}  // namespace skein::persistence
