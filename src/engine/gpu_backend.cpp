#include "engine/gpu_backend.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "engine/row_results.hpp"

namespace skein::engine {
namespace {

using kernels::gpu::tick_row;

static_assert(kernels::gpu::top_logprobs_most == sampling::top_logprobs_max);

sampling::token_logprobs logprobs_of(const kernels::gpu::token_scores& scores) {
  sampling::token_logprobs of;
  of.logprob = scores.logprob;
  of.count = scores.top_count;
  for (std::uint32_t i = 0; i < of.count; ++i) of.top[i] = {scores.top[i].token, scores.top[i].logprob};
  return of;
}

void report_draw(row_result& out, const kernels::gpu::drawn_token& drawn) {
  out.sampled = true;
  out.token = drawn.token;
  out.stopped = static_cast<stop_cause>(drawn.stopped);
  out.logprobs = logprobs_of(drawn.scores);
}

// A group goes on or stops as one.
void check_groups(const tick_plan& plan, const kernels::gpu::tick_outcome& done) {
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    if (plan.rows[i].group == 0) continue;
    const auto first = std::ranges::find(plan.rows, plan.rows[i].group, &row::group) - plan.rows.begin();
    const auto draws = [&](std::size_t row) { return done.rows[row].status & kernels::gpu::draws; };
    check(draws(i) == draws(static_cast<std::size_t>(first)), "a group with some slots frozen and others not");
  }
}

}  // namespace

gpu_backend::gpu_backend(std::unique_ptr<kernels::gpu::tick_runner> runner, std::uint32_t slots, std::uint32_t vocab,
                         std::uint32_t max_tick_rows)
    : runner_(std::move(runner)), vocab_(vocab), kept_(slots) {
  rows_.reserve(max_tick_rows);
}

// The device keeps its first trouble: the next call that can answer does.
void gpu_backend::start(slot_id slot, const sampling::sampling_params& params) {
  drop_logits(slot);
  ignore(runner_->start(slot, start_of(params)), "the next tick says so");
}

void gpu_backend::restart_sampler(slot_id slot, const sampling::sampling_params& params) {
  ignore(runner_->restart_sampler(slot, start_of(params)), "the next tick says so");
}

void gpu_backend::copy_state(slot_id from, slot_id to) {
  drop_logits(to);
  ignore(runner_->copy_slot(from, to), "the next tick says so");
}

void gpu_backend::clear(slot_id slot) {
  start(slot, sampling::sampling_params{});
  auto& kept = kept_[slot].logits;
  std::ranges::fill(kept, 0.0f);
}

result<void> gpu_backend::park(slot_id slot, parked_sequence& out) { return depart(slot, &out, {}); }

result<void> gpu_backend::read_state(slot_id slot, std::span<float> state) { return depart(slot, nullptr, state); }

result<void> gpu_backend::unpark(slot_id slot, const sampling::sampling_params& params, const parked_sequence& in) {
  drop_logits(slot);
  if (auto r = hand_over_all(); !r) return r;  // one may fill `in`
  mover_.wait(last_copy_);
  check(in.state.size() == runner_->sizes().state_floats, "a parked state of another size");
  const auto stage = free_stage();
  if (!stage) return stage.error();
  const auto to = runner_->begin_write(*stage);
  if (!to) return to.error();
  std::ranges::copy(in.state, to->state.begin());
  const auto& penalties = in.sampler.penalties;
  check(penalties.size() <= to->position.room, "more penalties than the vocabulary has tokens");
  kernels::gpu::slot_record& record = *to->position.record;
  record = {};
  record.last_token = in.last_token;
  record.generated = in.sampler.generated;
  record.frozen = in.frozen;
  record.penalty_count = static_cast<std::uint32_t>(penalties.size());
  for (std::size_t i = 0; i < penalties.size(); ++i) {
    to->position.tokens[i] = penalties[i].token;
    to->position.penalties[i] = penalties[i].penalty;
  }
  return runner_->end_restore(*stage, slot, start_of(params));
}

