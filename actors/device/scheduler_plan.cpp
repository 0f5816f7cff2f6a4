#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "actors/device/scheduler.hpp"
#include "actors/device/sequence.hpp"
#include "base/check.hpp"

/// The scheduler's next tick: which sequences get a slot, are parked, decode or prefill, and how much.
namespace skein::device {

const tick_work& scheduler::plan(steady_time now, std::span<const std::uint8_t> congested) {
  work_.commands.clear();
  work_.plan.clear();
  ended_.clear();
  if (lost_) return work_;
  moves_.issue(work_.commands);  // first: these copies are of the slots as the previous tick leaves them
  for (const slot_id slot : forgotten_) work_.commands.push_back(clear_slot{slot});
  forgotten_.clear();
  for (sequence* s : slots_) {
    if (!s) continue;
    if (can_fork(*s->owner)) fork_rows(*s->owner);
    advance_settling(*s);
  }
  // A sequence restored only to be settled may end at once and free what others wait for. Admit until none does, since
  // after a plan without rows there is no other plan until an event.
  for (auto before = ~counts_.finished; before != counts_.finished;) {
    before = counts_.finished;
    admit(now);
  }

  std::vector<planned_row> rows;
  if (!spare_plans_.empty()) {
    rows = std::move(spare_plans_.back());
    spare_plans_.pop_back();
    rows.clear();
  }
  in_flight_.push_back(std::move(rows));
  plan_rows(congested);
  if (work_.plan.rows.empty()) {
    spare_plans_.push_back(std::move(in_flight_.back()));
    in_flight_.pop_back();
  }
  return work_;
}

/// A sequence whose state has not arrived does not delay others; if there are no others, the engine may wait for it.
void scheduler::plan_rows(std::span<const std::uint8_t> congested) {
  waits_for_arrivals_ = false;
  plan_decode(congested);
  plan_prefill(congested);
  if (!work_.plan.rows.empty() || in_flight_.size() > 1 || moves_.coming() == 0) return;
  waits_for_arrivals_ = true;
  plan_decode(congested);
  plan_prefill(congested);
}

void scheduler::admit(steady_time now) {
  std::vector<sequence*> put_back;
  bool saving = false;  // saves memory for a request further ahead that waits for it
  for (bool room = true; room && !waiting_.empty();) {
    const row_reference next = waiting_.pop();
    request* r = find(next.id);
    check(r != nullptr, "a waiting request exists");
    sequence& s = r->rows[next.row];
    if (r->paused && s.parked && !s.over) {
      s.queued = false;  // queued again when its reader resumes
      continue;
    }
    if (lacks_beginning(*r)) {
      s.queued = false;
      reject(*r, {error_kind::unavailable, "the initial state is no longer available", ""});
      continue;
    }
    if (lacks_memory(*r)) {
      put_back.push_back(&s);  // requests behind it may need no memory, or return some
      saving = true;
      continue;
    }
    if (lacks_state(*r, s)) {
      put_back.push_back(&s);  // retry in the next plan
      continue;
    }
    // While memory is saved, another sequence is parked only for one that is restored.
    while (free_slots_.free() < r->slots_at_once() && (!saving || s.parked) && make_room(*r)) {
    }
    room = free_slots_.free() >= r->slots_at_once();
    if (room) {
      s.queued = false;
      place(s, now);
    } else {
      put_back.push_back(&s);
    }
  }
  for (; !put_back.empty(); put_back.pop_back())
    waiting_.unpop(put_back.back()->owner->message.client, {put_back.back()->owner->message.id, put_back.back()->row});
}

/// A new request of several rows may soon keep a state outside, and one more if a sequence is parked for it.
bool scheduler::lacks_memory(const request& r) const {
  if (r.admitted || r.message.rows.size() == 1) return false;
  return states_outside_ + forks_to_come_ > 0 && !fits_outside(free_slots_.free() == 0 ? 2 : 1);
}

bool scheduler::fits_outside(std::size_t more_states) const {
  const std::size_t state_bytes = options_.state_floats * sizeof(float);
  return (states_outside_ + forks_to_come_ + more_states) * state_bytes <= options_.parked_bytes_max;
}

/// The parked state has not left yet, or too many states are in transfer into slots.
bool scheduler::lacks_state(const request& r, const sequence& s) const {
  const auto leaves = [this](const sequence& one) { return one.parked && !moves_.has_left(one.parked->buffer); };
  if (leaves(s) || (r.mixes() && std::ranges::any_of(r.rows, leaves))) return true;
  const auto brings = [this](const weighted_beginning& part) { return part.from.state != nullptr; };
  const beginning& from = r.message.from;
  const bool comes = s.parked || (from.state && !(from.key && free_slots_.holds(from.key))) ||
                     std::ranges::any_of(r.message.mixture, brings);
  return comes && !may_come(r.slots_at_once());
}

/// Its state was only in a slot, which was reassigned meanwhile.
bool scheduler::lacks_beginning(const request& r) const {
  const beginning& from = r.message.from;
  return !r.admitted && from.key && !from.state && !free_slots_.holds(from.key);
}

/// Gives a slot to a waiting sequence, new or parked.
void scheduler::place(sequence& s, steady_time now) {
  request& r = *s.owner;
  const std::span together = r.mixes() ? std::span(r.rows) : std::span(&s, 1);
  if (s.parked) {
    for (sequence& one : together) {
      take_slot(one, {});
      bring_back(one, one.parked->buffer);
      leave_outside(one);
    }
    return advance_settling(s);
  }
  for (sequence& one : together) begin(one);
  emit(r, admitted{r.message.id, std::chrono::duration_cast<std::chrono::microseconds>(now - r.arrived)});
  r.admitted = true;
  --waiting_requests_;
  --r.payer->unbegun;
  if (!r.forked && !r.mixes()) {
    r.fork_to_come = true;
    ++forks_to_come_;
  }
  counts_.prompt_tokens += r.prompt_tokens();
  waiting_.charge(*r.payer, r.prompt_tokens());
  if (can_fork(r)) fork_rows(r);  // several rows of a one-token prompt: nothing to share
}

void scheduler::begin(sequence& s) {
  request& r = *s.owner;
  if (take_slot(s, r.from(s).key)) {
    work_.commands.push_back(restart_slot{*s.slot, &r.params(s)});
    ++counts_.kept_hits;
  } else {
    begin_afresh(s);
  }
  if (!r.to_settle) r.from(s).state = nullptr;  // settling may have to begin again from this state
}

void scheduler::begin_afresh(sequence& s) {
  request& r = *s.owner;
  work_.commands.push_back(start_slot{*s.slot, &r.params(s)});
  const state_buffer& state = r.from(s).state;
  if (!state) return;
  ++counts_.states_written;
  work_.commands.push_back(write_slot{*s.slot, state});
  s.arrival = moves_.come(state);
}

void scheduler::bring_back(sequence& s, const state_moves::buffer& from) {
  work_.commands.push_back(unpark_slot{*s.slot, &s.owner->params(s), from});
  s.arrival = moves_.come(from);
}

/// Row 0 has fed all it may, its state is in the slot, and a copy of it may leave.
bool scheduler::can_fork(const request& r) const {
  const sequence& first = r.rows[0];
  return !r.forked && !r.mixes() && first.fed == r.feed_limit() && is_here(first) && may_leave(1);
}

/// Row 0 has fed all but the last prompt token: copies its state for the other rows. Rows without a free slot wait,
/// parked, with a copy outside.
void scheduler::fork_rows(request& r) {
  const slot_id from = *r.rows[0].slot;
  std::shared_ptr<outside_state> outside;
  r.forked = true;
  settle_fork(r);
  for (std::size_t i = 1; i < r.rows.size(); ++i) {
    sequence& s = r.rows[i];
    s.fed = r.prompt_tokens() - 1;
    if (free_slots_.free() > 0) {
      take_slot(s, {});
      work_.commands.push_back(start_slot{*s.slot, &r.params(s)});
      work_.commands.push_back(copy_slot{from, *s.slot});
      continue;
    }
    if (!outside) {
      outside = std::make_shared<outside_state>(states_outside_, options_.state_floats);
      moves_.leave(work_.commands, from, outside->buffer);
    }
    s.parked = outside;
    ++parked_;
    enqueue(s);
  }
}

/// Frees slots for a waiting request: parks a sequence whose reader is slow, else one that has had its turn. False if
/// none can be parked.
///
/// Each client's fair number of slots is the number of slots divided by the number of clients, rounded down. A client
/// that holds at most this number and was served fewer tokens than the waiting client keeps its slots after a turn too,
/// unless the waiting request needs more than the fair number at once. And a client with less than its fair number that
/// was served fewer tokens, by more than a turn, takes slots from a client that holds more, before that turn has ended.
bool scheduler::make_room(const request& waits) {
  const std::size_t fair = slots_.size() / std::max(1u, waiting_.clients());
  const auto& taker = *waits.payer;
  const bool fits_share = waits.slots_at_once() <= fair;
  const bool lacks_slots = taker.slots + waits.slots_at_once() <= fair;
  sequence* best = nullptr;
  for (sequence* s : slots_) {
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
  ++counts_.preemptions;
  request& r = *best->owner;
  for (sequence& s : r.mixes() ? std::span(r.rows) : std::span(best, 1)) park(s);
  if (!r.paused) enqueue(*best);
  return true;
}

/// Whether it is decoding, and there is room outside for all states parked with it.
bool scheduler::can_park(const sequence& s) const {
  const std::size_t states = s.owner->slots_at_once();
  return can_decode(s) && s.samples_planned > 0 && is_here(s) && parked_ + states <= options_.parked_max &&
         fits_outside(states) && may_leave(states);
}

bool scheduler::is_here(const sequence& s) const { return moves_.has_come(s.arrival); }

/// A single transfer may always start, even if the engine has less room than it needs.
bool scheduler::may_leave(std::size_t more) const {
  return moves_.leaving() == 0 || moves_.leaving() + more <= options_.leaving_max;
}

bool scheduler::may_come(std::size_t more) const {
  return moves_.coming() == 0 || moves_.coming() + more <= options_.coming_max;
}

void scheduler::park(sequence& s) {
  s.parked = std::make_shared<outside_state>(states_outside_, options_.state_floats);
  ++parked_;
  moves_.leave(work_.commands, *s.slot, s.parked->buffer);
  release(s);
}

bool scheduler::resting(const sequence& s, std::span<const std::uint8_t> congested) const {
  const auto comes = [this](const sequence& one) { return !is_here(one); };
  if (!waits_for_arrivals_ && (s.owner->mixes() ? std::ranges::any_of(s.owner->rows, comes) : comes(s))) return true;
  if (s.over) return false;  // settling does not depend on a reader
  const std::uint32_t to = s.owner->message.reply_to;
  return s.owner->paused || (to < congested.size() && congested[to] != 0);
}

bool scheduler::can_decode(const sequence& s) const {
  const request& r = *s.owner;
  if (s.over || !r.answers(s)) return false;
  if (s.samples_planned > 0) return s.samples_planned < r.params(s).max_tokens;
  // The sequences of a mixture sample once each has fed all but the last token of the prompt.
  return r.mixes() && std::ranges::all_of(r.rows, [&](const sequence& one) { return one.fed == r.feed_limit(); });
}

bool scheduler::can_prefill(const sequence& s) const {
  const request& r = *s.owner;
  return s.fed < r.feed_limit() && (!s.over || r.feeds_text());
}

/// Whether the next piece of a prompt needs room for a chunk, so that it does not wait until answers have ended.
bool scheduler::awaits_chunk(std::span<const std::uint8_t> congested) const {
  if (options_.chunk_tokens == 0) return false;
  return std::ranges::any_of(slots_, [&](const sequence* s) {
    return s && can_prefill(*s) && !resting(*s, congested) && next_piece(*s, options_.chunk_tokens).chunked > 0;
  });
}

void scheduler::plan_decode(std::span<const std::uint8_t> congested) {
  const std::uint32_t room = awaits_chunk(congested) ? max_decode_rows() : options_.max_tick_tokens;
  const std::uint32_t ceiling = std::min(options_.max_tick_rows, room);
  const auto count = static_cast<std::uint32_t>(slots_.size());
  std::uint32_t i = 0;
  for (; i < count && work_.plan.rows.size() < ceiling; ++i) {
    sequence* s = slots_[(decode_turn_ + i) % count];
    if (!s || !can_decode(*s) || resting(*s, congested)) continue;
    if (work_.plan.rows.size() + s->owner->slots_at_once() > ceiling) break;  // first in the next tick
    if (s->owner->mixes()) {
      plan_mixture(*s->owner);
      continue;
    }
    engine::row row;
    row.slot = *s->slot;
    row.kind = engine::row_kind::decode;
    row.sample = true;
    plan_row(*s, row, false);
    ++s->samples_planned;
  }
  decode_turn_ = (decode_turn_ + i) % count;
}

/// One row for each state of a mixture, as a group: feeds the last token of the prompt, or the last sampled token.
void scheduler::plan_mixture(request& r) {
  for (sequence& s : r.rows) {
    engine::row row;
    row.slot = *s.slot;
    row.sample = true;
    row.group = *r.rows[0].slot + 1;
    row.weight = r.message.mixture[s.row].weight;
    if (s.fed < r.prompt_tokens()) {
      row.kind = engine::row_kind::prefill;
      row.first_token = static_cast<std::uint32_t>(work_.plan.tokens.size());
      row.tokens = 1;
      work_.plan.tokens.push_back(r.message.prompt[s.fed++]);
    }
    ++s.samples_planned;
    plan_row(s, row, false);
  }
}

void scheduler::plan_prefill(std::span<const std::uint8_t> congested) {
  const auto decoding = static_cast<std::uint32_t>(work_.plan.rows.size());
  std::uint32_t budget = options_.max_tick_tokens - decoding;
  if (decoding > 0) budget = std::min(budget, std::max(options_.prefill_chunk_tokens, options_.chunk_tokens));
  const auto count = static_cast<std::uint32_t>(slots_.size());
  std::optional<slot_id> too_long;  // its chunk does not fit into the rest of this tick: first in the next one
  for (std::uint32_t i = 0; i < count && budget > 0 && work_.plan.rows.size() < options_.max_tick_rows; ++i) {
    const std::uint32_t slot = (prefill_turn_ + i) % count;
    sequence* s = slots_[slot];
    if (!s || !can_prefill(*s) || resting(*s, congested)) continue;
    const std::uint32_t planned = plan_prefill_row(*s, budget);
    if (planned == 0 && !too_long) too_long = slot;
    budget -= planned;
    if (budget == 0) prefill_turn_ = (slot + 1) % count;
  }
  if (too_long) prefill_turn_ = *too_long;
}

/// The next piece of the prompt, or of the text that replaces it; ends at a wanted copy, unless that is inside a chunk.
engine::prompt_piece scheduler::next_piece(const sequence& s, std::uint32_t budget) const {
  const request& r = *s.owner;
  const std::span parts(r.message.parts);
  std::uint32_t end = r.feed_limit();
  if (s.row == 0) {
    const auto ahead = std::span(r.message.copies).subspan(r.next_copy);
    const auto next = std::ranges::find_if(ahead, [&](const wanted_copy& c) {
      return c.position > s.fed && engine::may_cut(parts, options_.chunk_tokens, c.position);
    });
    if (next != ahead.end()) end = std::min(end, next->position);
  }
  return engine::next_piece(parts, options_.chunk_tokens, s.fed, end, budget);
}

/// Returns the number of planned tokens: 0 if the next chunk does not fit.
std::uint32_t scheduler::plan_prefill_row(sequence& s, std::uint32_t budget) {
  const request& r = *s.owner;
  const auto [count, chunked] = next_piece(s, budget);
  if (count == 0) return 0;
  const auto first = r.message.prompt.begin() + s.fed;
  engine::row row;
  row.slot = *s.slot;
  row.kind = r.message.score_prompt && s.row == 0 && !s.over ? engine::row_kind::score : engine::row_kind::prefill;
  row.score_top = r.message.score_top;
  row.first_token = static_cast<std::uint32_t>(work_.plan.tokens.size());
  row.tokens = count, row.chunked = chunked;
  work_.plan.tokens.insert(work_.plan.tokens.end(), first, first + count);
  s.fed += count;
  if (r.message.fed && s.row == 0 && !s.over) r.message.fed->fetch_add(count, std::memory_order_relaxed);
  const bool last = s.fed == r.prompt_tokens();
  if (!last) row.score_next = r.message.prompt[s.fed];
  row.sample = last && !s.over && r.params(s).max_tokens > 0;
  if (row.sample) ++s.samples_planned;
  plan_row(s, row, last && !s.over && !row.sample);
  if (s.row == 0) copy_out(s);
  return count;
}

void scheduler::plan_row(sequence& s, const engine::row& row, bool last_without_sample) {
  work_.plan.rows.push_back(row);
  in_flight_.back().push_back({{s.owner->message.id, s.row}, last_without_sample});
  ++s.in_flight;
}

}  // namespace skein::device
