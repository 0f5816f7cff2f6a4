#include "engine/gpu/gpu_backend.hpp"

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
  of.finite = scores.nonfinite == 0;
  of.count = scores.top_count;
  for (std::uint32_t i = 0; i < of.count; ++i) of.top[i] = {scores.top[i].token, scores.top[i].logprob};
  return of;
}

void report_sample(row_result& out, const kernels::gpu::sampled_token& sampled) {
  out.sampled = true;
  out.token = sampled.token;
  out.stopped = static_cast<stop_cause>(sampled.stopped);
  out.logprobs = logprobs_of(sampled.scores);
  out.finite = out.finite && out.logprobs.finite;
}

void report_score(row_result& out, const kernels::gpu::token_scores& score) {
  out.scores.push_back(logprobs_of(score));
  out.finite = out.finite && out.scores.back().finite;
}

void fill_penalties(const kernels::gpu::sampler_position& to, std::span<const sampling::token_penalty> penalties) {
  check(penalties.size() <= to.room, "more penalties than the vocabulary has tokens");
  to.record->penalty_count = static_cast<std::uint32_t>(penalties.size());
  for (std::size_t i = 0; i < penalties.size(); ++i) {
    to.tokens[i] = penalties[i].token;
    to.penalties[i] = penalties[i].penalty;
  }
}

// The rows of a group continue or stop together.
void check_groups(const tick_plan& plan, std::span<const kernels::gpu::row_outcome> done) {
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    if (plan.rows[i].group == 0) continue;
    const auto first = std::ranges::find(plan.rows, plan.rows[i].group, &row::group) - plan.rows.begin();
    const auto samples = [&](std::size_t row) { return done[row].status & kernels::gpu::samples; };
    check(samples(i) == samples(static_cast<std::size_t>(first)), "a group with both frozen and unfrozen slots");
  }
}

}  // namespace

gpu_backend::gpu_backend(std::unique_ptr<kernels::gpu::tick_runner> runner, const engine_info& info)
    : runner_(std::move(runner)),
      vocab_(info.vocab),
      state_(info.state),
      kept_(info.slots),
      max_tick_tokens_(info.max_tick_tokens),
      rules_(info),
      fetcher_(std::max(state_mover::usual_threads() / 2, 1u)) {
  check(runner_->sizes().state_bytes == state_.bytes(), "a runner with states of another format");
  rows_.reserve(info.max_tick_rows);
}

// The device keeps its first error: the next call that returns a result reports it.
constexpr const char* trouble_is_told = "the next tick reports it";

void gpu_backend::start(slot_id slot, const sampling::sampling_params& params) {
  ignore(bring_in(slot), trouble_is_told);
  drop_logits(slot);
  rules_.start(slot, params);
  ignore(runner_->start(slot, start_of(params)), trouble_is_told);
  ignore(give_prior(slot, params), trouble_is_told);
}

void gpu_backend::restart_sampler(slot_id slot, const sampling::sampling_params& params) {
  ignore(bring_in(slot), trouble_is_told);
  rules_.restart(slot, params);
  ignore(runner_->restart_sampler(slot, start_of(params)), trouble_is_told);
  ignore(give_prior(slot, params), trouble_is_told);
}

// Through a staging buffer, which can be reused as soon as this is queued.
result<void> gpu_backend::give_prior(slot_id slot, const sampling::sampling_params& params) {
  if (!params.prior || params.prior->empty()) return {};
  const auto stage = free_stage();
  if (!stage) return stage.error();
  const auto to = runner_->begin_write(*stage);
  if (!to) return to.error();
  fill_penalties(to->position, *params.prior);
  return runner_->give_penalties(*stage, slot);
}

void gpu_backend::copy_state(slot_id from, slot_id to) {
  for (const slot_id slot : {from, to}) ignore(bring_in(slot), trouble_is_told);
  drop_logits(to);
  rules_.copy(from, to);
  ignore(runner_->copy_slot(from, to), trouble_is_told);
}

void gpu_backend::clear(slot_id slot) {
  start(slot, sampling::sampling_params{});
  auto& kept = kept_[slot].logits;
  std::ranges::fill(kept, 0.0f);
}

