// Finds the state from which a turn resumes, and takes the states that the device sends.
#include <chrono>
#include <utility>

#include "actors/persistence/keeper/session_keeper.hpp"
#include "base/check.hpp"

namespace skein::persistence {
namespace {

using namespace std::chrono_literals;

// How long a turn waits for a state from the device; after that its tokens are fed again.
constexpr auto device_patience = 10s;
// A state that the device has not sent after this time is not expected any more.
constexpr auto expected_max = 10min;
// A fork shares this number of the newest states, and a few earlier ones.
constexpr std::size_t states_shared_min = 32;

}  // namespace

/// The state of a version, made by the session itself or by one that it was forked from.
std::optional<state_key> session_keeper::state_of(session_uid owner, version_id version) const {
  if (auto own = tiers_.cache().find(owner, version)) return own;
  const auto shared = log_.store().shares().find(owner, version);
  return shared && tiers_.cache().readable(*shared) ? shared : std::nullopt;
}

/// Like state_of, for a state that the device is about to send.
std::optional<state_key> session_keeper::expected_of(const open_entry& entry, version_id version) {
  for (const auto& [key, since] : entry.expected)
    if (version_of(key) == version) return key;
  const auto shared = log_.store().shares().find(entry.uid, version);
  const open_entry* const maker = shared ? book_.find(shared->owner) : nullptr;
  return maker && maker->expected.contains(*shared) ? shared : std::nullopt;
}

/// The record of a new session that begins as another one up to `version`. It shares the existing states on that path
/// and, if the log contains them, the versions.
session_record session_keeper::begin_fork(const open_entry& origin, version_id version, const session_key& as) {
  session_record record = fork_record(*origin.tree, version, {log_.new_uid(), as}, ports_.wall());
  auto& store = log_.store();
  if (origin.in_log && !origin.unsaved)
    store.fork(record.uid, origin.uid, version, origin.tree->deleted_before(version));
  store.share(record.uid, states_before(origin, version));
  return record;
}

/// Existing or expected states on the path to a version: the newest ones, and earlier ones at doubling distances. That
/// bounds their number, and any version is rebuilt from them within the cost that thinning allows.
std::vector<state_key> session_keeper::states_before(const open_entry& entry, version_id version) {
  std::map<version_id, state_key> found;
  const auto take = [&](const state_key& key) {
    const version_id of = version_of(key);
    if (entry.tree->offers(of) && entry.tree->ways().leads_to(of, version)) found.try_emplace(of, key);
  };
  const auto& shared = log_.store().shares().of(entry.uid);
  for (const auto& key : tiers_.cache().states_of(entry.uid)) take(key);
  for (const auto& key : shared)
    if (tiers_.cache().readable(key)) take(key);
  for (const auto& [key, since] : entry.expected) take(key);
  for (const auto& key : shared)
    if (const auto* const maker = book_.find(key.owner); maker && maker->expected.contains(key)) take(key);
  std::vector<state_key> few;
  for (auto one = found.rbegin(); one != found.rend(); ++one)
    if (few.size() < states_shared_min || version - one->first >= 2 * (version - version_of(few.back())))
      few.push_back(one->second);
  return few;
}

/// Drops a session from memory, also one that was never committed.
void session_keeper::forget_content(open_entry& entry) {
  unshare(entry.uid);
  book_.forget_content(entry);
  recount(entry);
}

/// Ends the sharing of states by a session that was never committed. A state without another holder is erased, which
/// happens if the session's origin was deleted meanwhile.
void session_keeper::unshare(session_uid borrower) {
  const auto last = log_.store().last_held(borrower, log_.store().shares().of(borrower));
  log_.store().unshare(borrower);
  log_.store().unfork(borrower);
  if (!last) return;
  for (const auto& key : *last) {
    const open_entry* const maker = book_.find(key.owner);
    if (maker && maker->tree && maker->tree->offers(version_of(key))) continue;  // the disk does not have it yet
    tiers_.erase(key);
    forget_slots(key.owner);
  }
}

/// Drops the session's states from memory at once, so that no further write starts; states that others share stay.
void session_keeper::forget_states(session_uid owner) {
  const auto& shares = log_.store().shares();
  tiers_.cache().forget_owner(owner, [&](const state_key& key) { return !shares.borrowed(key); });
  forget_slots(owner);
}

/// Removes a session from the log, and from memory the shared states of which it was the last holder.
result<void> session_keeper::erase(const session_record& session) {
  const auto last = log_.store().last_held(session.uid, log_.store().shares().of(session.uid));
  if (!last) return last.error();
  auto removed = log_.remove(session, ports_.time.now());
  if (removed) forget_shared(*last);
  return removed;
}

void session_keeper::forget_shared(std::span<const state_key> gone) {
  for (const auto& key : gone) {
    tiers_.cache().forget(key);
    forget_slots(key.owner);
  }
}

/// Answers an opened turn with the state nearest to its base, or waits for that state.
void session_keeper::resolve(open_entry& entry, running_writer& w) {
  auto& cache = tiers_.cache();
  w.awaits = {};
  const auto path = entry.tree->path(w.base);
  for (auto at = path.rbegin(); at != path.rend(); ++at) {
    const version_id version = (*at)->id;
    if (const auto key = state_of(entry.uid, version)) {
      if (auto state = cache.lend(*key, ports_.wall())) return give_state(entry, w, version, *key, std::move(state));
      w.awaits = *key;
      w.patience = steady_time::max();
      tiers_.move(disk_works(), false);                        // makes room if possible
      if (!tiers_.load(*key)) w.patience = ports_.time.now();  // retry soon
      return;
    }
    if (const auto key = expected_of(entry, version)) {
      w.awaits = *key;
      w.patience = ports_.time.now() + device_patience;
      return;
    }
  }
  give_state(entry, w, storage::beginning, {}, nullptr);
}

void session_keeper::give_state(const open_entry& entry, running_writer& w, version_id from, const state_key& key,
                                state_buffer state) {
  check(w.opening.has_value(), "a turn is opened once");
  resume_point& resume = w.opening->resume;
  resume.key = key;
  resume.state = std::move(state);
  resume.feed = entry.tree->tokens_between(from, w.base);
  resume.parts = entry.tree->parts_between(from, w.base);
  resume.cached_tokens = entry.tree->total_tokens(from);
  if (!resume.feed.empty()) {
    counters_.rebuilds.fetch_add(1, std::memory_order_relaxed);
    counters_.rebuilt_tokens.fetch_add(resume.feed.size(), std::memory_order_relaxed);
  }
  w.awaits = {};
  deliver(std::move(*w.opening));
  w.opening.reset();
}

void session_keeper::put_state(const open_entry& entry, const state_key& key, state_buffer state,
                               std::uint64_t tokens) {
  auto& cache = tiers_.cache();
  cache.put(key, std::move(state), {entry.key.tenant, tokens, entry.tree->record().model_identity}, !entry.unsaved,
            ports_.time.now(), ports_.wall());
  cache.set_head(entry.uid, entry.tree->record().head);
}

/// Resumes the turns that waited for this state.
void session_keeper::resolve_waiting(const state_key& key) {
  for (const lease_id lease : book_.running())
    if (const auto [entry, w] = book_.find_lease(lease); w->opening && w->awaits == key) resolve(*entry, *w);
}

void session_keeper::handle(state_kept&& q) {
  open_entry* const entry = book_.find(q.key.owner);
  if (!entry) return resolve_waiting(q.key);  // the session is gone, but a fork of it may wait for this state
  for (auto& [lease, w] : entry->writers) {
    if (w.key != q.key) continue;
    w.state_answered = true;
    w.state = std::move(q.state);
    return;
  }
  if (entry->expected.erase(q.key) == 0) return;  // the turn failed
  if (q.state) put_state(*entry, q.key, std::move(q.state), entry->tree->total_tokens(version_of(q.key)));
  resolve_waiting(q.key);
}

void session_keeper::handle(slot_kept&& q) { tiers_.cache().slot_kept(q.key); }

void session_keeper::handle(slot_dropped&& q) { tiers_.cache().slot_dropped(q.key); }

/// Checks the deadlines of turns that wait for a state.
void session_keeper::check_openings(steady_time now) {
  for (const lease_id lease : book_.running()) {
    const auto [entry, w] = book_.find_lease(lease);
    if (!w->opening) continue;
    if (w->deadline <= now) {
      refuse(w->owner, {error_kind::timeout, "timed out waiting for the session's state", "session_id"});
      fail_turn(*entry, *w);
      advance(*entry);
    } else if (w->patience <= now) {
      if (open_entry* const maker = book_.find(w->awaits.owner)) maker->expected.erase(w->awaits);
      resolve(*entry, *w);
    }
  }
}

/// Stops expecting states that the device never sent.
void session_keeper::forget_expected(steady_time now) {
  book_.for_each([&](open_entry& entry) {
    std::erase_if(entry.expected, [&](const auto& one) { return one.second + expected_max <= now; });
  });
}

}  // namespace skein::persistence
