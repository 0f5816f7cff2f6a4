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
  auto all = list(on);
  all.push_back(of * 2 + (negated ? 1 : 0));
  return set_of(std::move(all));
}

condition_states::conditions condition_states::set_of(std::vector<std::uint32_t> all) {
  // `never` must not accept, and `always` must: such conditions hold. The opposite ones do not.
  constexpr std::uint32_t holds[] = {never * 2 + 1, always * 2}, fails[] = {never * 2, always * 2 + 1};
  std::ranges::sort(all);
  std::vector<std::uint32_t> kept;
  for (const auto one : all) {
    if (std::ranges::find(fails, one) != std::end(fails)) return impossible;
    if (std::ranges::find(holds, one) != std::end(holds) || (!kept.empty() && kept.back() == one)) continue;
    if (!kept.empty() && kept.back() == (one ^ 1)) return impossible;
    kept.push_back(one);
  }
  const auto [known, is_new] =
      condition_index_.try_emplace(std::move(kept), static_cast<conditions>(condition_lists_.size()));
  if (is_new) condition_lists_.push_back(&known->first);
  return known->second;
}

bool condition_states::implies(conditions more, conditions less) {
  work_ += 2;
  if (less != none && more != less) work_ += list(more).size() + list(less).size();
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
  constexpr std::size_t compared_max = 64;
  for (const auto& one : all) {
    if (!kept.empty() && kept.back().place != one.place) place_begin = kept.size();
    const auto superfluous = [&](std::size_t begin, std::size_t end) {
      end = std::min(end, begin + compared_max);
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