result<void> gpu_backend::park(slot_id slot, parked_sequence& out) {
  if (auto r = depart(slot, &out, out.state); !r) return r;  // first, as `out` may be on its way from an earlier call
  out.sampler.rule = rules_.park(slot);
  const auto last_tokens = rules_.last_tokens(slot);
  departures_.back().last_tokens.assign(last_tokens.begin(), last_tokens.end());
  return {};
}

result<void> gpu_backend::read_state(slot_id slot, model::state_value& out) { return depart(slot, nullptr, out); }

// The sampler's part is small and is sent at once.
result<void> gpu_backend::unpark(slot_id slot, const sampling::sampling_params& params, const parked_sequence& in) {
  if (auto r = bring_in(slot); !r) return r;
  drop_logits(slot);
  if (auto r = see_off_to(&in.state, nullptr); !r) return r;
  rules_.unpark(slot, params, in);
  const auto stage = free_stage();
  if (!stage) return stage.error();
  const auto to = runner_->begin_write(*stage);
  if (!to) return to.error();
  kernels::gpu::slot_record& record = *to->position.record;
  record = {};
  record.last_token = in.last_tokens.empty() ? no_token : in.last_tokens.back();
  record.generated = in.sampler.generated;
  record.frozen = in.frozen;
  fill_penalties(to->position, in.sampler.penalties);
  if (auto r = runner_->restore(*stage, slot, start_of(params)); !r) return r;
  return arrive(slot, in.state.view(), *stage, *to);
}

result<void> gpu_backend::write_state(slot_id slot, const model::state_view& state) {
  if (auto r = bring_in(slot); !r) return r;
  drop_logits(slot);
  if (auto r = see_off_to(nullptr, state.bytes.data()); !r) return r;
  const auto stage = free_stage();
  if (!stage) return stage.error();
  const auto to = runner_->begin_write(*stage);
  if (!to) return to.error();
  return arrive(slot, state, *stage, *to);
}

result<void> gpu_backend::launch(const tick_plan& plan, tick_result& out) {
  launched_ = out.tick;
  out.rows.resize(plan.rows.size());
  rows_.clear();
  tokens_.assign(plan.tokens.begin(), plan.tokens.end());
  room_ = max_tick_tokens_;
  for (const row& r : plan.rows) room_ -= r.kind == row_kind::decode ? 1 : r.tokens;
  rules_.begin_tick(out.tick);
  for (const row& r : plan.rows)
    if (auto brought = bring_in(r.slot); !brought) return brought;
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    rows_.push_back(row_of(plan.rows[i], out.rows[i]));
    if (rows_.back().sample && !rows_.back().sync) rows_.back().allowed = rules_.mask(plan.rows[i]);
  }
  return runner_->launch({rows_, tokens_});
}

/// Feeds the last tokens of a slot that the host knows, or as many as the tick has room for.
void gpu_backend::feed_run(const row& r, tick_row& to, row_result& out) {
  const auto run = rules_.run(r.slot);
  if (run.empty()) return;
  check(r.group == 0, "a run of tokens in a group");
  const std::size_t more = std::min<std::size_t>(run.size() - 1, room_);
  room_ -= static_cast<std::uint32_t>(more);
  to.first_token = static_cast<std::uint32_t>(tokens_.size());
  to.tokens = static_cast<std::uint32_t>(1 + more);
  tokens_.insert(tokens_.end(), run.begin(), run.begin() + static_cast<std::ptrdiff_t>(to.tokens));
  rules_.drop_last_tokens(r.slot, to.tokens);
  out.unfed = static_cast<std::uint32_t>(rules_.last_tokens(r.slot).size());
  to.sample = to.sample && out.unfed == 0;
  to.sync = to.sync && to.sample;
}

