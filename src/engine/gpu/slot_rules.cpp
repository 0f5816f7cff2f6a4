#include "engine/gpu/slot_rules.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace skein::engine {

/// A rule that knows whether a token of it is still on the device.
class slot_rules::tracked final : public sampling::token_rule {
 public:
  tracked(std::unique_ptr<sampling::token_rule> rule, std::uint32_t generated)
      : rule_(std::move(rule)), generated_(generated) {}
  tracked(const tracked& other)
      : token_rule(other),
        rule_(other.rule_->fork()),
        generated_(other.generated_),
        waits(other.waits),
        stuck(other.stuck),
        tick(other.tick) {}
  tracked& operator=(const tracked&) = delete;  // rules are forked

  [[nodiscard]] std::unique_ptr<token_rule> fork() const override { return std::make_unique<tracked>(*this); }
  [[nodiscard]] bool allow(std::span<std::uint32_t> allowed) override { return rule_->allow(allowed); }
  [[nodiscard]] token_id forced() override { return rule_->forced(); }
  void record(token_id token) override {
    rule_->record(token);
    ++generated_;
  }
  [[nodiscard]] bool complete() const override { return rule_->complete(); }
  [[nodiscard]] std::uint32_t generated() const { return generated_; }

 private:
  std::unique_ptr<sampling::token_rule> rule_;
  std::uint32_t generated_;

 public:
  bool waits = false;      ///< its next token is on the device
  bool stuck = false;      ///< that token was not allowed
  bool copied = false;     ///< there is a copy that waits for the same token
  std::uint64_t tick = 0;  ///< that samples it
};

slot_rules::slot_rules(const engine_info& info)
    : words_((info.vocab + 31) / 32),
      rows_max_(info.max_tick_rows),
      vocab_(info.vocab),
      forced_max_(info.forced_max),
      slots_(info.slots) {}

void slot_rules::start(slot_id slot, const sampling::sampling_params& params) {
  restart(slot, params);
  slots_[slot].last_tokens.clear();
}

void slot_rules::restart(slot_id slot, const sampling::sampling_params& params) {
  slot_entry& s = slots_[slot];
  s.rule = params.rule ? std::make_shared<tracked>(params.rule->begin(), params.sampled_before) : nullptr;
  s.ended = params.max_tokens == 0;
  if (!params.rule) return;
  s.stop_ids = params.stop_ids;
  s.generated_max = params.sampled_before + std::min(params.max_tokens, ~0u - params.sampled_before);
  s.logprobs = params.logprobs, s.top_logprobs = params.top_logprobs;
  masks_.resize(words_ * rows_max_);
}

void slot_rules::copy(slot_id from, slot_id to) {
  if (slots_[from].rule && slots_[to].rule) slots_[to].rule = copied(from);
  slots_[to].last_tokens = slots_[from].last_tokens;
  slots_[to].ended = slots_[from].ended;
}

std::shared_ptr<const sampling::token_rule> slot_rules::park(slot_id slot) {
  return slots_[slot].rule ? copied(slot) : nullptr;
}

/// A copy at the same position. If a token is on the device, both learn it.
std::shared_ptr<slot_rules::tracked> slot_rules::copied(slot_id slot) {
  tracked& rule = *slots_[slot].rule;
  auto copy = std::make_shared<tracked>(rule);
  if (rule.waits) {
    rule.copied = true;
    in_flight_[rule.tick % in_flight_.size()].push_back({slot, copy, false, 0});
  }
  return copy;
}

void slot_rules::unpark(slot_id slot, const sampling::sampling_params& params, const parked_sequence& parked) {
  start(slot, params);
  slot_entry& s = slots_[slot];
  if (parked.last_tokens.size() > 1) s.last_tokens = parked.last_tokens;
  s.ended = parked.frozen;
  if (!params.rule || !parked.sampler.rule) return;
  // All rules that leave park() are of this class, unless the sequence was parked by another engine.
  const auto own = std::dynamic_pointer_cast<const tracked>(parked.sampler.rule);
  if (own && own->waits)
    s.rule = std::const_pointer_cast<tracked>(own);  // it learns the token here
  else if (own)
    s.rule = std::make_shared<tracked>(*own);
  else
    s.rule = std::make_shared<tracked>(parked.sampler.rule->fork(), parked.sampler.generated);
}

