#include "actors/supervisor/models/known_models.hpp"

#include <algorithm>
#include <utility>

namespace skein::supervisor {

std::shared_ptr<const request::tuned_states::list> known_models::states_of(const std::string& id,
                                                                           std::string_view identity) const {
  const auto found = known_.find(id);
  return found != known_.end() && found->second.identity == identity ? found->second.states : nullptr;
}

void known_models::remember(const request::loaded_model& model) {
  known_model& known = known_.at(model.id());
  known.identity = model.served.card.identity;
  known.states = model.tuned.all();
}

void known_models::keep_only(const std::string& id) {
  std::erase_if(known_, [&](const auto& k) { return k.first != id; });
  for (const auto& place : shown_.places())
    if (place.names.front() != id) shown_.forget(place.names.front());
}

void known_models::forget_resting(std::uint32_t resting_max,
                                  const std::function<bool(const std::string& id)>& is_needed) {
  const auto rests = [&](const auto& k) { return !is_needed(k.first) && !resident(k.first); };
  while (std::ranges::count_if(known_, rests) > resting_max) {
    auto oldest = known_.end();
    for (auto it = known_.begin(); it != known_.end(); ++it)
      if (rests(*it) && (oldest == known_.end() || it->second.used_at < oldest->second.used_at)) oldest = it;
    shown_.forget(oldest->first);
    known_.erase(oldest);
  }
}

std::vector<known_models::use> known_models::uses() {
  constexpr long held_here_and_shown = 2;
  std::vector<use> all;
  for (auto& model : shown_.resident()) {
    steady_time& used_at = known_.at(model->id()).used_at;
    const bool idle =
        model.use_count() <= held_here_and_shown && model->devices.sum(&device::device_counters::requests) == 0;
    if (!idle) used_at = time_.now();
    const steady_time worked_at = model->devices.last_tick_at();
    all.push_back({std::move(model), idle, std::max(used_at, worked_at)});
  }
  return all;
}

request::model_ref known_models::resident(std::string_view id) const {
  const auto all = shown_.resident();
  const auto found = std::ranges::find(all, id, &request::loaded_model::id);
  return found == all.end() ? nullptr : *found;
}

request::model_ref known_models::least_used(std::string_view but, bool idle_only) {
  auto all = uses();
  std::erase_if(all, [&](const use& u) { return u.model->id() == but || (idle_only && !u.idle); });
  const auto least = std::ranges::min_element(all, {}, [](const use& u) { return std::pair(!u.idle, u.at); });
  return least == all.end() ? nullptr : least->model;
}

}  // namespace skein::supervisor
