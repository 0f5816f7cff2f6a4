#include "actors/persistence/open/session_states.hpp"

#include <chrono>
#include <map>
#include <utility>

namespace skein::persistence {
namespace {

// A state that the device has not sent after this time is not expected any more.
constexpr auto expected_max = std::chrono::minutes(10);
// A fork shares this number of the newest states, and a few earlier ones.
constexpr std::size_t states_shared_min = 32;

}  // namespace

std::optional<state_key> session_states::state_of(session_uid owner, version_id version) const {
  if (auto own = tiers_.cache().find(owner, version)) return own;
  const auto shared = log_.store().shares().find(owner, version);
  return shared && tiers_.cache().readable(*shared) ? shared : std::nullopt;
}

std::optional<state_key> session_states::expected_of(const open_entry& entry, version_id version) {
  for (const auto& [key, state] : entry.expected)
    if (version_of(key) == version) return key;
  const auto shared = log_.store().shares().find(entry.uid, version);
  const open_entry* const maker = shared ? book_.find(shared->owner) : nullptr;
  return maker && maker->expected.contains(*shared) ? shared : std::nullopt;
}

void session_states::stop_expecting(const state_key& key) {
  if (open_entry* const maker = book_.find(key.owner)) maker->expected.erase(key);
}

void session_states::stop_expecting_old(steady_time now) {
  book_.for_each([&](open_entry& entry) {
    std::erase_if(entry.expected, [&](const auto& one) { return one.second.since + expected_max <= now; });
  });
}

void session_states::put(const open_entry& entry, const state_key& key, state_buffer state, std::uint64_t tokens) {
  auto& cache = tiers_.cache();
  cache.put(key, std::move(state), {entry.key.tenant, tokens, entry.tree->record().model_identity}, !entry.unsaved,
            ports_.time.now(), ports_.wall());
  note_head(entry);
}

void session_states::may_write(const open_entry& entry) {
  for (const auto& [id, v] : entry.tree->versions())
    if (const auto key = tiers_.cache().find(entry.uid, id)) tiers_.cache().may_write(*key);
}

// ---------------------------------------------------------------- sharing

session_record session_states::begin_fork(const open_entry& origin, version_id version, const session_key& as) {
  session_record record = fork_record(*origin.tree, version, {log_.new_uid(), as}, ports_.wall());
  auto& store = log_.store();
  if (origin.in_log && !origin.unsaved)
    store.fork(record.uid, origin.uid, version, origin.tree->deleted_before(version));
  store.share(record.uid, states_before(origin, version));
  return record;
}

/// Existing or expected states on the path to a version: the newest ones, and earlier ones at doubling distances. That
/// bounds their number, and any version is rebuilt from them within the cost that thinning allows.
std::vector<state_key> session_states::states_before(const open_entry& entry, version_id version) {
  std::map<version_id, state_key> found;
  const auto take = [&](const state_key& key) {
    const version_id of = version_of(key);
    if (entry.tree->offers(of) && entry.tree->ways().leads_to(of, version)) found.try_emplace(of, key);
  };
  const auto& shared = log_.store().shares().of(entry.uid);
  for (const auto& key : tiers_.cache().states_of(entry.uid)) take(key);
  for (const auto& key : shared)
    if (tiers_.cache().readable(key)) take(key);
  for (const auto& [key, state] : entry.expected) take(key);
  for (const auto& key : shared)
    if (const auto* const maker = book_.find(key.owner); maker && maker->expected.contains(key)) take(key);
  std::vector<state_key> few;
  for (auto one = found.rbegin(); one != found.rend(); ++one)
    if (few.size() < states_shared_min || version - one->first >= 2 * (version - version_of(few.back())))
      few.push_back(one->second);
  return few;
}

void session_states::unshare(session_uid borrower) {
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

void session_states::forget_content(open_entry& entry) {
  unshare(entry.uid);
  book_.forget_content(entry);
  sessions_.recount(entry);
}

// ---------------------------------------------------------------- removal

void session_states::forget_states(session_uid owner) {
  const auto& shares = log_.store().shares();
  tiers_.cache().forget_owner(owner, [&](const state_key& key) { return !shares.borrowed(key); });
  forget_slots(owner);
}

void session_states::forget_state(open_entry& entry, version_id version) {
  const auto key = tiers_.cache().find(entry.uid, version);
  if (key && !log_.store().shares().borrowed(*key)) tiers_.cache().forget(*key);
  std::erase_if(entry.expected, [&](const auto& one) { return version_of(one.first) == version; });
  forget_slots(entry.uid);
}

void session_states::stop_expecting_unshared(open_entry& entry) {
  std::erase_if(entry.expected, [&](const auto& one) { return !log_.store().shares().borrowed(one.first); });
}

result<void> session_states::erase(const session_record& session) {
  const auto last = log_.store().last_held(session.uid, log_.store().shares().of(session.uid));
  if (!last) return last.error();
  auto removed = log_.remove(session, ports_.time.now());
  if (removed) forget_shared(*last);
  return removed;
}

void session_states::forget_shared(std::span<const state_key> gone) {
  for (const auto& key : gone) {
    tiers_.cache().forget(key);
    forget_slots(key.owner);
  }
}

void session_states::forget_slots(session_uid gone) {
  if (ports_.forget_slots && !ports_.forget_slots(gone)) unforgotten_.push_back(gone);
}

void session_states::repeat_forget() {
  for (const session_uid gone : std::exchange(unforgotten_, {})) forget_slots(gone);
}

}  // namespace skein::persistence
