#include <algorithm>
#include <span>

#include "actors/device/scheduler.hpp"
#include "actors/device/sequence.hpp"

/// The states that the scheduler hands out: copies inside prompts, and settled states.
namespace skein::device {

/// Call after planning a piece of the prompt: its end may be a position of a wanted copy, or the end of the prompt.
/// Copies are taken when the next plan begins. None is taken if too many states are in transfer already.
void scheduler::copy_out(sequence& s) {
  request& r = *s.owner;
  bool taken = false;
  const auto take = [&](const state_moves::buffer& to) {
    moves_.leave_next(*s.slot, to);
    taken = true;
  };

  const std::size_t undo_bytes = (undo_states_ + std::size_t{1}) * options_.state_floats * sizeof(float);
  if (r.to_settle && r.message.may_cut && s.samples_planned > 0 && !s.over && undo_bytes <= options_.undo_bytes_max &&
      may_leave(1)) {
    r.to_settle->prompt_end = std::make_shared<outside_state>(undo_states_, 0);
    take(r.to_settle->prompt_end->buffer);
    r.message.from.state = nullptr;  // the copy replaces it as the state to return to
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

/// Continues settling a row that holds a slot, if its text is decided.
void scheduler::advance_settling(sequence& s) {
  request& r = *s.owner;
  if (!r.settling() || !is_here(s)) return;
  if (!r.feeds_text()) {
    if (s.in_flight > 0) return;  // these rows still sample and feed tokens
    const auto& prompt_end = r.to_settle->prompt_end;
    if ((prompt_end && !moves_.has_left(prompt_end->buffer)) || !may_come(1)) return;  // retry in the next plan
    if (!feed_text(s)) return leave(s);
  }
  if (s.fed == r.prompt_tokens() && is_here(s) && may_leave(1)) hand_over_state(s);
}

/// Replaces the prompt by the text. If the tokens that the state has processed are a prefix of the text, the state is
/// kept; else it returns to an earlier state. False if no earlier state is left.
bool scheduler::feed_text(sequence& s) {
  request& r = *s.owner;
  settlement& how = *r.to_settle;
  const std::span sampled(how.sampled);
  const std::span swallowed =
      sampled.first(sampled.empty() ? 0 : sampled.size() - 1);  // the last sampled token is not fed
  std::vector<token_id> answer(sampled.begin(), sampled.begin() + how.text->sampled);
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
  how.sampled = {};
  how.feeding = true;
  return true;
}

/// The slot holds the settled state once the ticks in flight are done: copies it out and frees the slot.
void scheduler::hand_over_state(sequence& s) {
  request& r = *s.owner;
  const state_key key = r.message.settles_as;
  const slot_id slot = *s.slot;
  const bool keeps_slot = r.to_settle->keeps_slot;
  moves_.leave(work_.commands, slot, std::make_shared<engine::parked_sequence>());
  moves_.promise(key, false);
  r.to_settle.reset();  // from here on the promise answers the key
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
