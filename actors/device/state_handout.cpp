#include "actors/device/state_handout.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

namespace skein::device {

void state_handout::copy_out(sequence& s) {
  request_record& r = *s.owner;
  state_moves& moves = slots_.moves();
  bool taken = false;
  const auto take = [&](const state_moves::buffer& to) {
    moves.leave_next(s.place.slot(), to);
    taken = true;
  };

  if (r.to_settle && r.message.may_cut && s.samples_planned > 0 && !s.over() &&
      slots_.outside().fits_undo(options_.undo_bytes_max) && slots_.may_leave(1)) {
    r.to_settle->prompt_end = slots_.outside().hold_undo();
    take(r.to_settle->prompt_end->buffer);
    r.message.from.state = nullptr;  // the copy replaces it as the state to return to
  }
  while (r.next_copy < r.message.copies.size() && r.message.copies[r.next_copy].position <= s.fed) {
    const wanted_copy& wanted = r.message.copies[r.next_copy];
    if (wanted.position < s.fed || moves.optional() >= options_.copies_max || !(taken || slots_.may_leave(1))) {
      news_.reserve(1);
      news_.refuse(wanted.key);
      ++copies_refused_;
    } else {
      if (!taken) take(std::make_shared<engine::parked_sequence>());
      moves.promise(wanted.key, true);
      ++copies_taken_;
    }
    ++r.next_copy;
  }
}

void state_handout::advance(sequence& s) {
  request_record& r = *s.owner;
  if (!s.settling() || !slots_.is_here(s)) return;
  if (!s.feeds_text()) {
    if (s.in_flight > 0) return;  // these rows still sample and feed tokens
    const auto& prompt_end = r.to_settle->prompt_end;
    if ((prompt_end && !slots_.moves().has_left(prompt_end->buffer)) || !slots_.may_come(1))
      return;  // retry in the next plan
    if (!feed_text(s)) return requests_.leave(s);
  }
  if (s.fed == r.prompt_tokens() && slots_.is_here(s) && slots_.may_leave(1)) hand_over(s);
}

/// Replaces the prompt by the text. If the tokens that the state has processed are a prefix of the text, the state is
/// kept; else it returns to an earlier state. False if no earlier state is left: a copy that could not be allocated is
/// empty.
bool state_handout::feed_text(sequence& s) {
  request_record& r = *s.owner;
  settlement& how = *r.to_settle;
  const std::span sampled(how.sampled);
  const std::span swallowed = sampled.first(sampled.size() - how.unfed);
  std::vector<token_id> answer(sampled.begin(), sampled.begin() + how.text.sampled);
  answer.insert(answer.end(), how.text.more.begin(), how.text.more.end());
  const bool part_of_it = std::ranges::mismatch(swallowed, answer).in1 == swallowed.end();

  if (part_of_it) {
    s.fed += static_cast<std::uint32_t>(swallowed.size());
  } else if (how.prompt_end) {
    if (how.prompt_end->buffer->state.bytes.empty()) return false;
    slots_.bring_back(s, how.prompt_end->buffer);
  } else if (!r.message.from.key || r.message.from.state) {
    slots_.begin_again(s);
    s.fed = 0;
  } else {
    return false;
  }
  if (!part_of_it) ++settles_back_;
  r.message.prompt.insert(r.message.prompt.end(), answer.begin(), answer.end());
  r.message.parts.push_back({static_cast<std::uint32_t>(answer.size()), true});
  how.prompt_end = nullptr;
  how.sampled = {};
  s.advance(row_stage::feeding);
  return true;
}

/// The slot holds the settled state once the ticks in flight are done: copies it out and frees the slot.
void state_handout::hand_over(sequence& s) {
  request_record& r = *s.owner;
  const state_key key = r.message.settles_as;
  const bool keeps_slot = r.to_settle->keeps_slot;
  slots_.hand_over(s, key);
  r.to_settle.reset();  // from here on the promise answers the key
  ++settles_;
  if (keeps_slot)
    slots_.keep(s, key);
  else
    slots_.clear(s);
  requests_.erase_settled(r);
}

void state_handout::add_to(scheduler_counts& counts) const {
  counts.copies_taken = copies_taken_;
  counts.copies_refused = copies_refused_;
  counts.settles = settles_;
  counts.settles_back = settles_back_;
}

}  // namespace skein::device