tick_row gpu_backend::row_of(const row& r, row_result& out) {
  reset(out, r.slot);
  tick_row to;
  to.slot = r.slot;
  to.first_token = r.first_token, to.tokens = r.kind == row_kind::decode ? 0 : r.tokens;
  to.chunked = r.chunked;
  to.sample = r.sample, to.sync = r.sync;
  to.score = r.kind == row_kind::score, to.score_next = r.score_next, to.score_top = r.score_top;
  to.group = r.group, to.weight = r.weight;
  to.copied = r.logits == logits_wanted::none && !r.sync                     ? tick_row::copies::none
              : r.logits == logits_wanted::all && r.kind != row_kind::decode ? tick_row::copies::all
                                                                             : tick_row::copies::last;
  if (r.kind == row_kind::decode)
    feed_run(r, to, out);
  else
    rules_.drop_last_tokens(r.slot, rules_.last_tokens(r.slot).size());
  if (to.copied == tick_row::copies::none) return to;
  const std::size_t positions = to.copied == tick_row::copies::all ? std::max(to.tokens, 1u) : 1;
  out.logits.resize(positions * vocab_);
  to.logits = out.logits.data();
  return to;
}

bool gpu_backend::ready() { return runner_->ready(); }

result<void> gpu_backend::complete(const tick_plan& plan, tick_result& out) {
  const auto done = runner_->complete();
  if (!done) return done.error();
  check_groups(plan, *done);
  for (std::size_t i = 0; i < plan.rows.size(); ++i) report(plan, i, (*done)[i], out.tick, out.rows[i]);
  return runner_->force(rules_.end_tick(out));
}

void gpu_backend::report(const tick_plan& plan, std::size_t index, const kernels::gpu::row_outcome& done,
                         std::uint64_t tick, row_result& out) {
  const row& r = plan.rows[index];
  const bool samples = (done.status & kernels::gpu::samples) != 0;
  out.frozen = (done.status & kernels::gpu::was_frozen) != 0;
  if ((done.status & kernels::gpu::budget_spent) != 0) out.stopped = stop_cause::budget;
  check((done.status & kernels::gpu::nothing_to_feed) == 0, "a decode row in a slot that has sampled nothing");
  const bool idle = r.kind == row_kind::decode && r.sample ? !samples : r.kind == row_kind::decode && out.frozen;
  if (idle || (r.sync && !samples && r.logits == logits_wanted::none)) out.logits.clear();

  for (const auto& score : done.scores) report_score(out, score);
  if (done.last_score) report_score(out, *done.last_score);
  if (done.sampled) report_sample(out, *done.sampled);
  if (!r.sync || !samples) return;
  out.awaits_sample = true;
  kept_logits& kept = kept_[r.slot];
  if (kept.dropped_after >= tick) return;
  kept.awaited = true;
  kept.logits.assign(out.logits.end() - static_cast<std::ptrdiff_t>(vocab_), out.logits.end());
}

result<void> gpu_backend::settle() {
  if (auto r = see_off(departures_.size()); !r) return r;
  while (!arrivals_.empty())
    if (auto r = bring_in_first(); !r) return r;
  return runner_->settle();
}

result<row_result> gpu_backend::sample(slot_id slot, std::span<const std::uint32_t> allowed) {
  kept_logits& kept = kept_[slot];
  check(kept.awaited, "a draw in a slot that has kept no logits");
  kept.awaited = false;
  const auto sampled = runner_->sample(slot, kept.logits, allowed);
  if (!sampled) return sampled.error();
  check(sampled->sampled != 0, "a mask that allows no token");
  row_result out;
  out.slot = slot;
  report_sample(out, *sampled);
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
  s.filters_first = params.filters_first, s.noise = params.noise;
  s.sampled_before = params.sampled_before;
  s.max_tokens = params.sampled_before + std::min(params.max_tokens, ~0u - params.sampled_before);
  s.seed = params.seed, s.row = params.row;
  s.logprobs = params.logprobs;
  s.top_logprobs = std::min(params.top_logprobs, sampling::top_logprobs_max);
  to.bias = bias_, to.stop_ids = params.stop_ids;
  return to;
}

void gpu_backend::drop_logits(slot_id slot) {
  kept_[slot].awaited = false;
  kept_[slot].dropped_after = launched_;
}

result<void> gpu_backend::depart(slot_id slot, parked_sequence* parked, model::state_value& state) {
  check(!parked || !kept_[slot].awaited, "a slot parked between its logits and the draw");
  if (auto r = bring_in(slot); !r) return r;
  const std::byte* const memory = state.bytes.data();
  if (auto r = see_off_to(&state, memory); !r) return r;  // copies into the same memory run one after the other
  const auto stage = free_stage();
  if (!stage) return stage.error();
  departures_.push_back({*stage, parked, &state, memory});
  return runner_->begin_read(slot, *stage);
}

