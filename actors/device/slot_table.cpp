#include "actors/device/slot_table.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace skein::device {

slot_table::slot_table(const scheduler_options& options, news_box& news, std::vector<slot_command>& commands)
    : options_(options),
      news_(news),
      commands_(commands),
      by_slot_(options.slots, nullptr),
      free_(options.slots, options.keeps_states ? options.vram_states_max : 0),
      outside_(options.state.bytes()) {}

void slot_table::begin_plan() {
  moves_.issue(commands_);  // first: these copies are of the slots as the previous tick leaves them
  for (const slot_id slot : forgotten_) commands_.push_back(clear_slot{slot});
  forgotten_.clear();
}

// ---------------------------------------------------------------- into a slot

bool slot_table::take(sequence& s, const state_key& wanted) {
  news_.reserve(1);
  const auto taken = free_.take(wanted);
  if (taken.dropped) news_.add(state_news::kind::slot_dropped, taken.dropped);
  by_slot_[taken.slot] = &s;
  ++s.owner->payer->slots;
  s.place.take(taken.slot);
  s.sampled_this_turn = 0;
  return taken.hit;
}

void slot_table::begin(sequence& s) {
  request_record& r = *s.owner;
  if (take(s, r.from(s).key)) {
    commands_.push_back(restart_slot{s.place.slot(), &r.params(s)});
    ++kept_hits_;
  } else {
    begin_again(s);
  }
  if (!r.to_settle) r.from(s).state = nullptr;  // settling may have to begin again from this state
}

void slot_table::begin_again(sequence& s) {
  request_record& r = *s.owner;
  commands_.push_back(start_slot{s.place.slot(), &r.params(s)});
  const state_buffer& state = r.from(s).state;
  if (!state) return;
  ++states_written_;
  commands_.push_back(write_slot{s.place.slot(), state});
  s.arrival = moves_.come(state);
}

void slot_table::begin_as(sequence& s, const sequence& from) {
  take(s, {});
  commands_.push_back(start_slot{s.place.slot(), &s.owner->params(s)});
  commands_.push_back(copy_slot{from.place.slot(), s.place.slot()});
}

void slot_table::restore(sequence& s) {
  const auto copy = s.place.copy();
  check(copy != nullptr, "a parked sequence has a copy of its state");
  take(s, {});
  --parked_;
  bring_back(s, copy->buffer);
}

void slot_table::bring_back(sequence& s, const buffer& from) {
  commands_.push_back(unpark_slot{s.place.slot(), &s.owner->params(s), from});
  s.arrival = moves_.come(from);
}

// ---------------------------------------------------------------- out of a slot

void slot_table::park(sequence& s) {
  auto copy = copy_out(s);
  const slot_id slot = vacate(s);
  free_.give_back(slot);
  park_in(s, std::move(copy));
}

std::shared_ptr<outside_state> slot_table::copy_out(const sequence& from) {
  auto copy = outside_.hold();
  moves_.leave(commands_, from.place.slot(), copy->buffer);
  return copy;
}

void slot_table::park_in(sequence& s, std::shared_ptr<outside_state> copy) {
  s.place.park(std::move(copy));
  ++parked_;
}

slot_id slot_table::vacate(const sequence& s) {
  const slot_id slot = s.place.slot();
  by_slot_[slot] = nullptr;
  --s.owner->payer->slots;
  return slot;
}

void slot_table::drop(sequence& s) {
  if (s.place.has_slot()) free_.give_back(vacate(s));
  if (s.place.is_parked()) --parked_;
  s.place.leave();
}

void slot_table::hand_over(const sequence& s, const state_key& key) {
  moves_.leave(commands_, s.place.slot(), std::make_shared<engine::parked_sequence>());
  moves_.promise(key, false);
}

void slot_table::keep(sequence& s, const state_key& key) {
  const slot_id slot = vacate(s);
  s.place.leave();
  news_.reserve(2);
  const auto [kept, dropped] = free_.keep(slot, key);
  if (dropped) news_.add(state_news::kind::slot_dropped, dropped);
  if (kept) news_.add(state_news::kind::slot_kept, key);
}

void slot_table::clear(sequence& s) {
  const slot_id slot = vacate(s);
  s.place.leave();
  free_.give_back(slot);
  commands_.push_back(clear_slot{slot});
}

// ---------------------------------------------------------------- kept states, ends

void slot_table::forget(storage::session_uid owner) {
  while (true) {
    news_.reserve(1);
    forgotten_.reserve(forgotten_.size() + 1);
    const auto went = free_.forget_one(owner);
    if (!went) return;
    forgotten_.push_back(went->slot);
    news_.add(state_news::kind::slot_dropped, went->key);
  }
}

void slot_table::drop_kept() {
  while (free_.kept() > 0) {
    news_.reserve(1);
    news_.add(state_news::kind::slot_dropped, free_.drop_one()->key);
  }
}

void slot_table::reset() {
  std::ranges::fill(by_slot_, nullptr);
  free_.reset();
  forgotten_.clear();
  outside_.forget_forks();
  parked_ = 0;
}

void slot_table::add_to(scheduler_counts& counts) const {
  counts.slots_used = options_.slots - static_cast<std::uint32_t>(free());
  counts.slots_kept = kept();
  counts.parked = parked_;
  counts.parked_bytes = outside_.held_bytes();
  counts.undo_bytes = outside_.undo_bytes();
  counts.states_written = states_written_;
  counts.kept_hits = kept_hits_;
}

void slot_table::self_check() const {
  std::size_t used = 0;
  for (slot_id i = 0; i < by_slot_.size(); ++i) {
    const sequence* const s = by_slot_[i];
    if (!s) continue;
    ++used;
    check(s->place.slot() == i, "a sequence knows its slot");
    check(!s->over() || s->owner->to_settle, "an ended row that does not settle holds no slot");
  }
  check(used + free() == by_slot_.size(), "slots are used or free");
  check(moves_.optional() <= options_.copies_max, "wanted copies are limited");
}

}  // namespace skein::device
