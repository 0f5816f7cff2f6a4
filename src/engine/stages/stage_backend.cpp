#include "engine/stages/stage_backend.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.hpp"
#include "engine/row_results.hpp"
#include "model/forward.hpp"

namespace skein::engine {
namespace {

template <typename Body>
void parallel_for(kernels::stages& stages, std::size_t count, Body body) {
  const auto piece = [](void* context, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) (*static_cast<Body*>(context))(i);
  };
  stages.parallel_for(count, piece, &body);
}

void report_sample(row_result& out, const sampling::sampler::sampled& sampled, stop_cause stopped) {
  out.sampled = true;
  out.finite = out.finite && sampled.finite;
  out.token = sampled.token;
  out.logprobs = sampled.logprobs;
  out.stopped = stopped;
}

std::uint32_t planned_tokens(const tick_plan& plan) {
  std::uint32_t tokens = 0;
  for (const row& r : plan.rows) tokens += r.kind == row_kind::decode ? 1 : r.tokens;
  return tokens;
}

/// A decode row has logits of one position, however many tokens it feeds.
logits_wanted wanted_of(const row& r) {
  return r.logits == logits_wanted::all && r.kind == row_kind::decode ? logits_wanted::last : r.logits;
}

}  // namespace

stage_backend::stage_backend(std::unique_ptr<kernels::stages> stages, const stage_engine_options& shape)
    : stages_(std::move(stages)),
      state_(shape.state),
      layers_(shape.layers),
      vocab_(shape.vocab),
      max_logit_rows_(shape.limits.max_logit_rows),
      max_tick_tokens_(shape.limits.max_rows),
      forced_max_(shape.forced_max),
      groups_(shape.vocab),
      logits_(std::size_t{max_logit_rows_} * vocab_) {
  check(max_logit_rows_ > 0);
  slots_.reserve(shape.limits.slots);  // samplers are constructed in place: a copy would lose their reserved capacity
  for (std::uint32_t i = 0; i < shape.limits.slots; ++i) slots_.emplace_back(vocab_);
}

void stage_backend::start(slot_id slot, const sampling::sampling_params& params) {
  stages_->clear_state(slot);
  slots_[slot].start(params);
}

void stage_backend::restart_sampler(slot_id slot, const sampling::sampling_params& params) {
  slots_[slot].restart_sampler(params);
}

void stage_backend::copy_state(slot_id from, slot_id to) {
  stages_->copy_state(from, to);
  slots_[to].copy_position(slots_[from]);
}

void stage_backend::clear(slot_id slot) { start(slot, sampling::sampling_params{}); }

result<void> stage_backend::park(slot_id slot, parked_sequence& out) {
  slots_[slot].save(out);
  return stage_backend::read_state(slot, out.state);
}

result<void> stage_backend::unpark(slot_id slot, const sampling::sampling_params& params, const parked_sequence& in) {
  slots_[slot].restore(params, in);
  write_into(slot, in.state.view());
  return {};
}

result<void> stage_backend::write_state(slot_id slot, const model::state_view& state) {
  slots_[slot].drop_logits();
  write_into(slot, state);
  return {};
}

result<void> stage_backend::read_state(slot_id slot, model::state_value& out) {
  out.format = state_;
  try {
    out.bytes.resize(state_.bytes());
  } catch (const std::bad_alloc&) {  // not the loss of the device
    out.bytes.clear();
    return stages_->status();
  }
  stages_->read_state(slot, model::floats_in(out));
  return stages_->status();
}

void stage_backend::write_into(slot_id slot, const model::state_view& state) {
  if (state.format == state_) {
    check(state.bytes.size() == state_.bytes(), "a state of the wrong size");
    return stages_->write_state(slot, model::floats_in(state));
  }
  converted_.format = state_;
  converted_.bytes.resize(state_.bytes());
  model::copy_state(state, state_, converted_.bytes);
  stages_->write_state(slot, model::floats_in(converted_.view()));
}

