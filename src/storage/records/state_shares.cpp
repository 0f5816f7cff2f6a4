#include "storage/records/state_shares.hpp"

#include <algorithm>
#include <utility>

namespace skein::storage {

void state_shares::set(session_uid borrower, std::vector<state_key> states) {
  forget(borrower);
  if (states.empty()) return;
  for (const auto& state : states) ++borrowers_[state];
  by_borrower_[borrower] = std::move(states);
}

void state_shares::forget(session_uid borrower) {
  const auto found = by_borrower_.find(borrower);
  if (found == by_borrower_.end()) return;
  for (const auto& state : found->second)
    if (--borrowers_.at(state) == 0) borrowers_.erase(state);
  by_borrower_.erase(found);
}

const std::vector<state_key>& state_shares::of(session_uid borrower) const {
  static const std::vector<state_key> none;
  const auto found = by_borrower_.find(borrower);
  return found == by_borrower_.end() ? none : found->second;
}

std::optional<state_key> state_shares::find(session_uid borrower, version_id version) const {
  const auto& states = of(borrower);
  const auto found = std::ranges::find(states, version, version_of);
  return found == states.end() ? std::nullopt : std::optional(*found);
}

bool state_shares::borrowed(const state_key& state, session_uid except) const {
  const auto found = borrowers_.find(state);
  if (found == borrowers_.end()) return false;
  const bool by_that_one = except != 0 && std::ranges::find(of(except), state) != of(except).end();
  return found->second > (by_that_one ? 1u : 0u);
}

}  // namespace skein::storage
