#include <algorithm>
#include <span>

#include "actors/device/scheduler.hpp"
#include "actors/device/sequence.hpp"

/// States that the scheduler hands out: copies of what a prompt made of one, and settled ones.
namespace skein::device {

/// A piece of the prompt was planned: its end may be a place where the state is wanted, or the end of the prompt.
/// Copies are taken when the next plan begins. Where too many states are on their way out already, none is taken.
void scheduler::copy_out(sequence& s) {
  request& r = *s.owner;
  bool taken = false;
  const auto take = [&](const state_moves::buffer& to) {
    moves_.leave_next(*s.slot, to);
    taken = true;
  };

  const std::size_t undo_bytes = (undo_states_ + std::size_t{1}) * options_.state_floats * sizeof(float);
  if (r.to_settle && r.message.may_cut && s.draws_planned > 0 && !s.over && undo_bytes <= options_.undo_bytes_max &&
      may_leave(1)) {
    r.to_settle->prompt_end = std::make_shared<outside_state>(undo_states_, 0);
    take(r.to_settle->prompt_end->buffer);
    r.message.from.state = nullptr;  // this copy is nearer
  }
  while (r.next_copy < r.message.copies.size() && r.message.copies[r.next_copy].position <= s.fed) {
    const wanted_copy& wanted = r.message.copies[r.next_copy];
    if (wanted.position < s.fed || moves_.optional() >= options_.copies_max || !(taken || may_leave(1))) {
      news_.reserve(1);
      news_.refuse(wanted.key);
      ++counts_.copies_refused;
    } else {
      if (!taken) take(std::make_shared<engine::parked_sequence>());
      moves_.promise(wanted.key, true);
      ++counts_.copies_taken;
    }
    ++r.next_copy;
  }
}

/// The row holds a slot, and its text may be decided.
void scheduler::advance_settling(sequence& s) {
  request& r = *s.owner;
  if (!r.settling() || !is_here(s)) return;
  if (!r.feeds_text()) {
    if (s.in_flight > 0) return;  // what these rows draw and feed counts
    const auto& prompt_end = r.to_settle->prompt_end;
    if ((prompt_end && !moves_.has_left(prompt_end->buffer)) || !may_come(1)) return;  // for a moment
    if (!feed_text(s)) return leave(s);
  }
  if (s.fed == r.prompt_tokens() && is_here(s) && may_leave(1)) hand_over_state(s);
}

/// The text takes the prompt's place. What the state has swallowed of it stays where it is a part of the text; else the
/// state goes back. False when there is nothing left to go back to.
bool scheduler::feed_text(sequence& s) {
  request& r = *s.owner;
  settlement& how = *r.to_settle;
  const std::span drawn(how.drawn);
  const std::span swallowed = drawn.first(drawn.empty() ? 0 : drawn.size() - 1);  // the last draw is not fed
  std::vector<token_id> answer(drawn.begin(), drawn.begin() + how.text->drawn);
  answer.insert(answer.end(), how.text->more.begin(), how.text->more.end());
  const bool part_of_it = std::ranges::mismatch(swallowed, answer).in1 == swallowed.end();

  if (part_of_it) {
    s.fed += static_cast<std::uint32_t>(swallowed.size());
  } else if (how.prompt_end) {
    bring_back(s, how.prompt_end->buffer);
  } else if (!r.message.from.key || r.message.from.state) {
    begin_afresh(s);
    s.fed = 0;
  } else {
    return false;
  }
  if (!part_of_it) ++counts_.settles_back;
  r.message.prompt.insert(r.message.prompt.end(), answer.begin(), answer.end());
  r.message.parts.push_back({static_cast<std::uint32_t>(answer.size()), true});
  how.prompt_end = nullptr;
  how.drawn = {};
  how.feeding = true;
  return true;
}

/// The slot holds the settled state, or will when the ticks in flight are done: it is copied out, and the slot is free.
void scheduler::hand_over_state(sequence& s) {
  request& r = *s.owner;
  const state_key key = r.message.settles_as;
  const slot_id slot = *s.slot;
  const bool keeps_slot = r.to_settle->keeps_slot;
  moves_.leave(work_.commands, slot, std::make_shared<engine::parked_sequence>());
  moves_.promise(key, false);
  r.to_settle.reset();  // from here on the promise answers
  ++counts_.settles;
  ++counts_.finished;

  s.slot.reset();
  slots_[slot] = nullptr;
  --r.payer->slots;
  news_.reserve(2);
  if (keeps_slot) {
    const auto [kept, dropped] = free_slots_.keep(slot, key);
    if (dropped) news_.add(state_news::kind::slot_dropped, dropped);
    if (kept) news_.add(state_news::kind::slot_kept, key);
  } else {
    free_slots_.give_back(slot);
    work_.commands.push_back(clear_slot{slot});
  }
  erase(r);
}

}  // namespace skein::device
