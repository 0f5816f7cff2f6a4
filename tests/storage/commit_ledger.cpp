#include "tests/storage/commit_ledger.hpp"

#include <algorithm>

#include "storage/records/session_check.hpp"

namespace skein::test {
namespace {

using namespace storage;

constexpr std::uint32_t turns = 12;
constexpr std::size_t sessions = 4, with_large_states = 2, removed_one = 3;

}  // namespace

commit_ledger::commit_ledger(random_cases& random) {
  for (std::size_t i = 0; i < sessions; ++i) {
    life one{random_tree_of(random, 0, "session " + std::to_string(i), turns), 0, 0, 0, false, false, {}, {}};
    lives_.push_back(std::move(one));
  }
}

session_record commit_ledger::record_at(const life& of, std::uint32_t version) {
  auto record = of.tree.session;
  record.head = record.last_version = record.versions = version;
  record.total_tokens = of.tree.versions[version - 1].total_tokens;
  return record;
}

void commit_ledger::commit_next(session_store& store, life& of, bool sync) {
  if (of.removal_tried || of.acknowledged == turns) return;
  if (of.tree.session.uid == 0) {
    const auto uid = store.new_uid();
    if (!uid) return;
    of.tree.session.uid = *uid;
  }
  const std::uint32_t version = of.acknowledged + 1;
  of.tried = std::max(of.tried, version);
  const std::span<const version_record> added(&of.tree.versions[version - 1], 1);
  if (!store.commit(record_at(of, version), added, sync)) return;
  of.acknowledged = version;
  of.order[version] = ++acknowledged_;
  if (!sync) return;
  for (auto& each : lives_) each.synced = each.acknowledged;  // a sync takes along all that was written before
}

state_store commit_ledger::states_of(const std::shared_ptr<database>& db, const life& of) const {
  return {db, &of == &lives_[with_large_states] ? large_layout() : small_layout(), "model", dtype::f32};
}

model::state_value commit_ledger::state_of(const life& of, std::uint32_t version) const {
  const auto layout = &of == &lives_[with_large_states] ? large_layout() : small_layout();
  std::vector<float> state(layout.floats());
  for (std::size_t i = 0; i < state.size(); ++i)
    state[i] = static_cast<float>(1000 * of.tree.session.uid + version) + static_cast<float>(i % 251);
  return model::state_of(layout, state);
}

void commit_ledger::keep_state(const std::shared_ptr<database>& db, life& of) {
  if (of.acknowledged == 0 || of.removal_tried) return;
  const state_key key{of.tree.session.uid, of.acknowledged};
  const auto tokens = of.tree.versions[of.acknowledged - 1].total_tokens;
  const auto put = states_of(db, of).put({"model", default_tenant, key, tokens}, state_of(of, of.acknowledged));
  of.states[of.acknowledged] |= put.has_value();
}

void commit_ledger::live(const std::shared_ptr<database>& db, std::uint32_t steps) {
  session_store store(db);
  for (const std::uint32_t end = step_ + steps; step_ < end; ++step_) {
    life& of = lives_[step_ % sessions];
    commit_next(store, of, step_ % 3 == 0);
    if (step_ % 5 == 0 || step_ % 12 == with_large_states) keep_state(db, of);
    if (step_ % 7 == 0 && of.tree.session.uid != 0 && !of.removal_tried)
      ignore(store.note_running(of.tree.session.uid, {of.tree.versions[0]}), "best effort");
    if (step_ == 24) {
      life& gone = lives_[removed_one];
      gone.removal_tried = true;
      gone.removed =
          gone.tree.session.uid != 0 && store.remove(record_at(gone, std::max(1u, gone.acknowledged))).has_value();
    }
    if (step_ % 16 == 15) ignore(db->flush(), "it may fail as all else");
    if (db->failing()) (void)db->probe();
  }
}

std::optional<std::uint32_t> commit_ledger::found_version(session_store& store, const life& of, bool errors_allowed,
                                                          std::vector<std::string>& faults) const {
  const std::string& name = of.tree.session.key.id;
  const auto found = store.find(of.tree.session.key);
  if (!found) {
    if (!errors_allowed) faults.push_back(name + " is not readable: " + found.error().message);
    return {};
  }
  if (!*found) return 0;
  const std::uint32_t version = (**found).last_version;
  if (version == 0 || version > of.tried || **found != record_at(of, version)) {
    faults.push_back(name + " has a record that was never written");
    return {};
  }
  const auto versions = store.versions(of.tree.session.uid);
  if (!versions) {
    if (!errors_allowed) faults.push_back(name + " has unreadable versions: " + versions.error().message);
    return {};
  }
  // A session with a missing version is refused when it is opened.
  if (errors_allowed && !check_session(**found, *versions)) return {};
  if (!std::ranges::equal(*versions, std::span(of.tree.versions).first(version))) {
    faults.push_back(name + " has other versions than were committed");
    return {};
  }
  return version;
}

void commit_ledger::check_states(const std::shared_ptr<database>& db, const life& of, std::uint32_t version,
                                 bool certain, bool errors_allowed, std::vector<std::string>& faults) const {
  auto store = states_of(db, of);
  for (std::uint32_t v = 1; v <= turns; ++v) {
    const std::string name = "the state of version " + std::to_string(v) + " of " + of.tree.session.key.id;
    const auto got = store.get({of.tree.session.uid, v});
    const auto written = of.states.find(v);
    if (!got) {
      if (!errors_allowed) faults.push_back(name + " is not readable: " + got.error().message);
    } else if (!*got) {
      if (certain && written != of.states.end() && written->second) faults.push_back(name + " is lost");
    } else if (v > version || written == of.states.end()) {
      faults.push_back(name + " is there, and its version is not");
    } else if ((**got).state != state_of(of, v)) {
      faults.push_back(name + " is another one");
    }
  }
}

std::vector<std::string> commit_ledger::faults_in(const std::shared_ptr<database>& db, crash after) {
  std::vector<std::string> faults;
  session_store store(db);
  std::uint32_t latest = 0;
  std::vector<std::uint32_t> versions(lives_.size());
  for (std::size_t i = 0; i < lives_.size(); ++i) {
    const life& of = lives_[i];
    const auto version = found_version(store, of, false, faults);
    if (!version) continue;
    versions[i] = *version;
    const std::string name = of.tree.session.key.id + " is at version " + std::to_string(*version);
    const bool gone = *version == 0 && of.removal_tried;
    if (of.removed && after == crash::process && !gone) faults.push_back(name + " after its removal");
    const std::uint32_t least = after == crash::process ? of.acknowledged : of.synced;
    if (*version < least && !gone) faults.push_back(name + ", acknowledged was " + std::to_string(least));
    if (const auto at = of.order.find(*version); at != of.order.end()) latest = std::max(latest, at->second);
    check_states(db, of, *version, after == crash::process && !gone && !of.removal_tried, false, faults);
  }
  for (std::size_t i = 0; i < lives_.size(); ++i)
    for (const auto& [version, at] : lives_[i].order)
      if (at < latest && version > versions[i] && !lives_[i].removal_tried)
        faults.push_back("version " + std::to_string(version) + " of session " + std::to_string(i) +
                         " is lost, and a later commit is not");
  return faults;
}

std::vector<std::string> commit_ledger::lies_in(const std::shared_ptr<database>& db) {
  std::vector<std::string> faults;
  session_store store(db);
  for (const life& of : lives_) {
    const auto version = found_version(store, of, true, faults);
    check_states(db, of, version.value_or(turns), false, true, faults);
  }
  return faults;
}

}  // namespace skein::test
