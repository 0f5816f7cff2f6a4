#include "engine/stages/sequence_slot.hpp"

#include "base/check.hpp"

namespace skein::engine {

void sequence_slot::start(const sampling::sampling_params& params) {
  sampler_.start(params);
  last_tokens_.clear();
  frozen_ = false;
  awaits_sample_ = false;
  kept_logits_.assign(kept_logits_.size(), 0.0f);
}

void sequence_slot::restart_sampler(const sampling::sampling_params& params) {
  sampler_.start(params);
  frozen_ = false;
}

void sequence_slot::copy_position(const sequence_slot& from) {
  const sampling::sampling_params own = sampler_.params();
  start(own);
  sampler_.restore(from.sampler_.save());
  last_tokens_ = from.last_tokens_;
  frozen_ = from.frozen_;
}

void sequence_slot::save(parked_sequence& out) const {
  check(!awaits_sample_, "a slot parked between its logits and the draw");
  out.sampler = sampler_.save();
  out.last_tokens = last_tokens_;
  out.frozen = frozen_;
}

void sequence_slot::restore(const sampling::sampling_params& params, const parked_sequence& in) {
  start(params);
  sampler_.restore(in.sampler);
  last_tokens_ = in.last_tokens;
  frozen_ = in.frozen;
}

stop_cause sequence_slot::accept(token_id token) {
  const bool ends = sampler_.is_stop(token) || sampler_.is_complete();
  const stop_cause cause = sampler_.is_stuck() ? stop_cause::budget
                           : ends              ? stop_cause::stop_id
                           : budget_spent()    ? stop_cause::budget
                                               : stop_cause::none;
  accept(token, cause);
  return cause;
}

void sequence_slot::accept(token_id token, stop_cause decided) {
  last_tokens_.push_back(token);
  if (decided != stop_cause::none) frozen_ = true;
}

void sequence_slot::keep_logits(std::span<const float> logits) {
  kept_logits_.assign(logits.begin(), logits.end());
  awaits_sample_ = true;
}

sampling::sampler::sampled sequence_slot::sample_kept(std::span<const std::uint32_t> allowed) {
  check(awaits_sample_, "a draw in a slot that has kept no logits");
  awaits_sample_ = false;
  return sampler_.sample(kept_logits_, allowed);
}

}  // namespace skein::engine