std::span<const token_id> slot_rules::run(slot_id slot) const {
  const slot_entry& s = slots_[slot];
  const bool spent = s.rule && s.rule->generated() >= s.generated_max;
  return s.ended || spent ? std::span<const token_id>() : s.last_tokens;
}

void slot_rules::drop_last_tokens(slot_id slot, std::size_t count) {
  auto& tokens = slots_[slot].last_tokens;
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
}

void slot_rules::begin_tick(std::uint64_t tick) {
  tick_ = tick;
  in_flight_[tick % in_flight_.size()].clear();
}

const std::uint32_t* slot_rules::mask(const row& r) {
  const auto& rule = slots_[r.slot].rule;
  if (!rule) return nullptr;
  check(!rule->waits, "a row with a rule before its last token is known");
  check(r.group == 0, "a row with a rule in a group");
  auto& rows = in_flight_[tick_ % in_flight_.size()];
  const auto to = std::span(masks_).subspan(rows.size() * words_, words_);
  const bool certain = rule->forced() != no_token;
  rule->stuck = !rule->allow(to);
  if (std::ranges::all_of(to, [](std::uint32_t word) { return word == 0; })) std::ranges::fill(to, ~0u);
  rule->waits = true;
  rule->copied = false;
  rule->tick = tick_;
  const slot_entry& s = slots_[r.slot];
  rows.push_back({r.slot, rule, certain && !rule->stuck && s.logprobs, s.top_logprobs});
  return to.data();
}

std::span<const kernels::gpu::forced_run> slot_rules::end_tick(tick_result& done) {
  runs_.clear();
  auto& rows = in_flight_[done.tick % in_flight_.size()];
  for (const auto& [slot, rule, certain, top_logprobs] : rows) {
    rule->waits = false;
    const auto row = std::ranges::find(done.rows, slot, &row_result::slot);
    if (row == done.rows.end() || !row->sampled) continue;
    rule->record(row->token);
    if (certain) row->logprobs = sampling::certain_token(row->token, top_logprobs);
    if (rule->stuck)
      row->stopped = stop_cause::budget;
    else if (rule->complete())
      row->stopped = stop_cause::stop_id;
    // Not if there is a copy without these tokens, or another sequence has the slot by now.
    if (slots_[slot].rule == rule && !rule->copied) force(slot, *row);
  }
  rows.clear();
  return runs_;
}

/// Takes the tokens that can only come after the sampled one.
void slot_rules::force(slot_id slot, row_result& out) {
  slot_entry& s = slots_[slot];
  kernels::gpu::forced_run run{.slot = slot};
  while (out.stopped == stop_cause::none && run.count < forced_max_) {
    const token_id next = s.rule->forced();
    if (next < 0 || static_cast<std::uint32_t>(next) >= vocab_) break;
    s.rule->record(next);
    run.tokens[run.count++] = next;
    if (std::ranges::find(s.stop_ids, next) != s.stop_ids.end() || s.rule->complete())
      out.stopped = stop_cause::stop_id;
    else if (s.rule->generated() >= s.generated_max)
      out.stopped = stop_cause::budget;
  }
  if (run.count == 0) return;
  out.forced.assign(run.tokens, run.tokens + run.count);
  s.last_tokens = {out.token};
  s.last_tokens.insert(s.last_tokens.end(), out.forced.begin(), out.forced.end());
  s.ended = out.stopped != stop_cause::none;
  run.stopped = static_cast<kernels::gpu::sample_stop>(out.stopped);
  runs_.push_back(run);
}

}  // namespace skein::engine
