#include "storage/sessions/shared_states.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "storage/database/database_impl.hpp"
#include "storage/database/quarantine.hpp"
#include "storage/records/session_names.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/sessions/record_scan.hpp"
#include "storage/states/raw_states.hpp"

namespace skein::storage {

shared_states::shared_states(std::shared_ptr<database> db) : db_(std::move(db)) {
  auto& db_inside = db_->internals();
  std::vector<unreadable> bad;
  const std::string first(keys::shares_prefix);
  const auto looked =
      db_inside.scan(family::meta, first, keys::after_all(first), [&](std::string_view key, auto value) {
        const session_uid borrower = keys::number_at(key, first.size());
        if (auto states = decode_shares(value, borrower))
          shares_.set(borrower, std::move(*states));
        else
          bad.push_back({std::string(key), std::string(value), states.error()});
        return true;
      });
  ignore(looked, "without the lists, forks recompute their states");
  for (const auto& one : bad)
    if (is_damage(one.why))
      (void)set_aside(db_inside, family::meta, one.key, one.record,
                      "list of states that " + name_of(keys::number_at(one.key, first.size())) + " shares", one.why);
}

void shared_states::share(session_uid borrower, std::vector<state_key> states) {
  if (states.empty()) return;
  shares_.set(borrower, std::move(states));
  unwritten_.insert(borrower);
}

void shared_states::unshare(session_uid borrower) {
  shares_.forget(borrower);
  unwritten_.erase(borrower);
}

void shared_states::add_to(change_list& changes, session_uid borrower) const {
  if (unwritten_.contains(borrower))
    changes.put(family::meta, keys::of_shares(borrower), encode_shares(borrower, shares_.of(borrower)));
}

void shared_states::erase_from(change_list& changes, session_uid borrower) const {
  changes.erase(family::meta, keys::of_shares(borrower));
}

void shared_states::erased(session_uid borrower, bool written) {
  if (written)
    unshare(borrower);
  else
    doubt(borrower);
}

std::vector<state_key> shared_states::without(session_uid borrower, const versions& goes) const {
  auto shared = shares_.of(borrower);
  std::erase_if(shared, [&](const state_key& state) { return goes(version_of(state)); });
  return shared;
}

void shared_states::add_to(change_list& changes, session_uid borrower, const std::vector<state_key>& less) const {
  if (!shares_.of(borrower).empty())
    changes.put(family::meta, keys::of_shares(borrower), encode_shares(borrower, less));
}

void shared_states::dropped(session_uid borrower, std::vector<state_key> less, bool written) {
  if (written)
    shares_.set(borrower, std::move(less));
  else
    doubt(borrower);
}

/// A write failed: the disk may have changed or removed the list.
void shared_states::doubt(session_uid borrower) {
  if (!shares_.of(borrower).empty()) unwritten_.insert(borrower);
}

result<std::vector<state_key>> shared_states::last_held(session_uid borrower, std::span<const state_key> states,
                                                        const version_forks& forks) {
  std::vector<state_key> last;
  for (const auto& state : states) {
    if (shares_.borrowed(state, borrower)) continue;
    if (forks.is_stem(state.owner)) {
      last.push_back(state);
      continue;
    }
    bool offered = false;
    const auto at_its_maker = db_->internals().read(family::versions, keys::of_version(state.owner, version_of(state)),
                                                    [&](std::string_view value) {
                                                      const auto version = decode_any_version(value, state.owner);
                                                      offered = !version || !(version->deleted || is_kept(value));
                                                    });
    if (!at_its_maker) return at_its_maker.error();
    if (!offered) last.push_back(state);
  }
  return last;
}

result<std::vector<state_entry>> shared_states::going(session_uid uid, const versions& goes,
                                                      const version_forks& forks) {
  auto& db = db_->internals();
  auto going = entries_of_session(db, uid);
  if (!going) return going.error();
  std::erase_if(*going, [&](const state_entry& e) { return !goes(version_of(e.key)) || shares_.borrowed(e.key); });
  auto shared = without(uid, [&](version_id version) { return !goes(version); });
  const auto last = last_held(uid, shared, forks);
  if (!last) return last.error();
  for (const auto& state : *last) {
    auto entry = find_entry(db, state);
    if (!entry && !is_damage(entry.error())) return entry.error();
    if (entry && *entry) going->push_back(std::move(**entry));
  }
  return going;
}

}  // namespace skein::storage
