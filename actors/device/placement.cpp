#include "actors/device/placement.hpp"

#include <algorithm>
#include <memory>
#include <span>

namespace skein::device {

void placement::assign(steady_time now) {
  // A sequence restored only to be settled may end at once and free what others wait for. Continue until none does,
  // since after a plan without rows there is no other plan until an event.
  for (auto before = ~requests_.finished(); before != requests_.finished();) {
    before = requests_.finished();
    assign_once(now);
  }
}

void placement::assign_once(steady_time now) {
  put_back_.clear();
  bool saving = false;  // saves memory for a request further ahead that waits for it
  for (bool room = true; room && !requests_.none_waits();) {
    sequence& s = requests_.pop();
    request_record& r = *s.owner;
    if (r.paused && s.place.is_parked() && !s.over()) {
      s.place.stop_waiting();  // queued again when its reader resumes
      continue;
    }
    if (lacks_beginning(r)) {
      requests_.reject(r, {error_kind::unavailable, "the initial state is no longer available", ""});
      continue;
    }
    if (lacks_memory(r)) {
      put_back_.push_back(&s);  // requests behind it may need no memory, or return some
      saving = true;
      continue;
    }
    if (lacks_state(r, s)) {
      put_back_.push_back(&s);  // retry in the next plan
      continue;
    }
    // While memory is saved, another sequence is parked only for one that is restored.
    while (slots_.free() < r.slots_at_once() && (!saving || s.place.is_parked()) && make_room(r)) {
    }
    room = slots_.free() >= r.slots_at_once();
    if (room)
      place(s, now);
    else
      put_back_.push_back(&s);
  }
  for (; !put_back_.empty(); put_back_.pop_back()) requests_.put_back(*put_back_.back());
}

/// A new request of several rows may soon keep a state outside, and one more if a sequence is parked for it.
bool placement::lacks_memory(const request_record& r) const {
  if (r.admitted() || r.message.rows.size() == 1) return false;
  const outside_states& outside = slots_.outside();
  return !outside.none() && !outside.fits(slots_.free() == 0 ? 2 : 1, options_.parked_bytes_max);
}

/// The parked state has not left yet, or too many states are in transfer into slots.
bool placement::lacks_state(const request_record& r, const sequence& s) const {
  const auto leaves = [this](const sequence& one) {
    return one.place.is_parked() && !slots_.moves().has_left(one.place.copy()->buffer);
  };
  if (leaves(s) || (r.mixes() && std::ranges::any_of(r.rows, leaves))) return true;
  const auto brings = [](const weighted_beginning& part) { return part.from.state != nullptr; };
  const beginning& from = r.message.from;
  const bool comes = s.place.is_parked() || (from.state && !(from.key && slots_.holds(from.key))) ||
                     std::ranges::any_of(r.message.mixture, brings);
  return comes && !slots_.may_come(r.slots_at_once());
}

/// Its state was only in a slot, which was reassigned meanwhile.
bool placement::lacks_beginning(const request_record& r) const {
  const beginning& from = r.message.from;
  return !r.admitted() && from.key && !from.state && !slots_.holds(from.key);
}

/// Gives a slot to a waiting sequence, new or parked.
void placement::place(sequence& s, steady_time now) {
  request_record& r = *s.owner;
  const std::span together = r.mixes() ? std::span(r.rows) : std::span(&s, 1);
  if (s.place.is_parked()) {
    for (sequence& one : together) slots_.restore(one);
    return handout_.advance(s);
  }
  for (sequence& one : together) slots_.begin(one);
  requests_.admit(r, now);
  fork_if_ready(r);  // several rows of a one-token prompt: nothing to share
}

/// Row 0 has fed all it may, its state is in the slot, and a copy of it may leave.
void placement::fork_if_ready(request_record& r) {
  const sequence& first = r.rows[0];
  if (r.phase() != request_phase::sharing || first.fed != r.feed_limit()) return;
  if (slots_.is_here(first) && slots_.may_leave(1)) fork_rows(r);
}

/// Row 0 has fed all but the last prompt token: copies its state for the other rows. Rows without a free slot wait,
/// parked, with a copy outside.
void placement::fork_rows(request_record& r) {
  const sequence& first = r.rows[0];
  std::shared_ptr<outside_state> outside;
  r.enter(request_phase::running);
  slots_.outside().settle_fork();
  for (std::size_t i = 1; i < r.rows.size(); ++i) {
    sequence& s = r.rows[i];
    s.fed = r.prompt_tokens() - 1;
    if (slots_.free() > 0) {
      slots_.begin_as(s, first);
      continue;
    }
    if (!outside) outside = slots_.copy_out(first);
    slots_.park_in(s, outside);
    requests_.enqueue(s);
  }
}

/// Frees slots for a waiting request: parks a sequence whose reader is slow, else one that has had its turn. False if
/// none can be parked.
///
/// Each client's fair number of slots is the number of slots divided by the number of clients, rounded down. A client
/// that holds at most this number and was served fewer tokens than the waiting client keeps its slots after a turn too,
/// unless the waiting request needs more than the fair number at once. And a client with less than its fair number that
/// was served fewer tokens, by more than a turn, takes slots from a client that holds more, before that turn has ended.
bool placement::make_room(const request_record& waits) {
  const std::size_t fair = slots_.sequences().size() / std::max(1u, requests_.clients());
  const auto& taker = *waits.payer;
  const bool fits_share = waits.slots_at_once() <= fair;
  const bool lacks_slots = taker.slots + waits.slots_at_once() <= fair;
  sequence* best = nullptr;
  for (sequence* s : slots_.sequences()) {
    if (!s || !can_park(*s)) continue;
    if (s->owner->paused) {
      best = s;
      break;
    }
    const auto& giver = *s->owner->payer;
    if (fits_share && giver.slots <= fair && giver.served < taker.served) continue;
    const bool holds_more = lacks_slots && giver.slots > fair && giver.served > taker.served + options_.turn_tokens;
    if (s->sampled_this_turn < options_.turn_tokens && !holds_more) continue;
    if (!best || s->sampled_this_turn > best->sampled_this_turn) best = s;
  }
  if (!best) return false;
  ++preemptions_;
  request_record& r = *best->owner;
  for (sequence& s : r.mixes() ? std::span(r.rows) : std::span(best, 1)) slots_.park(s);
  if (!r.paused) requests_.enqueue(*best);
  return true;
}

/// Whether it is decoding, and there is room outside for all states parked with it.
bool placement::can_park(const sequence& s) const {
  const std::size_t states = s.owner->slots_at_once();
  return s.can_decode() && s.samples_planned > 0 && slots_.is_here(s) &&
         slots_.parked() + states <= options_.parked_max && slots_.outside().fits(states, options_.parked_bytes_max) &&
         slots_.may_leave(states);
}

}  // namespace skein::device