result<void> gpu_backend::write_state(slot_id slot, std::span<const float> state) {
  drop_logits(slot);
  if (auto r = hand_over_all(); !r) return r;  // one may fill `state`
  mover_.wait(last_copy_);
  const auto stage = free_stage();
  if (!stage) return stage.error();
  const auto to = runner_->begin_write(*stage);
  if (!to) return to.error();
  std::ranges::copy(state, to->state.begin());
  return runner_->end_write(*stage, slot);
}

result<void> gpu_backend::launch(const tick_plan& plan, tick_result& out) {
  launched_ = out.tick;
  out.rows.resize(plan.rows.size());
  rows_.clear();
  for (std::size_t i = 0; i < plan.rows.size(); ++i) rows_.push_back(row_of(plan.rows[i], out.rows[i]));
  return runner_->launch({rows_, plan.tokens});
}

tick_row gpu_backend::row_of(const row& r, row_result& out) const {
  reset(out, r.slot);
  tick_row to;
  to.slot = r.slot;
  to.first_token = r.first_token, to.tokens = r.kind == row_kind::decode ? 0 : r.tokens;
  to.sample = r.sample, to.sync = r.sync;
  to.score = r.kind == row_kind::score, to.score_next = r.score_next, to.score_top = r.score_top;
  to.group = r.group, to.weight = r.weight;
  to.copied = r.logits == logits_wanted::all              ? tick_row::copies::all
              : r.logits == logits_wanted::last || r.sync ? tick_row::copies::last
                                                          : tick_row::copies::none;
  if (to.copied == tick_row::copies::none) return to;
  const std::size_t positions = to.copied == tick_row::copies::all ? std::max(to.tokens, 1u) : 1;
  out.logits.resize(positions * vocab_);
  to.logits = out.logits.data();
  return to;
}

// Asked again and again while a tick runs: states move on meanwhile, so that complete() finds them at their end.
bool gpu_backend::ready() {
  while (!departures_.empty() && runner_->arrived(departures_.front().stage))
    if (!hand_over_first()) return true;
  return runner_->ready() && mover_.made(last_copy_);
}

result<void> gpu_backend::complete(const tick_plan& plan, tick_result& out) {
  if (auto r = hand_over(out.tick); !r) return r;
  const auto done = runner_->complete();
  if (!done) return done.error();
  out.seconds = done->seconds;
  check_groups(plan, *done);
  for (std::size_t i = 0; i < plan.rows.size(); ++i) report(plan, i, done->rows[i], out.tick, out.rows[i]);
  mover_.wait(last_copy_);
  return {};
}

void gpu_backend::report(const tick_plan& plan, std::size_t index, const kernels::gpu::row_outcome& done,
                         std::uint64_t tick, row_result& out) {
  const row& r = plan.rows[index];
  const bool draws = (done.status & kernels::gpu::draws) != 0;
  out.frozen = (done.status & kernels::gpu::was_frozen) != 0;
  if ((done.status & kernels::gpu::budget_spent) != 0) out.stopped = stop_cause::budget;
  check((done.status & kernels::gpu::nothing_to_feed) == 0, "a decode row in a slot that has sampled nothing");
  const bool idle = r.kind == row_kind::decode && r.sample ? !draws : r.kind == row_kind::decode && out.frozen;
  if (idle || (r.sync && !draws && r.logits == logits_wanted::none)) out.logits.clear();

  for (const auto& score : done.scores) out.scores.push_back(logprobs_of(score));
  if (done.last_score) out.scores.push_back(logprobs_of(*done.last_score));
  if (done.drawn) report_draw(out, *done.drawn);
  if (!r.sync || !draws) return;
  out.awaits_draw = true;
  kept_logits& kept = kept_[r.slot];
  if (kept.dropped_after >= tick) return;
  kept.awaited = true;
  kept.logits.assign(out.logits.end() - static_cast<std::ptrdiff_t>(vocab_), out.logits.end());
}

