#include "grammar/automata/condition_states.hpp"

#include <algorithm>

namespace skein::grammar {

condition_states::condition_states() : states_(2) {
  const auto place = condition_index_.try_emplace({}, none).first;
  condition_lists_.push_back(&place->first);
  state_index_.emplace(std::vector<std::uint32_t>{}, never);
  state_index_.emplace(std::vector<std::uint32_t>{at_match_any, none}, always);
  states_[always] = {{at_match_any, none}};
}

condition_states::conditions condition_states::with(conditions on, state of, bool negated) {
  if (of == never || of == always) return (of == always) == negated ? impossible : on;
  const auto added = of * 2 + (negated ? 1 : 0);
  auto all = list(on);
  const auto place = std::ranges::lower_bound(all, added);
  if (place != all.end() && *place == added) return on;
  if (std::ranges::binary_search(all, added ^ 1)) return impossible;
  all.insert(place, added);
  const auto [known, is_new] =
      condition_index_.try_emplace(std::move(all), static_cast<conditions>(condition_lists_.size()));
  if (is_new) condition_lists_.push_back(&known->first);
  return known->second;
}

bool condition_states::implies(conditions more, conditions less) const {
  return less == none || more == less || std::ranges::includes(list(more), list(less));
}

condition_states::state condition_states::state_of(std::vector<configuration>& all) {
  // At one place, and beside a configuration that accepts whatever follows, fewer conditions make others superfluous.
  std::ranges::sort(all, [this](const configuration& a, const configuration& b) {
    if (a.place != b.place)
      return (a.place == at_match_any) != (b.place == at_match_any) ? a.place == at_match_any : a < b;
    const auto x = list(a.on).size(), y = list(b.on).size();
    return x != y ? x < y : a.on < b.on;
  });
  std::vector<configuration> kept;
  std::size_t any_end = 0, place_begin = 0;
  for (const auto& one : all) {
    if (!kept.empty() && kept.back().place != one.place) place_begin = kept.size();
    const auto superfluous = [&](std::size_t begin, std::size_t end) {
      return std::any_of(kept.begin() + static_cast<std::ptrdiff_t>(begin),
                         kept.begin() + static_cast<std::ptrdiff_t>(end),
                         [&](const configuration& each) { return implies(one.on, each.on); });
    };
    if (superfluous(0, any_end)) continue;
    if (!kept.empty() && kept.back().place == one.place && superfluous(place_begin, kept.size())) continue;
    kept.push_back(one);
    if (one.place == at_match_any) any_end = kept.size();
  }
  std::vector<std::uint32_t> key;
  key.reserve(kept.size() * 2);
  for (const auto& one : kept) key.insert(key.end(), {one.place, one.on});
  const auto [known, is_new] = state_index_.try_emplace(std::move(key), static_cast<state>(states_.size()));
  if (is_new) states_.push_back(std::move(kept));
  return known->second;
}

}  // namespace skein::grammar
