#include "actors/device/scheduler.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/check.hpp"

namespace skein::device {

/// A state that was copied out of the engine; counts while sequences hold it. Its buffer may live a little longer,
/// until no queued command can touch it.
class scheduler::outside_state {
 public:
  outside_state(std::uint32_t& count, std::size_t floats)
      : buffer(std::make_shared<engine::parked_sequence>()), count_(count) {
    buffer->state.resize(floats);
    ++count_;
  }
  ~outside_state() { --count_; }
  outside_state(const outside_state&) = delete;  // would count twice
  outside_state& operator=(const outside_state&) = delete;

  const std::shared_ptr<engine::parked_sequence> buffer;

 private:
  std::uint32_t& count_;
};

struct scheduler::sequence {
  request* owner = nullptr;
  std::uint32_t row = 0;
  bool queued = false;  // stands in waiting_
  bool over = false;
  std::optional<slot_id> slot;
  std::uint32_t fed = 0;            // prompt tokens planned so far
  std::uint32_t draws_planned = 0;  // at most max_tokens
  std::uint32_t drawn = 0;          // reported
  std::uint32_t drawn_this_turn = 0;
  std::shared_ptr<outside_state> parked;  // set while the state is copied out; rows that forked share one
};

struct scheduler::request {
  submit message;
  steady_time arrived{};
  bool admitted = false;
  bool forked = false;  // rows 1.. have their state; true from the start for a single row
  bool paused = false;
  bool fork_to_come = false;  // counted in forks_to_come_
  std::uint32_t rows_left = 0;
  std::vector<sequence> rows;

