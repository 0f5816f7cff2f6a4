#include "actors/device/sequence.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace skein::device {

void sequence::advance(row_stage next) {
  check(static_cast<int>(next) == static_cast<int>(stage_) + 1, "a row takes one stage after the other");
  stage_ = next;
}

bool sequence::ends_soon() const { return !over() && owner->to_settle && owner->to_settle->ends_with; }

bool sequence::can_decode() const {
  const request_record& r = *owner;
  if (over() || ends_soon() || !r.answers(*this)) return false;
  if (samples_planned > 0) return samples_planned < r.params(*this).max_tokens;
  // The sequences of a mixture sample once each has fed all but the last token of the prompt.
  return r.mixes() && std::ranges::all_of(r.rows, [&](const sequence& one) { return one.fed == r.feed_limit(); });
}

bool sequence::can_prefill() const {
  if (fed >= owner->feed_limit()) return false;
  return over() ? feeds_text() : !ends_soon();
}

void settlement::take(const engine::row_result& row) {
  if (row.unfed > 0) unfed = row.unfed;
  if (!row.sampled) return;
  sampled.push_back(row.token);
  sampled.insert(sampled.end(), row.forced.begin(), row.forced.end());
  unfed = 1 + static_cast<std::uint32_t>(row.forced.size());
}

void request_record::enter(request_phase next) {
  switch (next) {
    case request_phase::queued: return check(false, "a request is queued once");
    case request_phase::sharing:
      check(phase_ == request_phase::queued, "a request is admitted once");
      check(rows.size() > 1 && !mixes(), "only rows of one prompt share it");
      break;
    case request_phase::running:
      check(phase_ == request_phase::sharing || (phase_ == request_phase::queued && (rows.size() == 1 || mixes())),
            "a request forks once");
      break;
    case request_phase::ended: check(phase_ != request_phase::ended, "a request ends once"); break;
  }
  phase_ = next;
}

}  // namespace skein::device
