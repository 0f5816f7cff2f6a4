#include "actors/device/request_book.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "base/check.hpp"

namespace skein::device {

request_book::request_book(const scheduler_options& options, slot_table& slots, news_box& news, event_box& events)
    : options_(options), slots_(slots), news_(news), events_(events) {}

request_book::~request_book() = default;

request_record* request_book::find(request_id id) {
  const auto it = requests_.find(id);
  return it == requests_.end() ? nullptr : it->second.get();
}

// ---------------------------------------------------------------- arrival

std::optional<error> request_book::no_room(const submit& message) const {
  // All requests of one delivery are queued before the next plan admits any, so free slots count as room.
  const std::size_t room = slots_.free();
  if (waiting_ >= options_.waiting_max + room)
    return error{error_kind::overloaded, "too many requests are waiting; try again soon", ""};
  if (queue_.unbegun(message.client) >= options_.waiting_per_client_max + room)
    return error{error_kind::overloaded, "too many of your requests are waiting; try again soon", ""};
  return std::nullopt;
}

request_record& request_book::enter(submit&& message, steady_time now) {
  // Everything that may throw comes before the message is taken, so that it can always be answered.
  auto entry = std::make_unique<request_record>();
  request_record& r = *entry;
  r.rows.resize(std::max(message.rows.size(), message.mixture.size()));
  if (message.parts.empty()) message.parts.push_back({static_cast<std::uint32_t>(message.prompt.size()), false});
  news_.reserve(message.copies.size() + 1);
  r.payer = &queue_.enter(message.client);
  queue_.push_back(message.client, {message.id, 0});
  requests_.emplace(message.id, std::move(entry));
  r.message = std::move(message);
  r.arrived = now;
  r.rows_left = static_cast<std::uint32_t>(r.rows.size());
  for (std::uint32_t i = 0; i < r.rows.size(); ++i) {
    r.rows[i].owner = &r;
    r.rows[i].row = i;
  }
  r.rows[0].place.wait();
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
  ++waiting_;
  ++r.payer->unbegun;
  return r;
}

void request_book::admit(request_record& r, steady_time now) {
  emit(r, admitted{r.message.id, std::chrono::duration_cast<std::chrono::microseconds>(now - r.arrived)});
  const bool shares = r.rows.size() > 1 && !r.mixes();
  r.enter(shares ? request_phase::sharing : request_phase::running);
  if (shares) slots_.outside().expect_fork();
  --waiting_;
  --r.payer->unbegun;
  prompt_tokens_ += r.prompt_tokens();
  charge(r, r.prompt_tokens());
}

void request_book::pause(request_record& r) {
  if (!std::exchange(r.paused, true)) ++paused_;
}

void request_book::resume(request_record& r) {
  if (!std::exchange(r.paused, false)) return;
  --paused_;
  for (auto& s : r.rows)
    if (!s.over() && s.place.where() == sequence_place::kind::parked && r.answers(s)) enqueue(s);
}

// ---------------------------------------------------------------- the queue

void request_book::enqueue(sequence& s) {
  s.place.wait();
  queue_.push_back(s.owner->message.client, {s.owner->message.id, s.row});
}

void request_book::dequeue(const sequence& s) {
  queue_.remove_if([&](const row_reference& w) { return w.id == s.owner->message.id && w.row == s.row; });
}

sequence& request_book::pop() {
  const row_reference next = queue_.pop();
  request_record* const r = find(next.id);
  check(r != nullptr, "a waiting request exists");
  return r->rows[next.row];
}

void request_book::put_back(const sequence& s) { queue_.unpop(s.owner->message.client, {s.owner->message.id, s.row}); }

// ---------------------------------------------------------------- ends

void request_book::end_row(sequence& s, finish_cause cause) {
  check(!s.over());
  // First, because it may throw: then the row has not ended.
  if (s.owner->answers(s)) emit(*s.owner, row_finished{s.owner->message.id, s.row, cause});
  s.advance(row_stage::ended);
}

void request_book::finish(sequence& s, finish_cause cause) {
  request_record& r = *s.owner;
  if (r.mixes()) return drop(r, cause);
  end_row(s, cause);
  if (!r.to_settle || !r.admitted()) return leave(s);
  if (!s.place.queued()) return;
  s.place.stop_waiting();
  dequeue(s);
}

void request_book::leave(sequence& s) {
  request_record& r = *s.owner;
  const bool queued = s.place.queued();
  slots_.drop(s);
  if (queued) dequeue(s);
  if (--r.rows_left == 0) {
    ++finished_;
    erase(r);
  }
}

void request_book::drop(request_record& r, finish_cause cause) {
  const std::size_t rows = r.rows.size();
  const request_id id = r.message.id;
  for (std::size_t i = 0; i < rows && find(id); ++i) {  // the last row erases the request
    sequence& s = r.rows[i];
    if (s.over() && !r.to_settle) continue;
    if (!s.over()) end_row(s, cause);
    leave(s);
  }
}

void request_book::reject(request_record& r, error why) {
  refuse_rest(r);  // may throw, so it comes before the answer
  reject(r.message, std::move(why));
  sequence& first = r.rows[0];
  const bool queued = first.place.queued();
  slots_.drop(first);
  if (queued) dequeue(first);
  erase(r);
}

void request_book::reject(const submit& message, error why) {
  const bool known = requests_.contains(message.id);
  if (!known) news_.reserve(message.copies.size() + 1);
  events_.add(message.reply_to, rejected{message.id, std::move(why)});
  ++rejected_;
  if (known) return;
  for (const wanted_copy& c : message.copies) news_.refuse(c.key);
  if (options_.keeps_states && message.settles_as) news_.refuse(message.settles_as);
}

void request_book::erase_settled(request_record& r) {
  ++finished_;
  erase(r);
}

void request_book::erase(request_record& r) {
  refuse_rest(r);
  switch (r.phase()) {
    case request_phase::queued:
      --waiting_;
      --r.payer->unbegun;
      break;
    case request_phase::sharing: slots_.outside().settle_fork(); break;
    case request_phase::running:
    case request_phase::ended: break;
  }
  r.enter(request_phase::ended);
  if (r.paused) --paused_;
  queue_.leave(r.message.client);
  ended_.emplace_back();
  ended_.back() = std::move(requests_.extract(r.message.id).mapped());
}

void request_book::refuse_rest(request_record& r) {
  for (; r.next_copy < r.message.copies.size(); ++r.next_copy) news_.refuse(r.message.copies[r.next_copy].key);
  if (r.to_settle) news_.refuse(r.message.settles_as);
  r.to_settle.reset();
}

void request_book::end_lost(const error& why) {
  while (!requests_.empty()) {
    request_record& r = *requests_.begin()->second;
    refuse_rest(r);
    if (!r.admitted()) reject(r.message, why);
    for (auto& s : r.rows) {
      if (s.over()) continue;
      if (r.admitted() && r.answers(s)) emit(r, row_finished{r.message.id, s.row, finish_cause::device_lost});
      s.advance(row_stage::ended);
    }
    requests_.erase(requests_.begin());
  }
  queue_ = {};
  waiting_ = paused_ = 0;
  ended_.clear();
}

void request_book::add_to(scheduler_counts& counts) const {
  counts.waiting = waiting_;
  counts.waiting_max = options_.waiting_max;
  counts.paused = paused_;
  counts.requests = static_cast<std::uint32_t>(requests_.size());
  counts.prompt_tokens = prompt_tokens_;
  counts.finished = finished_;
  counts.rejected = rejected_;
}

std::size_t request_book::rows_in_flight() const {
  std::size_t rows = 0;
  for (const auto& [id, r] : requests_)
    for (const auto& s : r->rows) rows += s.in_flight;
  return rows;
}

void request_book::self_check() const {
  std::uint32_t queued = 0, parked = 0, paused = 0, waiting = 0, forks = 0, undo = 0;
  std::set<const outside_state*> outside;
  std::map<const account*, std::uint32_t> held;
  for (const sequence* s : slots_.sequences())
    if (s) ++held[s->owner->payer];
  for (const auto& [id, r] : requests_) {
    std::uint32_t left = 0;
    check(r->phase() != request_phase::ended, "an ended request is erased");
    waiting += r->admitted() ? 0 : 1;
    paused += r->paused ? 1 : 0;
    forks += r->phase() == request_phase::sharing ? 1 : 0;
    undo += r->to_settle && r->to_settle->prompt_end ? 1 : 0;
    for (const auto& s : r->rows) {
      left += s.over() && !r->to_settle ? 0 : 1;
      queued += s.place.queued() ? 1 : 0;
      parked += s.place.is_parked() ? 1 : 0;
      if (s.place.is_parked()) outside.insert(s.place.copy().get());
      check(!(s.over() && s.place.queued()) || s.settling(), "an ended row waits only to be settled");
    }
    check(left == r->rows_left, "rows are counted");
    check(r->payer->slots == held[r->payer], "slots of clients are counted");
  }
  check(queued == queue_.size(), "waiting sequences are in the queue");
  check(parked == slots_.parked(), "parked sequences are counted");
  check(paused == paused_, "paused requests are counted");
  check(waiting == waiting_, "waiting requests are counted");
  check(forks == slots_.outside().forks_to_come(), "forks to come are counted");
  check(undo == slots_.outside().undo(), "states to return to are counted");
  check(outside.size() == slots_.outside().held(), "states outside are counted");
}

}  // namespace skein::device