result<void> stage_backend::launch(const tick_plan& plan, tick_result& out) { return run(plan, out.rows); }

result<void> stage_backend::run(const tick_plan& plan, std::vector<row_result>& results) {
  results.resize(plan.rows.size());
  groups_.begin(plan.rows);
  tokens_.clear();
  runs_.clear();
  wanted_.clear();
  wanted_rows_.clear();
  room_ = max_tick_tokens_ - planned_tokens(plan);
  for (std::uint32_t i = 0; i < plan.rows.size(); ++i) pack_row(plan, i, results[i]);
  if (tokens_.empty()) return {};

  const kernels::batch batch{tokens_, runs_};
  model::forward(*stages_, layers_, batch);
  read_logits(plan, batch, results);
  sample_groups(plan, results);
  return stages_->status();
}

void stage_backend::pack_row(const tick_plan& plan, std::uint32_t index, row_result& out) {
  const row& r = plan.rows[index];
  sequence_slot& slot = slots_[r.slot];
  // The rows of a group continue or stop together; the slot of its first row decides.
  sequence_slot& deciding = r.group == 0 ? slot : slots_[plan.rows[groups_.of(r).first_row].slot];
  reset(out, r.slot);
  out.frozen = slot.frozen();
  if (r.sample && !slot.frozen() && deciding.budget_spent()) {
    slot.freeze();
    out.stopped = stop_cause::budget;
  }
  check(r.group == 0 || slot.frozen() == deciding.frozen(), "a group with both frozen and unfrozen slots");
  if (r.kind == row_kind::decode && slot.frozen()) return;

  const auto first_row = static_cast<std::uint32_t>(tokens_.size());
  bool samples = r.sample && !slot.frozen();
  if (r.kind == row_kind::decode) {
    samples &= pack_last_tokens(slot, r, out);
  } else {
    slot.drop_last_tokens(slot.last_tokens().size());
    slot.drop_logits();
    const auto given = std::span(plan.tokens).subspan(r.first_token, r.tokens);
    tokens_.insert(tokens_.end(), given.begin(), given.end());
  }
  const auto tokens = static_cast<std::uint32_t>(tokens_.size()) - first_row;
  runs_.push_back({r.slot, first_row, tokens});
  want_logits(r, index, tokens, samples, out);
}

/// Feeds the last tokens of the slot, or as many as the tick has room for. False if some are left.
bool stage_backend::pack_last_tokens(sequence_slot& slot, const row& r, row_result& out) {
  check(!slot.awaits_sample(), "a decode row before its draw");
  const auto waiting = slot.last_tokens();
  check(!waiting.empty(), "a decode row in a slot that has sampled nothing");
  check(r.group == 0 || waiting.size() == 1, "a run of tokens in a group");
  const std::size_t more = std::min<std::size_t>(waiting.size() - 1, room_);
  room_ -= static_cast<std::uint32_t>(more);
  tokens_.insert(tokens_.end(), waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(1 + more));
  slot.drop_last_tokens(1 + more);
  out.unfed = static_cast<std::uint32_t>(slot.last_tokens().size());
  return out.unfed == 0;
}

void stage_backend::want_logits(const row& r, std::uint32_t index, std::uint32_t tokens, bool samples,
                                row_result& out) {
  const std::uint32_t last = tokens - 1;
  const logits_wanted copied = wanted_of(r);
  const bool every_position = copied == logits_wanted::all;
  const bool last_position = samples || copied == logits_wanted::last;
  const std::uint32_t scored = scores_of(r, tokens);
  out.scores.resize(scored);
  if (every_position || copied == logits_wanted::last || (samples && r.sync))
    out.logits.resize(std::size_t{every_position ? tokens : 1} * vocab_);

  const auto first_row = static_cast<std::uint32_t>(tokens_.size()) - tokens;
  const std::uint32_t begin = every_position || r.kind == row_kind::score ? 0 : last;
  const std::uint32_t end = every_position || last_position || scored == tokens ? tokens : last;
  for (std::uint32_t position = begin; position < end; ++position) {
    wanted_.push_back({index, position, position == last, position == last && samples});
    wanted_rows_.push_back(first_row + position);
  }
}

