#include "actors/device/scheduler.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "actors/device/sequence.hpp"
#include "base/check.hpp"

namespace skein::device {

scheduler::scheduler(const scheduler_options& options)
    : options_(options),
      slots_(options.slots, nullptr),
      free_slots_(options.slots, options.keeps_states ? options.vram_states_max : 0) {
  check(options.slots > 0);
  check(options.max_tick_tokens > 0);
  check(options.max_tick_rows > 0);
  check(options.prefill_chunk_tokens > 0);
  check(options.chunk_tokens < options.max_tick_tokens, "a chunk and a decode row fit into a tick");
}

scheduler::~scheduler() = default;

// ---------------------------------------------------------------- messages

void scheduler::handle(submit&& message, steady_time now) {
  if (message.reply_to >= outbox_.size()) outbox_.resize(message.reply_to + 1);
  if (!options_.keeps_states) message.copies.clear();
  if (lost_) return reject(message, lost_why_);
  check(!requests_.contains(message.id), "a request id is used once");
  if (shutting_down_) return reject(message, {error_kind::unavailable, "the server is shutting down", ""});
  if (auto why = objection(message)) return reject(message, std::move(*why));
  // All requests of one delivery are queued before the next plan admits any, so free slots count as room.
  const std::size_t room = free_slots_.free();
  if (waiting_requests_ >= options_.waiting_max + room)
    return reject(message, {error_kind::overloaded, "too many requests are waiting; try again soon", ""});
  if (waiting_.unbegun(message.client) >= options_.waiting_per_client_max + room)
    return reject(message, {error_kind::overloaded, "too many of your requests are waiting; try again soon", ""});

  // Everything that may throw comes before the message is taken, so that it can always be answered.
  auto entry = std::make_unique<request>();
  request& r = *entry;
  r.rows.resize(std::max(message.rows.size(), message.mixture.size()));
  if (message.parts.empty()) message.parts.push_back({static_cast<std::uint32_t>(message.prompt.size()), false});
  news_.reserve(message.copies.size() + 1);
  r.payer = &waiting_.enter(message.client);
  waiting_.push_back(message.client, {message.id, 0});
  requests_.emplace(message.id, std::move(entry));
  r.message = std::move(message);
  r.arrived = now;
  r.rows_left = static_cast<std::uint32_t>(r.rows.size());
  r.forked = r.rows.size() == 1 && !r.mixes();
  for (std::uint32_t i = 0; i < r.rows.size(); ++i) {
    r.rows[i].owner = &r;
    r.rows[i].row = i;
  }
  r.rows[0].queued = true;
  if (options_.keeps_states && r.message.settles_as) {
    if (r.rows.size() == 1 && !r.mixes())
      r.to_settle.emplace();
    else
      news_.refuse(r.message.settles_as);
  }
  if (r.mixes()) {
    refuse_rest(r);
    r.message.from = {};
  }
  note_deadline(r.message.queue_deadline);
  note_deadline(r.message.total_deadline);
  ++waiting_requests_;
  ++r.payer->unbegun;
}

void scheduler::handle(settle&& message, steady_time) {
  request* r = find(message.id);
  if (!r || !r->message.settles_as || r->settling()) return;
  sequence& s = r->rows[0];
  if (!r->admitted || !knows(options_.limits, message.more)) return drop(*r, finish_cause::cancelled);
  check(message.sampled <= s.sampled, "no more tokens are settled than were sampled");
  if (!r->to_settle) {  // there is no state_sink
    if (!s.over) finish(s, finish_cause::cancelled);
    return;
  }
  if (!s.over) end_row(s, finish_cause::cancelled);
  r->to_settle->text = std::move(message);
  if (s.parked && !s.queued) enqueue(s);
}

void scheduler::handle(cancel&& message, steady_time) {
  if (request* r = find(message.id)) {
    ++counts_.cancelled;
    drop(*r, finish_cause::cancelled);
  }
}

void scheduler::handle(cancel_row&& message, steady_time) {
  request* r = find(message.id);
  if (!r || message.row >= r->rows.size() || r->rows[message.row].over) return;
  if (!r->answers(r->rows[message.row])) return;
  check(r->forked || r->mixes(), "no row ends before its request has forked");
  finish(r->rows[message.row], finish_cause::cancelled);
}

void scheduler::handle(pause&& message, steady_time) {
  request* r = find(message.id);
  if (!r || r->paused) return;
  r->paused = true;
  ++paused_;
}

void scheduler::handle(resume&& message, steady_time) {
  request* r = find(message.id);
  if (!r || !r->paused) return;
  r->paused = false;
  --paused_;
  for (auto& s : r->rows)
    if (!s.over && s.parked && !s.queued && r->answers(s)) enqueue(s);
}

void scheduler::handle(forget&& message, steady_time) {
  for (auto& [id, r] : requests_)
    if (r->to_settle && r->message.settles_as.owner == message.owner) r->to_settle->keeps_slot = false;
  while (true) {
    news_.reserve(1);
    forgotten_.reserve(forgotten_.size() + 1);
    const auto went = free_slots_.forget_one(message.owner);
    if (!went) return;
    forgotten_.push_back(went->slot);
    news_.add(state_news::kind::slot_dropped, went->key);
  }
}

void scheduler::handle(change_limits&& message, steady_time) {
  static_cast<config::queue_settings&>(options_) = message.queue;
}

void scheduler::handle(shutdown&& message, steady_time now) {
  shutting_down_ = true;
  shutdown_deadline_ = std::min(shutdown_deadline_, message.deadline);
  note_deadline(shutdown_deadline_);
  std::vector<request*> waiting;
  for (auto& [id, r] : requests_)
    if (!r->admitted) waiting.push_back(r.get());
  for (request* r : waiting) reject(*r, {error_kind::unavailable, "the server is shutting down", ""});
  expire(now);
}

void scheduler::expire(steady_time now) {
  if (now < next_deadline_) return;
  next_deadline_ = now < shutdown_deadline_ ? shutdown_deadline_ : steady_time::max();
  std::vector<request*> late_in_queue, late;
  const bool cut_all = now >= shutdown_deadline_;
  for (auto& [id, r] : requests_) {
    if (cut_all) {
      late.push_back(r.get());
    } else if (r->to_settle && r->rows[0].over) {
      // No deadline any more: the remaining work is bounded.
    } else if (now >= r->message.total_deadline) {
      late.push_back(r.get());
    } else {
      note_deadline(r->message.total_deadline);
      if (r->admitted) continue;
      if (now >= r->message.queue_deadline)
        late_in_queue.push_back(r.get());
      else
        note_deadline(r->message.queue_deadline);
    }
  }
  for (request* r : late_in_queue) reject(*r, {error_kind::timeout, "timed out waiting for a free slot", ""});
  for (request* r : late) {
    if (cut_all)
      drop(*r, finish_cause::shutdown);
    else if (r->to_settle && r->admitted)
      finish(r->rows[0], finish_cause::timeout);
    else
      drop(*r, finish_cause::timeout);
  }
}

void scheduler::lose_device(error why) noexcept {
  if (std::exchange(lost_, true)) return;
  lost_why_ = std::move(why);
}

void scheduler::end_lost() {
  moves_.refuse_all(news_);
  drop_kept();
  while (!requests_.empty()) {
    request& r = *requests_.begin()->second;
    refuse_rest(r);
    if (!r.admitted) reject(r.message, lost_why_);
    for (auto& s : r.rows) {
      if (r.admitted && !s.over && r.answers(s)) emit(r, row_finished{r.message.id, s.row, finish_cause::device_lost});
      s.over = true;
    }
    requests_.erase(requests_.begin());
  }
  waiting_ = {};
  std::ranges::fill(slots_, nullptr);
  free_slots_.reset();
  forgotten_.clear();
  waiting_requests_ = parked_ = paused_ = forks_to_come_ = 0;
  work_.commands.clear();
  work_.plan.clear();
  in_flight_.clear();
  ended_.clear();
}

void scheduler::drop_kept() {
  while (free_slots_.kept() > 0) {
    news_.reserve(1);
    news_.add(state_news::kind::slot_dropped, free_slots_.drop_one()->key);
  }
}

// ---------------------------------------------------------------- results

void scheduler::absorb(const engine::tick_result& result, steady_time) {
  check(!in_flight_.empty(), "a result belongs to a plan");
  std::vector<planned_row> planned = std::move(in_flight_.front());
  in_flight_.erase(in_flight_.begin());
  check(planned.size() == result.rows.size(), "a result has one row per planned row");

  for (std::size_t i = 0; i < planned.size(); ++i) {
    const auto& [who, last_without_sample] = planned[i];
    const engine::row_result& row = result.rows[i];
    request* r = find(who.id);
    if (!r) continue;  // it ended while the tick ran
    sequence& s = r->rows[who.row];
    --s.in_flight;
    if (row.sampled && r->to_settle) r->to_settle->sampled.push_back(row.token);
    if (s.over || !r->answers(s)) continue;
    if (!row.finite) {
      drop(*r, finish_cause::not_finite);
      continue;
    }
    if (!row.scores.empty()) emit(*r, prompt_scored{who.id, row.scores});
    if (row.sampled) {
      token t{who.id, who.row, s.sampled, row.token, nullptr};
      if (r->params(s).logprobs) t.logprobs = std::make_unique<sampling::token_logprobs>(row.logprobs);
      emit(*r, std::move(t));
      ++s.sampled;
      ++s.sampled_this_turn;
      ++counts_.generated_tokens;
      waiting_.charge(*r->payer, 1);
    }
    if (row.stopped == engine::stop_cause::stop_id)
      finish(s, finish_cause::stop_id);
    else if (row.stopped == engine::stop_cause::budget || last_without_sample)
      finish(s, finish_cause::budget);
  }
  spare_plans_.push_back(std::move(planned));
}

// ---------------------------------------------------------------- slots, ends, events

/// True if the slot holds the wanted state.
bool scheduler::take_slot(sequence& s, const state_key& wanted) {
  check(!s.slot.has_value());
  news_.reserve(1);
  const auto taken = free_slots_.take(wanted);
  if (taken.dropped) news_.add(state_news::kind::slot_dropped, taken.dropped);
  slots_[taken.slot] = &s;
  ++s.owner->payer->slots;
  s.slot = taken.slot;
  s.sampled_this_turn = 0;
  return taken.hit;
}

void scheduler::release(sequence& s) {
  slots_[*s.slot] = nullptr;
  --s.owner->payer->slots;
  free_slots_.give_back(*s.slot);
  s.slot.reset();
}

void scheduler::enqueue(sequence& s) {
  check(!s.queued);
  s.queued = true;
  waiting_.push_back(s.owner->message.client, {s.owner->message.id, s.row});
}

void scheduler::dequeue(sequence& s) {
  if (!std::exchange(s.queued, false)) return;
  waiting_.remove_if([&](const row_reference& w) { return w.id == s.owner->message.id && w.row == s.row; });
}

/// The sequence is no longer parked.
void scheduler::leave_outside(sequence& s) {
  s.parked = nullptr;
  --parked_;
}

/// The request has forked, or never will.
void scheduler::settle_fork(request& r) {
  if (std::exchange(r.fork_to_come, false)) --forks_to_come_;
}

void scheduler::end_row(sequence& s, finish_cause cause) {
  check(!s.over);
  // First, because it may throw: then the row has not ended.
  if (s.owner->answers(s)) emit(*s.owner, row_finished{s.owner->message.id, s.row, cause});
  s.over = true;
}

/// Ends the row. If its state is to be settled, the state stays in place until the text is decided.
void scheduler::finish(sequence& s, finish_cause cause) {
  if (s.owner->mixes()) return drop(*s.owner, cause);
  end_row(s, cause);
  if (s.owner->to_settle && s.owner->admitted)
    dequeue(s);
  else
    leave(s);
}

/// Releases everything that the row holds. The last row of a request erases the request.
void scheduler::leave(sequence& s) {
  request& r = *s.owner;
  if (s.slot) release(s);
  if (s.parked) leave_outside(s);
  dequeue(s);
  if (--r.rows_left == 0) {
    ++counts_.finished;
    erase(r);
  }
}

/// Ends all rows that run, wait or settle.
void scheduler::drop(request& r, finish_cause cause) {
  const std::size_t rows = r.rows.size();
  const request_id id = r.message.id;
  for (std::size_t i = 0; i < rows && find(id); ++i) {  // the last row erases the request
    sequence& s = r.rows[i];
    if (s.over && !r.to_settle) continue;
    if (!s.over) end_row(s, cause);
    leave(s);
  }
}

void scheduler::erase(request& r) {
  refuse_rest(r);
  settle_fork(r);
  if (!r.admitted) {
    --waiting_requests_;
    --r.payer->unbegun;
    dequeue(r.rows[0]);
  }
  if (r.paused) --paused_;
  waiting_.leave(r.message.client);
  ended_.emplace_back();
  ended_.back() = std::move(requests_.extract(r.message.id).mapped());
}

scheduler::request* scheduler::find(request_id id) {
  const auto it = requests_.find(id);
  return it == requests_.end() ? nullptr : it->second.get();
}

void scheduler::emit(const request& r, event e) { outbox_[r.message.reply_to].items.push_back(std::move(e)); }

/// Why a new request is rejected, if it is; removes states of weight 0 from its mixture.
std::optional<error> scheduler::objection(submit& message) const {
  const auto fits = [this](const beginning& from) {
    return !from.state || from.state->size() == options_.state_floats;
  };
  if (!fits(message.from)) return error{error_kind::internal, "the initial state has the wrong size", ""};
  if (auto no = beyond(options_.limits, message)) return no;
  std::size_t tokens = 0;
  for (const engine::prompt_part& part : message.parts) tokens += part.tokens;
  if (!message.parts.empty() && tokens != message.prompt.size())
    return error{error_kind::internal, "the parts of the prompt do not add up to the prompt", ""};
  if (message.mixture.empty()) return {};

  float weights = 0;
  for (const weighted_beginning& part : message.mixture) {
    if (!fits(part.from)) return error{error_kind::internal, "a state of the mixture has the wrong size", ""};
    if (part.from.key && !part.from.state)
      return error{error_kind::unavailable, "a state of the mixture is not available", ""};
    if (!(part.weight >= 0))
      return error{error_kind::invalid_argument, "mixture: a weight is negative or not a number", ""};
    weights += part.weight;
  }
  if (!std::isfinite(weights) || weights <= 0)
    return error{error_kind::invalid_argument, "mixture: the sum of the weights is not positive and finite", ""};
  if (message.rows.size() != 1 || message.score_prompt)
    return error{error_kind::unsupported, "mixture: several answers and prompt scores are not supported", ""};
  std::erase_if(message.mixture, [](const weighted_beginning& part) { return part.weight == 0; });
  const std::uint32_t most =
      std::min({options_.mixture_max, options_.slots, options_.max_tick_rows, max_decode_rows()});
  if (message.mixture.size() > most)
    return error{error_kind::too_large, "mixture: too many states; at most " + std::to_string(most) + " are accepted",
                 ""};
  return {};
}

/// Rejects a request that was queued and not admitted.
void scheduler::reject(request& r, error why) {
  refuse_rest(r);  // may throw, so it comes before the answer
  reject(r.message, std::move(why));
  erase(r);
}

/// Rejects a request that was not queued, or whose keys were answered already.
void scheduler::reject(const submit& message, error why) {
  const bool known = requests_.contains(message.id);
  if (!known) news_.reserve(message.copies.size() + 1);
  outbox_[message.reply_to].items.push_back(rejected{message.id, std::move(why)});
  ++counts_.rejected;
  if (known) return;
  for (const wanted_copy& c : message.copies) news_.refuse(c.key);
  if (options_.keeps_states && message.settles_as) news_.refuse(message.settles_as);
}

/// Answers the remaining keys without a state.
void scheduler::refuse_rest(request& r) {
  for (; r.next_copy < r.message.copies.size(); ++r.next_copy) news_.refuse(r.message.copies[r.next_copy].key);
  if (r.to_settle) news_.refuse(r.message.settles_as);
  r.to_settle.reset();
}

void scheduler::absorb(const engine::moved_states& moved) { moves_.moved(moved, news_); }

void scheduler::note_deadline(steady_time t) { next_deadline_ = std::min(next_deadline_, t); }

scheduler_counts scheduler::counts() const {
  scheduler_counts c = counts_;
  c.slots_used = options_.slots - static_cast<std::uint32_t>(free_slots_.free());
  c.slots_kept = free_slots_.kept();
  c.waiting = waiting_requests_;
  c.waiting_max = options_.waiting_max;
  c.parked = parked_;
  c.paused = paused_;
  c.parked_bytes = states_outside_ * options_.state_floats * sizeof(float);
  c.undo_bytes = undo_states_ * options_.state_floats * sizeof(float);
  c.requests = static_cast<std::uint32_t>(requests_.size());
  return c;
}

void scheduler::self_check() const {
  std::uint32_t used = 0, queued = 0, parked = 0, paused = 0, waiting = 0, forks = 0, undo = 0, in_flight = 0,
                rows_planned = 0;
  std::set<const outside_state*> outside;
  std::map<const fair_queue<row_reference>::account*, std::uint32_t> held;
  for (slot_id i = 0; i < slots_.size(); ++i) {
    if (!slots_[i]) continue;
    ++used;
    ++held[slots_[i]->owner->payer];
    check(slots_[i]->slot == i, "a sequence knows its slot");
    check(!slots_[i]->over || slots_[i]->owner->to_settle, "an ended row that does not settle holds no slot");
  }
  for (const auto& [id, r] : requests_) {
    std::uint32_t left = 0;
    if (!r->admitted) ++waiting;
    if (r->paused) ++paused;
    if (r->fork_to_come) ++forks;
    if (r->to_settle && r->to_settle->prompt_end) ++undo;
    for (const auto& s : r->rows) {
      left += s.over && !r->to_settle ? 0 : 1;
      queued += s.queued ? 1 : 0;
      parked += s.parked ? 1 : 0;
      in_flight += s.in_flight;
      if (s.parked) outside.insert(s.parked.get());
      check(!(s.slot && s.parked), "a state has one authoritative copy");
      check(!(s.slot && s.queued), "a sequence with a slot does not wait");
      check(!(s.over && s.queued) || r->settling(), "an ended row waits only to be settled");
    }
    check(left == r->rows_left, "rows are counted");
    check(r->payer->slots == held[r->payer], "slots of clients are counted");
  }
  for (const auto& plan : in_flight_)
    for (const auto& row : plan) rows_planned += requests_.contains(row.who.id) ? 1 : 0;
  check(used + free_slots_.free() == slots_.size(), "slots are used or free");
  check(queued == waiting_.size(), "waiting sequences are in the queue");
  check(parked == parked_, "parked sequences are counted");
  check(paused == paused_, "paused requests are counted");
  check(waiting == waiting_requests_, "waiting requests are counted");
  check(forks == forks_to_come_, "forks to come are counted");
  check(undo == undo_states_, "states to return to are counted");
  check(in_flight == rows_planned, "rows in flight are counted");
  check(outside.size() == states_outside_, "states outside are counted");
  check(moves_.optional() <= options_.copies_max, "wanted copies are limited");
}

}  // namespace skein::device
