#include "actors/device/slots/kept_slots.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"

namespace skein::device {

kept_slots::kept_slots(std::uint32_t slots, std::uint32_t kept_max)
    : slots_(slots), kept_max_(std::min(slots, kept_max)) {
  empty_.reserve(slots);
  kept_.reserve(kept_max_);
  reset();
}

void kept_slots::reset() {
  kept_.clear();
  empty_.resize(slots_);
  std::iota(empty_.rbegin(), empty_.rend(), slot_id{0});
}

bool kept_slots::holds(const state_key& key) const {
  return key && std::ranges::find(kept_, key, &kept_state::key) != kept_.end();
}

kept_slots::taken_slot kept_slots::take(const state_key& wanted) {
  check(free() > 0, "a slot is taken only if one is free");
  const auto found = wanted ? std::ranges::find(kept_, wanted, &kept_state::key) : kept_.end();
  if (found == kept_.end() && !empty_.empty()) {
    const slot_id slot = empty_.back();
    empty_.pop_back();
    return {slot, false, {}};
  }
  const bool hit = found != kept_.end();
  const auto at = hit ? found : kept_.begin();
  const kept_state took = *at;
  kept_.erase(at);
  return {took.slot, hit, took.key};
}

kept_slots::keeping kept_slots::keep(slot_id slot, const state_key& key) {
  check(static_cast<bool>(key), "a kept state has a key");
  if (kept_max_ == 0 || holds(key)) {
    give_back(slot);
    return {false, {}};
  }
  state_key dropped;
  if (kept_.size() == kept_max_) dropped = drop(kept_.begin())->key;
  kept_.push_back({slot, key});
  return {true, dropped};
}

std::optional<kept_slots::forgotten> kept_slots::forget_one(storage::session_uid owner) {
  return drop(std::ranges::find_if(kept_, [owner](const kept_state& k) { return k.key.owner == owner; }));
}

std::optional<kept_slots::forgotten> kept_slots::drop_one() { return drop(kept_.begin()); }

std::optional<kept_slots::forgotten> kept_slots::drop(std::vector<kept_state>::iterator at) {
  if (at == kept_.end()) return std::nullopt;
  const forgotten went{at->slot, at->key};
  kept_.erase(at);
  give_back(went.slot);
  return went;
}

}  // namespace skein::device