void stage_backend::read_logits(const tick_plan& plan, const kernels::batch& batch, std::vector<row_result>& results) {
  for (std::size_t begin = 0; begin < wanted_.size(); begin += max_logit_rows_) {
    const std::size_t count = std::min<std::size_t>(max_logit_rows_, wanted_.size() - begin);
    const auto piece = std::span(wanted_).subspan(begin, count);
    stages_->head(batch, std::span(wanted_rows_).subspan(begin, count), std::span(logits_).first(count * vocab_));
    parallel_for(*stages_, count,
                 [&](std::size_t i) { use_logits(plan, piece[i], logits_row(i), results[piece[i].row]); });
    // One after another: positions of a row share its result, rows of a group add to the same sums.
    for (std::size_t i = 0; i < count; ++i) {
      const row& r = plan.rows[piece[i].row];
      row_result& out = results[piece[i].row];
      if (piece[i].position < out.scores.size()) out.finite = out.finite && out.scores[piece[i].position].finite;
      if (piece[i].samples && r.group != 0) groups_.add(r, slots_[r.slot].sampler(), logits_row(i));
    }
  }
}

void stage_backend::use_logits(const tick_plan& plan, const wanted_position& wanted, std::span<float> logits,
                               row_result& out) {
  const row& r = plan.rows[wanted.row];
  sequence_slot& slot = slots_[r.slot];
  if (wanted_of(r) == logits_wanted::all)
    std::ranges::copy(logits, out.logits.begin() + static_cast<std::ptrdiff_t>(std::size_t{wanted.position} * vocab_));
  else if (wanted.last && !out.logits.empty())
    std::ranges::copy(logits, out.logits.begin());

  if (wanted.position < out.scores.size()) {
    const token_id next = wanted.last ? r.score_next : plan.tokens[r.first_token + wanted.position + 1];
    out.scores[wanted.position] = sampling::log_probabilities(logits, next, r.score_top);
  }
  if (!wanted.samples || r.group != 0) return;
  if (r.sync) {
    slot.keep_logits(logits);
    out.awaits_sample = true;
  } else {
    const auto sampled = slot.sampler().sample(logits);
    report_sample(out, sampled, slot.accept(sampled.token));
    force(slot, out);
  }
}

/// Takes the tokens that can only come after the sampled one.
void stage_backend::force(sequence_slot& slot, row_result& out) const {
  while (out.stopped == stop_cause::none && out.forced.size() < forced_max_) {
    const token_id next = slot.sampler().forced();
    if (next == no_token) return;
    slot.sampler().record(next);
    out.forced.push_back(next);
    out.stopped = slot.accept(next);
  }
}

void stage_backend::sample_groups(const tick_plan& plan, std::vector<row_result>& results) {
  for (group_mixer::group& g : groups_.groups()) {
    sequence_slot& first = slots_[plan.rows[g.first_row].slot];
    if (first.frozen()) continue;
    const auto sampled = first.sampler().sample_penalised(g.penalised, g.raw);
    const stop_cause stopped = first.accept(sampled.token);
    for (std::size_t i = g.first_row; i < plan.rows.size(); ++i) {
      if (plan.rows[i].group != g.id) continue;
      if (i != g.first_row) {
        sequence_slot& slot = slots_[plan.rows[i].slot];
        slot.sampler().record(sampled.token);
        slot.accept(sampled.token, stopped);
      }
      report_sample(results[i], sampled, stopped);
    }
  }
}

result<row_result> stage_backend::sample(slot_id slot, std::span<const std::uint32_t> allowed) {
  row_result out;
  out.slot = slot;
  const auto sampled = slots_[slot].sample_kept(allowed);
  report_sample(out, sampled, slots_[slot].accept(sampled.token));
  return out;
}

}  // namespace skein::engine