  [[nodiscard]] std::uint32_t prompt_tokens() const { return static_cast<std::uint32_t>(message.prompt.size()); }
  [[nodiscard]] const sampling::sampling_params& params(const sequence& s) const { return message.rows[s.row]; }
  /// How much of the prompt a row may feed now: all but the last token until the rows have forked.
  [[nodiscard]] std::uint32_t feed_limit() const { return forked ? prompt_tokens() : prompt_tokens() - 1; }
};

scheduler::scheduler(const scheduler_options& options) : options_(options), slots_(options.slots, nullptr) {
  check(options.slots > 0);
  check(options.max_tick_tokens > 0);
  check(options.max_tick_rows > 0);
  check(options.prefill_chunk_tokens > 0);
  for (slot_id i = options.slots; i-- > 0;) free_slots_.push_back(i);
}

scheduler::~scheduler() = default;

// ---------------------------------------------------------------- messages

void scheduler::handle(submit&& message, steady_time now) {
  if (message.reply_to >= outbox_.size()) outbox_.resize(message.reply_to + 1);
  if (lost_) return reject(message, lost_why_);
  check(!message.prompt.empty(), "a prompt holds at least one token");
  check(!message.rows.empty(), "a request has at least one row");
  check(!requests_.contains(message.id), "a request id is used once");
  if (shutting_down_) return reject(message, {error_kind::unavailable, "the server is shutting down", ""});
  // What comes in one delivery queues up before the next plan admits it: free slots count as room.
  const std::size_t room = free_slots_.size();
  if (waiting_requests_ >= options_.waiting_max + room)
    return reject(message, {error_kind::overloaded, "too many requests are waiting; try again soon", ""});
  if (waiting_.size_of(message.client) >= options_.waiting_per_client_max + room)
    return reject(message, {error_kind::overloaded, "too many of your requests are waiting; try again soon", ""});

  // All that may throw comes before the message is taken, so that somebody can always answer it.
  auto entry = std::make_unique<request>();
  request& r = *entry;
  r.rows.resize(message.rows.size());
  waiting_.push_back(message.client, {message.id, 0});
  requests_.emplace(message.id, std::move(entry));
  r.message = std::move(message);
  r.arrived = now;
  r.rows_left = static_cast<std::uint32_t>(r.rows.size());
  r.forked = r.rows.size() == 1;
  for (std::uint32_t i = 0; i < r.rows.size(); ++i) {
    r.rows[i].owner = &r;
    r.rows[i].row = i;
  }
  r.rows[0].queued = true;
  note_deadline(r.message.queue_deadline);
  note_deadline(r.message.total_deadline);
  ++waiting_requests_;
}

void scheduler::handle(settle&& message, steady_time) { check(!find(message.id)); }

void scheduler::handle(cancel&& message, steady_time) {
  if (request* r = find(message.id)) {
    ++counts_.cancelled;
    finish_all(*r, finish_cause::cancelled);
  }
}

void scheduler::handle(cancel_row&& message, steady_time) {
  request* r = find(message.id);
  if (!r || message.row >= r->rows.size() || r->rows[message.row].over) return;
  check(r->forked, "a row has drawn nothing before its request forked");
  finish(r->rows[message.row], finish_cause::cancelled);
}

void scheduler::handle(pause&& message, steady_time) {
  if (request* r = find(message.id)) r->paused = true;
}

void scheduler::handle(resume&& message, steady_time) {
  request* r = find(message.id);
  if (!r || !r->paused) return;
  r->paused = false;
  for (auto& s : r->rows)
    if (!s.over && s.parked && !s.queued) enqueue(s);
}

void scheduler::handle(shutdown&& message, steady_time now) {
  shutting_down_ = true;
  shutdown_deadline_ = std::min(shutdown_deadline_, message.deadline);
  note_deadline(shutdown_deadline_);
  std::vector<request*> waiting;
  for (auto& [id, r] : requests_)
    if (!r->admitted) waiting.push_back(r.get());
  for (request* r : waiting) {
    reject(r->message, {error_kind::unavailable, "the server is shutting down", ""});
    forget(*r);
  }
  expire(now);
}

void scheduler::expire(steady_time now) {
  if (now < next_deadline_) return;
  next_deadline_ = now < shutdown_deadline_ ? shutdown_deadline_ : steady_time::max();
  std::vector<request*> late_in_queue, late;
  for (auto& [id, r] : requests_) {
    if (now >= shutdown_deadline_ || now >= r->message.total_deadline) {
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
  for (request* r : late_in_queue) {
    reject(r->message, {error_kind::timeout, "the request waited too long for a free slot", ""});
    forget(*r);
  }
  for (request* r : late) finish_all(*r, now >= shutdown_deadline_ ? finish_cause::shutdown : finish_cause::timeout);
}

void scheduler::lose_device(error why) noexcept {
  if (std::exchange(lost_, true)) return;
  lost_why_ = std::move(why);
}

void scheduler::end_lost() {
  while (!requests_.empty()) {
    request& r = *requests_.begin()->second;
    if (!r.admitted) reject(r.message, lost_why_);
    for (auto& s : r.rows) {
      if (r.admitted && !s.over) emit(r, row_finished{r.message.id, s.row, finish_cause::device_lost});
      s.over = true;
    }
    requests_.erase(requests_.begin());
  }
  waiting_ = {};
  std::ranges::fill(slots_, nullptr);
  free_slots_.resize(slots_.size());
  std::iota(free_slots_.begin(), free_slots_.end(), 0u);
  waiting_requests_ = parked_ = forks_to_come_ = 0;
  work_.commands.clear();
  work_.plan.clear();
  in_flight_.clear();
  retired_buffers_.clear();
}

// ---------------------------------------------------------------- planning

const tick_work& scheduler::plan(steady_time now, std::span<const std::uint8_t> congested) {
  work_.commands.clear();
  work_.plan.clear();
  if (lost_) return work_;
  for (sequence* s : slots_)
    if (s && !s->owner->forked && s->fed == s->owner->feed_limit()) fork_rows(*s->owner);
  admit(now);

  std::vector<planned_row> rows;
  if (!spare_plans_.empty()) {
    rows = std::move(spare_plans_.back());
    spare_plans_.pop_back();
    rows.clear();
  }
  in_flight_.push_back(std::move(rows));
  plan_decode(congested);
  plan_prefill(congested);
  if (work_.plan.rows.empty()) {
    spare_plans_.push_back(std::move(in_flight_.back()));
    in_flight_.pop_back();
  } else {
    ++planned_ticks_;
  }
  return work_;
}

void scheduler::admit(steady_time now) {
  std::vector<sequence*> put_back;
  bool saving = false;  // memory, for a request that waits for it further ahead
  for (bool room = true; room && !waiting_.empty();) {
    const row_reference next = waiting_.pop();
    request* r = find(next.id);
    check(r != nullptr, "what waits exists");
    sequence& s = r->rows[next.row];
    if (r->paused && s.parked) {
      s.queued = false;  // queued again when its reader resumes
      continue;
    }
    if (lacks_memory(*r)) {
      put_back.push_back(&s);  // what waits behind it may need none, or give some back
      saving = true;
      continue;
    }
    // While memory is saved, only who brings a state back may have another one copied out for it.
    if (free_slots_.empty() && (!saving || s.parked)) make_room();
    room = !free_slots_.empty();
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

/// A fresh request of several rows may soon keep a state outside, and one more if somebody is parked for it.
bool scheduler::lacks_memory(const request& r) const {
  if (r.admitted || r.rows.size() == 1) return false;
  return states_outside_ + forks_to_come_ > 0 && !fits_outside(free_slots_.empty() ? 2 : 1);
}

bool scheduler::fits_outside(std::size_t more_states) const {
  const std::size_t state_bytes = options_.state_floats * sizeof(float);
  return (states_outside_ + forks_to_come_ + more_states) * state_bytes <= options_.parked_bytes_max;
}

/// Gives a slot to a sequence that waited: fresh, or as it was parked.
void scheduler::place(sequence& s, steady_time now) {
  request& r = *s.owner;
  const slot_id slot = take_slot(s);
  if (s.parked) {
    work_.commands.push_back(unpark_slot{slot, &r.params(s), s.parked->buffer});
    leave_outside(s);
    return;
  }
  work_.commands.push_back(start_slot{slot, &r.params(s)});
  if (r.admitted) return;
  emit(r, admitted{r.message.id, std::chrono::duration_cast<std::chrono::microseconds>(now - r.arrived)});
  r.admitted = true;
  --waiting_requests_;
  if (!r.forked) {
    r.fork_to_come = true;
    ++forks_to_come_;
  }
  counts_.prompt_tokens += r.prompt_tokens();
  if (r.feed_limit() == 0) fork_rows(r);  // several rows of a one-token prompt: nothing to share
}

/// Row 0 has fed all but the last prompt token: its state is copied for the other rows. Rows that find no free slot
/// wait with a copy outside.
void scheduler::fork_rows(request& r) {
  const slot_id from = *r.rows[0].slot;
  std::shared_ptr<outside_state> outside;
  r.forked = true;
  settle_fork(r);
  for (std::size_t i = 1; i < r.rows.size(); ++i) {
    sequence& s = r.rows[i];
    s.fed = r.prompt_tokens() - 1;
    if (!free_slots_.empty()) {
      const slot_id to = take_slot(s);
      work_.commands.push_back(start_slot{to, &r.params(s)});
      work_.commands.push_back(copy_slot{from, to});
      continue;
    }
    if (!outside) {
      outside = std::make_shared<outside_state>(states_outside_, options_.state_floats);
      work_.commands.push_back(park_slot{from, outside->buffer});
    }
    s.parked = outside;
    ++parked_;
    enqueue(s);
  }
}

/// Somebody waits and no slot is free: one that nobody reads gives way, else one that had its turn.
void scheduler::make_room() {
  if (parked_ >= options_.parked_max || !fits_outside(1)) return;
  sequence* best = nullptr;
  for (sequence* s : slots_) {
    if (!s || s->draws_planned == 0 || s->draws_planned >= s->owner->params(*s).max_tokens) continue;
    if (s->owner->paused) {
      best = s;
      break;
    }
    if (s->drawn_this_turn >= options_.turn_tokens && (!best || s->drawn_this_turn > best->drawn_this_turn)) best = s;
  }
  if (!best) return;
  ++counts_.preemptions;
  park(*best);
}

void scheduler::park(sequence& s) {
  s.parked = std::make_shared<outside_state>(states_outside_, options_.state_floats);
  ++parked_;
  work_.commands.push_back(park_slot{*s.slot, s.parked->buffer});
  release(s);
  if (!s.owner->paused) enqueue(s);
}

bool scheduler::resting(const sequence& s, std::span<const std::uint8_t> congested) const {
  const std::uint32_t to = s.owner->message.reply_to;
  return s.owner->paused || (to < congested.size() && congested[to] != 0);
}

bool scheduler::can_decode(const sequence& s) const {
  return s.draws_planned > 0 && s.draws_planned < s.owner->params(s).max_tokens;
}

void scheduler::plan_decode(std::span<const std::uint8_t> congested) {
  const std::uint32_t ceiling = std::min(options_.max_tick_rows, options_.max_tick_tokens);
  const auto count = static_cast<std::uint32_t>(slots_.size());
  std::uint32_t i = 0;
  for (; i < count && work_.plan.rows.size() < ceiling; ++i) {
    sequence* s = slots_[(decode_turn_ + i) % count];
    if (!s || !can_decode(*s) || resting(*s, congested)) continue;
    engine::row row;
    row.slot = *s->slot;
    row.kind = engine::row_kind::decode;
    row.sample = true;
    work_.plan.rows.push_back(row);
    in_flight_.back().push_back({{s->owner->message.id, s->row}, false});
    ++s->draws_planned;
  }
  decode_turn_ = (decode_turn_ + i) % count;
}

void scheduler::plan_prefill(std::span<const std::uint8_t> congested) {
  const auto decoding = static_cast<std::uint32_t>(work_.plan.rows.size());
  std::uint32_t budget = options_.max_tick_tokens - decoding;
  if (decoding > 0) budget = std::min(budget, options_.prefill_chunk_tokens);
  const auto count = static_cast<std::uint32_t>(slots_.size());
  for (std::uint32_t i = 0; i < count && budget > 0 && work_.plan.rows.size() < options_.max_tick_rows; ++i) {
    const std::uint32_t slot = (prefill_turn_ + i) % count;
    sequence* s = slots_[slot];
    if (!s || s->fed >= s->owner->feed_limit() || resting(*s, congested)) continue;
    budget -= plan_prefill_row(*s, budget);
    if (budget == 0) prefill_turn_ = (slot + 1) % count;
  }
}

std::uint32_t scheduler::plan_prefill_row(sequence& s, std::uint32_t budget) {
  const request& r = *s.owner;
  const std::uint32_t count = std::min(budget, r.feed_limit() - s.fed);
  const auto first = r.message.prompt.begin() + s.fed;
  engine::row row;
  row.slot = *s.slot;
  row.kind = r.message.score_prompt && s.row == 0 ? engine::row_kind::score : engine::row_kind::prefill;
  row.score_top = r.message.score_top;
  row.first_token = static_cast<std::uint32_t>(work_.plan.tokens.size());
  row.tokens = count;
  work_.plan.tokens.insert(work_.plan.tokens.end(), first, first + count);
  s.fed += count;
  const bool last = s.fed == r.prompt_tokens();
  if (!last) row.score_next = r.message.prompt[s.fed];
  row.sample = last && r.params(s).max_tokens > 0;
  if (row.sample) ++s.draws_planned;
  work_.plan.rows.push_back(row);
  in_flight_.back().push_back({{r.message.id, s.row}, last && !row.sample});
  return count;
}

// ---------------------------------------------------------------- results

void scheduler::absorb(const engine::tick_result& result, steady_time) {
  check(!in_flight_.empty(), "a result belongs to a plan");
  std::vector<planned_row> planned = std::move(in_flight_.front());
  in_flight_.pop_front();
  ++absorbed_ticks_;
  while (!retired_buffers_.empty() && retired_buffers_.front().first <= absorbed_ticks_) retired_buffers_.pop_front();
  check(planned.size() == result.rows.size(), "a result has one row per planned row");

  for (std::size_t i = 0; i < planned.size(); ++i) {
    const auto& [who, last_without_draw] = planned[i];
    const engine::row_result& row = result.rows[i];
    request* r = find(who.id);
    if (!r || r->rows[who.row].over) continue;  // it ended while the tick ran
    sequence& s = r->rows[who.row];
    if (!row.scores.empty()) emit(*r, prompt_scored{who.id, row.scores});
    if (row.sampled) {
      token t{who.id, who.row, s.drawn, row.token, nullptr};
      if (r->params(s).logprobs) t.logprobs = std::make_unique<sampling::token_logprobs>(row.logprobs);
      emit(*r, std::move(t));
      ++s.drawn;
      ++s.drawn_this_turn;
      ++counts_.generated_tokens;
    }
    if (row.stopped == engine::stop_cause::stop_id)
      finish(s, finish_cause::stop_id);
    else if (row.stopped == engine::stop_cause::budget || last_without_draw)
      finish(s, finish_cause::budget);
  }
  spare_plans_.push_back(std::move(planned));
}

// ---------------------------------------------------------------- slots, ends, events

slot_id scheduler::take_slot(sequence& s) {
  check(!s.slot.has_value());
  const slot_id slot = free_slots_.back();
  free_slots_.pop_back();
  slots_[slot] = &s;
  s.slot = slot;
  s.drawn_this_turn = 0;
  return slot;
}

void scheduler::release(sequence& s) {
  slots_[*s.slot] = nullptr;
  free_slots_.push_back(*s.slot);
  s.slot.reset();
}

void scheduler::enqueue(sequence& s) {
  check(!s.queued);
  s.queued = true;
  waiting_.push_back(s.owner->message.client, {s.owner->message.id, s.row});
}

/// The sequence is no longer parked. The buffer is kept until no queued command can touch it: commands run before the
/// tick that is planned after them.
void scheduler::leave_outside(sequence& s) {
  retired_buffers_.emplace_back(planned_ticks_ + 1, s.parked->buffer);
  s.parked = nullptr;
  --parked_;
}

/// The request has forked, or never will.
void scheduler::settle_fork(request& r) {
  if (std::exchange(r.fork_to_come, false)) --forks_to_come_;
}

void scheduler::finish(sequence& s, finish_cause cause) {
  check(!s.over);
  request& r = *s.owner;
  emit(r, row_finished{r.message.id, s.row, cause});  // first: where it throws, the row still waits for its end
  s.over = true;
  if (s.slot) release(s);
  if (s.parked) leave_outside(s);
  if (s.queued) {
    waiting_.remove_if([&](const row_reference& w) { return w.id == r.message.id && w.row == s.row; });
    s.queued = false;
  }
  if (--r.rows_left == 0) {
    ++counts_.finished;
    forget(r);
  }
}

void scheduler::finish_all(request& r, finish_cause cause) {
  const std::size_t rows = r.rows.size();
  const request_id id = r.message.id;
  for (std::size_t i = 0; i < rows; ++i) {
    request* still = find(id);  // finishing the last row forgets the request
    if (still && !still->rows[i].over) finish(still->rows[i], cause);
  }
}

void scheduler::forget(request& r) {
  settle_fork(r);
  if (!r.admitted) {
    --waiting_requests_;
    if (r.rows[0].queued) waiting_.remove_if([id = r.message.id](const row_reference& w) { return w.id == id; });
  }
  requests_.erase(r.message.id);
}

scheduler::request* scheduler::find(request_id id) {
  const auto it = requests_.find(id);
  return it == requests_.end() ? nullptr : it->second.get();
}

void scheduler::emit(const request& r, event e) { outbox_[r.message.reply_to].items.push_back(std::move(e)); }

void scheduler::reject(const submit& message, error why) {
  outbox_[message.reply_to].items.push_back(rejected{message.id, std::move(why)});
  ++counts_.rejected;
}

void scheduler::note_deadline(steady_time t) { next_deadline_ = std::min(next_deadline_, t); }

scheduler_counts scheduler::counts() const {
  scheduler_counts c = counts_;
  c.slots_used = options_.slots - static_cast<std::uint32_t>(free_slots_.size());
  c.waiting = waiting_requests_;
  c.parked = parked_;
  c.parked_bytes = states_outside_ * options_.state_floats * sizeof(float);
  c.requests = static_cast<std::uint32_t>(requests_.size());
  return c;
}

void scheduler::self_check() const {
  std::uint32_t used = 0, queued = 0, parked = 0, waiting = 0, forks = 0;
  std::set<const outside_state*> outside;
  for (slot_id i = 0; i < slots_.size(); ++i) {
    if (!slots_[i]) continue;
    ++used;
    check(slots_[i]->slot == i, "a sequence knows its slot");
    check(!slots_[i]->over, "what is over holds no slot");
  }
  for (const auto& [id, r] : requests_) {
    std::uint32_t left = 0;
    if (!r->admitted) ++waiting;
    if (r->fork_to_come) ++forks;
    for (const auto& s : r->rows) {
      left += s.over ? 0 : 1;
      queued += s.queued ? 1 : 0;
      parked += s.parked ? 1 : 0;
      if (s.parked) outside.insert(s.parked.get());
      check(!(s.slot && s.parked), "a state has one authoritative copy");
      check(!(s.slot && s.queued), "what has a slot does not wait");
    }
    check(left == r->rows_left, "rows are counted");
  }
  check(used + free_slots_.size() == slots_.size(), "slots are used or free");
  check(queued == waiting_.size(), "the queue holds who waits");
  check(parked == parked_, "parked sequences are counted");
  check(waiting == waiting_requests_, "waiting requests are counted");
  check(forks == forks_to_come_, "forks to come are counted");
  check(outside.size() == states_outside_, "states outside are counted");
}

}  // namespace skein::device