result<void> gpu_backend::arrive(slot_id slot, const model::state_view& state, std::uint32_t stage,
                                 const kernels::gpu::staged_state& to) {
  check(state.format.layout == state_.layout, "a state of another layout");
  check(state.bytes.size() == state.format.bytes(), "a state of the wrong size");
  arrivals_.push_back({stage, slot, fetcher_.copy(state, state_, to.state)});
  return {};
}

result<states_on_way> gpu_backend::move_states() {
  while (handed_over_ < departures_.size() && runner_->arrived(departures_[handed_over_].stage))
    if (auto r = hand_over(); !r) return r.error();
  for (; handed_over_ > 0 && mover_.made(departures_.front().copy); --handed_over_) departures_.pop_front();

  for (arrival& next : arrivals_) {
    if (next.sent) continue;
    if (!fetcher_.made(next.copy)) break;
    if (auto r = runner_->send(next.stage); !r) return r.error();
    next.sent = true;
  }
  while (!arrivals_.empty() && arrivals_.front().sent && runner_->arrived(arrivals_.front().stage))
    if (auto r = bring_in_first(); !r) return r.error();
  return states_on_way{static_cast<std::uint32_t>(departures_.size()), static_cast<std::uint32_t>(arrivals_.size())};
}

result<void> gpu_backend::bring_in_first() {
  const arrival first = arrivals_.front();
  arrivals_.pop_front();
  fetcher_.wait(first.copy);
  if (!first.sent)
    if (auto r = runner_->send(first.stage); !r) return r;
  return runner_->end_write(first.stage, first.slot);
}

result<void> gpu_backend::bring_in(slot_id slot) {
  while (std::ranges::find(arrivals_, slot, &arrival::slot) != arrivals_.end())
    if (auto r = bring_in_first(); !r) return r;
  return {};
}

result<void> gpu_backend::hand_over() {
  departure& next = departures_[handed_over_];
  const auto from = runner_->end_read(next.stage);
  if (!from) return from.error();
  ++handed_over_;
  if (next.parked) {
    const kernels::gpu::sampler_position& position = from->position;
    next.parked->last_tokens = std::move(next.last_tokens);
    if (const token_id last = position.record->last_token; next.parked->last_tokens.empty() && last != no_token)
      next.parked->last_tokens = {last};
    next.parked->frozen = position.record->frozen != 0;
    next.parked->sampler.generated = position.record->generated;
    next.parked->sampler.penalties.resize(position.record->penalty_count);
    for (std::uint32_t i = 0; i < position.record->penalty_count; ++i)
      next.parked->sampler.penalties[i] = {position.tokens[i], position.penalties[i]};
  }
  next.copy = mover_.copy({state_, from->state}, *next.state);
  return {};
}

result<void> gpu_backend::see_off(std::size_t count) {
  for (; count > 0; --count) {
    if (handed_over_ == 0)
      if (auto r = hand_over(); !r) return r;
    mover_.wait(departures_.front().copy);
    departures_.pop_front();
    --handed_over_;
  }
  return {};
}

// Waits for departures into this memory and those before them, not for later ones.
result<void> gpu_backend::see_off_to(const model::state_value* state, const std::byte* memory) {
  const auto comes_there = [&](const departure& d) { return d.state == state || (memory && d.memory == memory); };
  const auto last = std::find_if(departures_.rbegin(), departures_.rend(), comes_there);
  return see_off(static_cast<std::size_t>(departures_.rend() - last));
}

bool gpu_backend::is_free(std::uint32_t stage) const {
  return std::ranges::find(departures_, stage, &departure::stage) == departures_.end() &&
         std::ranges::find(arrivals_, stage, &arrival::stage) == arrivals_.end();
}

// Round robin, so that the least recently used one is taken.
result<std::uint32_t> gpu_backend::free_stage() {
  const std::uint32_t stages = runner_->sizes().state_stages;
  while (true) {
    for (std::uint32_t i = 0; i < stages; ++i)
      if (const std::uint32_t stage = next_stage_++ % stages; is_free(stage)) return stage;
    const auto r = departures_.empty() ? bring_in_first() : see_off(1);
    if (!r) return r.error();
  }
}

}  // namespace skein::engine
