#include "actors/device/scheduler.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/device/submit_check.hpp"
#include "base/check.hpp"

namespace skein::device {
namespace {

// Time to settle the states of requests that ended at the deadline of a shutdown.
constexpr auto settle_time = std::chrono::seconds(1);

}  // namespace

scheduler::scheduler(const scheduler_options& options)
    : options_(options),
      slots_(options_, news_, work_.commands),
      requests_(options_, slots_, news_, events_),
      handout_(options_, slots_, requests_, news_),
      placement_(options_, slots_, requests_, handout_),
      rows_(options_, slots_, handout_, work_.plan) {
  check(options.slots > 0);
  check(options.max_tick_tokens > 0);
  check(options.max_tick_rows > 0);
  check(options.prefill_chunk_tokens > 0);
  check(options.chunk_tokens < options.max_tick_tokens, "a chunk and a decode row fit into a tick");
}

scheduler::~scheduler() = default;

// ---------------------------------------------------------------- messages

void scheduler::handle(submit&& message, steady_time now) {
  events_.prepare(message.reply_to);
  if (!options_.keeps_states) message.copies.clear();
  if (auto why = refusal(message)) return requests_.reject(message, std::move(*why));
  const request_record& r = requests_.enter(std::move(message), now);
  note_deadline(r.message.queue_deadline);
  note_deadline(r.message.total_deadline);
}

std::optional<error> scheduler::refusal(submit& message) const {
  if (lost()) return lost_why();
  check(!requests_.contains(message.id), "a request id is used once");
  if (shutdown_at_) return error{error_kind::unavailable, "the server is shutting down", ""};
  if (auto why = objection(options_, message)) return why;
  return requests_.no_room(message);
}

void scheduler::handle(settle&& message, steady_time) {
  request_record* r = requests_.find(message.id);
  if (!r || !r->message.settles_as || r->rows[0].settling()) return;
  sequence& s = r->rows[0];
  if (!r->admitted() || !knows(options_.limits, message.more)) return requests_.drop(*r, finish_cause::cancelled);
  check(message.sampled <= s.sampled, "no more tokens are settled than were sampled");
  if (!r->to_settle) {  // there is no state_sink
    if (!s.over()) requests_.finish(s, finish_cause::cancelled);
    return;
  }
  if (!s.over()) requests_.end_row(s, finish_cause::cancelled);
  r->to_settle->text = std::move(message);
  s.advance(row_stage::decided);
  if (s.place.where() == sequence_place::kind::parked) requests_.enqueue(s);
}

void scheduler::handle(cancel&& message, steady_time) {
  if (request_record* r = requests_.find(message.id)) {
    ++cancelled_;
    requests_.drop(*r, finish_cause::cancelled);
  }
}

void scheduler::handle(cancel_row&& message, steady_time) {
  request_record* r = requests_.find(message.id);
  if (!r || message.row >= r->rows.size() || r->rows[message.row].over()) return;
  if (!r->answers(r->rows[message.row])) return;
  check(r->forked() || r->mixes(), "no row ends before its request has forked");
  requests_.finish(r->rows[message.row], finish_cause::cancelled);
}

void scheduler::handle(pause&& message, steady_time) {
  if (request_record* r = requests_.find(message.id)) requests_.pause(*r);
}

void scheduler::handle(resume&& message, steady_time) {
  if (request_record* r = requests_.find(message.id)) requests_.resume(*r);
}

void scheduler::handle(forget&& message, steady_time) {
  requests_.for_each([&](request_record& r) {
    if (r.to_settle && r.message.settles_as.owner == message.owner) r.to_settle->keeps_slot = false;
  });
  slots_.forget(message.owner);
}

void scheduler::handle(change_limits&& message, steady_time) {
  static_cast<config::queue_settings&>(options_) = message.queue;
}

void scheduler::handle(shutdown&& message, steady_time now) {
  shutdown_at_ = std::min(shutdown_at_.value_or(message.deadline), message.deadline);
  note_deadline(*shutdown_at_);
  std::vector<request_record*> waiting;
  requests_.for_each([&](request_record& r) {
    if (!r.admitted()) waiting.push_back(&r);
  });
  for (request_record* r : waiting) requests_.reject(*r, {error_kind::unavailable, "the server is shutting down", ""});
  expire(now);
}

// ---------------------------------------------------------------- deadlines

void scheduler::note_deadline(steady_time t) { next_deadline_ = std::min(next_deadline_, t); }

void scheduler::expire(steady_time now) {
  if (now < next_deadline_) return;
  const bool cut_all = shutdown_at_ && now >= *shutdown_at_;
  const bool drop_all = cut_all && now - settle_time >= *shutdown_at_;
  next_deadline_ = steady_time::max();
  if (shutdown_at_ && !drop_all) note_deadline(cut_all ? *shutdown_at_ + settle_time : *shutdown_at_);
  std::vector<request_record*> late_in_queue, late;
  requests_.for_each([&](request_record& r) {
    if (drop_all) {
      late.push_back(&r);
    } else if (r.to_settle && (r.rows[0].over() || r.to_settle->ends_with)) {
      // No deadline any more: the remaining work is bounded.
    } else if (cut_all || now >= r.message.total_deadline) {
      late.push_back(&r);
    } else {
      note_deadline(r.message.total_deadline);
      if (r.admitted()) return;
      if (now >= r.message.queue_deadline)
        late_in_queue.push_back(&r);
      else
        note_deadline(r.message.queue_deadline);
    }
  });
  const finish_cause cause = cut_all ? finish_cause::shutdown : finish_cause::timeout;
  for (request_record* r : late_in_queue)
    requests_.reject(*r, {error_kind::timeout, "timed out waiting for a free slot", ""});
  for (request_record* r : late)
    !drop_all && r->to_settle && r->admitted() ? end_soon(*r, cause) : requests_.drop(*r, cause);
}

/// Ends a request whose state will be settled. Rows in flight are reported first: then the state lacks the last
/// reported token, and is one from which the answer can be continued.
void scheduler::end_soon(request_record& r, finish_cause cause) {
  if (r.rows[0].in_flight == 0) return requests_.finish(r.rows[0], cause);
  r.to_settle->ends_with = cause;
}

// ---------------------------------------------------------------- plans and results

const tick_work& scheduler::plan(steady_time now, std::span<const std::uint8_t> congested) {
  work_.commands.clear();
  work_.plan.clear();
  requests_.release_ended();
  if (lost()) return work_;
  slots_.begin_plan();
  for (sequence* s : slots_.sequences()) {
    if (!s) continue;
    placement_.fork_if_ready(*s->owner);
    handout_.advance(*s);
  }
  placement_.assign(now);
  rows_.plan(congested);
  return work_;
}

void scheduler::absorb(const engine::tick_result& result, steady_time) {
  planned_rows planned = rows_.take_oldest();
  check(planned.size() == result.rows.size(), "a result has one row per planned row");
  for (std::size_t i = 0; i < planned.size(); ++i) absorb(planned[i], result.rows[i]);
  rows_.reuse(std::move(planned));
}

void scheduler::absorb(const planned_row& planned, const engine::row_result& row) {
  const row_reference who = planned.who;
  request_record* r = requests_.find(who.id);
  if (!r) return;  // it ended while the tick ran
  sequence& s = r->rows[who.row];
  --s.in_flight;
  if (r->to_settle) r->to_settle->take(row);
  if (s.over() || !r->answers(s)) return;
  if (!row.finite) return requests_.drop(*r, finish_cause::not_finite);
  if (!row.scores.empty()) requests_.emit(*r, prompt_scored{who.id, row.scores});
  if (row.sampled) {
    report(s, row.token, row.logprobs);
    for (const token_id forced : row.forced)
      report(s, forced, sampling::certain_token(forced, r->params(s).top_logprobs));
  }
  if (row.stopped == engine::stop_cause::stop_id)
    requests_.finish(s, finish_cause::stop_id);
  else if (row.stopped == engine::stop_cause::budget || planned.last_without_sample)
    requests_.finish(s, finish_cause::budget);
  else if (s.ends_soon() && s.in_flight == 0)
    requests_.finish(s, *r->to_settle->ends_with);
}

void scheduler::report(sequence& s, token_id token_of_row, const sampling::token_logprobs& logprobs) {
  request_record& r = *s.owner;
  token t{r.message.id, s.row, s.sampled, token_of_row, nullptr};
  if (r.params(s).logprobs) t.logprobs = std::make_unique<sampling::token_logprobs>(logprobs);
  requests_.emit(r, std::move(t));
  ++s.sampled;
  ++s.sampled_this_turn;
  ++generated_tokens_;
  requests_.charge(r, 1);
}

void scheduler::absorb(const engine::moved_states& moved) { slots_.moves().moved(moved, news_); }

// ---------------------------------------------------------------- a lost device

void scheduler::lose_device(error why) noexcept {
  if (!lost()) lost_why_ = std::move(why);
}

void scheduler::end_lost() {
  slots_.moves().refuse_all(news_);
  drop_kept();
  requests_.end_lost(lost_why());
  slots_.reset();
  work_.commands.clear();
  work_.plan.clear();
  rows_.forget_ticks();
}

// ---------------------------------------------------------------- counts and checks

scheduler_counts scheduler::counts() const {
  scheduler_counts c;
  c.generated_tokens = generated_tokens_;
  c.cancelled = cancelled_;
  slots_.add_to(c);
  requests_.add_to(c);
  handout_.add_to(c);
  placement_.add_to(c);
  return c;
}

void scheduler::self_check() const {
  slots_.self_check();
  requests_.self_check();
  std::size_t planned = 0;
  for (const planned_rows& tick : rows_.in_flight())
    planned += static_cast<std::size_t>(
        std::ranges::count_if(tick, [this](const planned_row& row) { return requests_.contains(row.who.id); }));
  check(planned == requests_.rows_in_flight(), "rows in flight are counted");
}

}  // namespace skein::device