result<void> gpu_backend::settle() {
  if (auto r = hand_over_all(); !r) return r;
  mover_.wait(last_copy_);
  return runner_->settle();
}

result<row_result> gpu_backend::draw(slot_id slot, std::span<const std::uint32_t> allowed) {
  kept_logits& kept = kept_[slot];
  check(kept.awaited, "a draw in a slot that has no logits waiting");
  kept.awaited = false;
  const auto drawn = runner_->draw(slot, kept.logits, allowed);
  if (!drawn) return drawn.error();
  check(drawn->sampled != 0, "a mask that allows no token");
  row_result out;
  out.slot = slot;
  report_draw(out, *drawn);
  return out;
}

kernels::gpu::sampler_start gpu_backend::start_of(const sampling::sampling_params& params) {
  bias_.clear();
  for (const auto& b : params.logit_bias) bias_.push_back({b.token, b.bias, b.first, b.end});
  kernels::gpu::sampler_start to;
  kernels::gpu::sampler_settings& s = to.settings;
  s.temperature = params.temperature, s.top_p = params.top_p, s.min_p = params.min_p, s.top_k = params.top_k;
  s.first_penalty = params.first_penalty, s.repeat_penalty = params.repeat_penalty;
  s.lasting_penalty = params.lasting_penalty, s.penalty_decay = params.penalty_decay;
  s.filters_first = params.filters_first;
  s.max_tokens = params.max_tokens, s.seed = params.seed, s.row = params.row;
  s.logprobs = params.logprobs;
  s.top_logprobs = std::min(params.top_logprobs, sampling::top_logprobs_max);
  to.bias = bias_, to.stop_ids = params.stop_ids;
  return to;
}

void gpu_backend::drop_logits(slot_id slot) {
  kept_[slot].awaited = false;
  kept_[slot].dropped_after = launched_;
}

result<void> gpu_backend::depart(slot_id slot, parked_sequence* parked, std::span<float> state) {
  check(!parked || !kept_[slot].awaited, "a slot parked between its logits and the draw");
  const auto stage = free_stage();
  if (!stage) return stage.error();
  departures_.push_back({*stage, parked, state, launched_ + 1});
  return runner_->begin_read(slot, *stage);
}

result<void> gpu_backend::hand_over(std::uint64_t tick) {
  while (!departures_.empty() && departures_.front().tick <= tick)
    if (auto r = hand_over_first(); !r) return r;
  return {};
}

result<void> gpu_backend::hand_over_all() { return hand_over(launched_ + 1); }

result<void> gpu_backend::hand_over_first() {
  const departure first = departures_.front();
  departures_.pop_front();
  const auto from = runner_->end_read(first.stage);
  if (!from) return from.error();
  if (first.parked) {
    const kernels::gpu::sampler_position& position = from->position;
    first.parked->last_token = position.record->last_token;
    first.parked->frozen = position.record->frozen != 0;
    first.parked->sampler.generated = position.record->generated;
    first.parked->sampler.penalties.resize(position.record->penalty_count);
    for (std::uint32_t i = 0; i < position.record->penalty_count; ++i)
      first.parked->sampler.penalties[i] = {position.tokens[i], position.penalties[i]};
  }
  last_copy_ = first.parked ? mover_.copy(from->state, first.parked->state) : mover_.copy(from->state, first.state);
  copies_[first.stage] = last_copy_;
  return {};
}

// In turn, so that the one that was used longest ago is taken; a slot that still departs through it is waited for.
result<std::uint32_t> gpu_backend::free_stage() {
  const std::uint32_t stage = next_stage_++ % kernels::gpu::tick_runner::stages_of_states;
  const auto busy = std::ranges::find(departures_, stage, &departure::stage);
  if (busy != departures_.end()) {
    if (auto r = hand_over(busy->tick); !r) return r.error();
  }
  mover_.wait(copies_[stage]);
  return stage;
}

}  // namespace skein::engine
