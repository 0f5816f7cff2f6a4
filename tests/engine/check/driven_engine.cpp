#include "tests/engine/check/driven_engine.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/check.hpp"

namespace skein::test {
namespace {

constexpr std::uint32_t prompt_row_tokens = 64;

template <typename T>
T or_throw(result<T> answer) {
  if (!answer) throw std::runtime_error(answer.error().message);
  return *answer;
}

const engine::tick_result& run(skein::engine::engine& on, const engine::tick_plan& plan) {
  or_throw(on.submit(plan));
  return *or_throw(on.collect());
}

/// As many tokens of a row as may go in chunks, so that the chunked kernels are checked too.
std::uint32_t chunked_of(std::uint32_t tokens, std::uint32_t chunk) {
  if (chunk == 0) return 0;
  const std::uint32_t rest = tokens % chunk;
  return 2 * rest >= chunk ? tokens : tokens - rest;
}

/// Feeds everything; `after` sees each row of a tick's plan with its result, in order.
template <typename Prepare, typename After>
void feed(skein::engine::engine& on, const sequences& all, std::span<const slot_id> slots, const cutter& cut,
          const Prepare& prepare, const After& after) {
  std::vector<std::size_t> fed(all.size(), 0);
  std::size_t first = 0;  // takes its turn first: a full tick must not starve the last ones
  for (bool more = true; more;) {
    engine::tick_plan plan;
    std::vector<std::size_t> of_row;
    more = false;
    for (std::size_t k = 0; k < all.size(); ++k) {
      const std::size_t i = (first + k) % all.size();
      const auto left = static_cast<std::uint32_t>(all[i].size() - fed[i]);
      const auto room = static_cast<std::uint32_t>(on.info().max_tick_tokens - plan.tokens.size());
      if (left == 0) continue;
      more = true;
      // Cut as it is cut alone, whatever room others leave: where a prompt is cut may change its bits.
      const std::uint32_t piece = std::min({left, cut(left), on.info().max_tick_tokens});
      if (piece > room || plan.rows.size() == on.info().max_tick_rows) continue;
      engine::row row;
      row.slot = slots[i];
      row.kind = engine::row_kind::prefill;
      row.first_token = static_cast<std::uint32_t>(plan.tokens.size());
      row.tokens = piece;
      row.chunked = chunked_of(piece, on.info().chunk_tokens);
      check(row.tokens > 0);
      prepare(row, left == row.tokens);
      const auto from = all[i].begin() + static_cast<std::ptrdiff_t>(fed[i]);
      plan.tokens.insert(plan.tokens.end(), from, from + row.tokens);
      plan.rows.push_back(row);
      of_row.push_back(i);
      fed[i] += row.tokens;
    }
    first = (first + 1) % all.size();
    if (!more) return;
    const auto& outcome = run(on, plan);
    for (std::size_t r = 0; r < of_row.size(); ++r) after(of_row[r], outcome.rows[r]);
  }
}

float margin_of(std::span<const float> logits) {
  float best = -INFINITY, second = -INFINITY;
  for (const float logit : logits) {
    second = std::max(second, std::min(best, logit));
    best = std::max(best, logit);
  }
  return best - second;
}

void note_sample(transcript& to, const engine::row_result& row, bool with_margin) {
  if (!row.sampled) throw std::runtime_error("a row that should draw did not");
  to.tokens.push_back(row.token);
  to.logprobs.push_back(row.logprobs.logprob);
  if (with_margin) to.margins.push_back(margin_of(row.logits));
}

}  // namespace

std::vector<std::vector<float>> feed_together(skein::engine::engine& on, const sequences& all,
                                              std::span<const slot_id> slots, const cutter& cut) {
  std::vector<std::vector<float>> logits(all.size());
  for (const slot_id slot : slots) on.start(slot, {});
  feed(
      on, all, slots, cut, [](engine::row& row, bool) { row.logits = engine::logits_wanted::all; },
      [&](std::size_t i, const engine::row_result& row) {
        logits[i].insert(logits[i].end(), row.logits.begin(), row.logits.end());
      });
  return logits;
}

std::vector<transcript> continue_together(skein::engine::engine& on, const sequences& prompts,
                                          std::span<const slot_id> slots,
                                          const std::vector<sampling::sampling_params>& params, std::uint32_t count,
                                          bool with_margins) {
  std::vector<transcript> sampled(prompts.size());
  const auto wanted = with_margins ? engine::logits_wanted::last : engine::logits_wanted::none;
  for (std::size_t i = 0; i < prompts.size(); ++i) on.start(slots[i], params[i]);
  feed(
      on, prompts, slots, [](std::uint32_t) { return prompt_row_tokens; },
      [&](engine::row& row, bool last) {
        row.sample = last;
        row.logits = last ? wanted : engine::logits_wanted::none;
      },
      [&](std::size_t i, const engine::row_result& row) {
        if (row.sampled) note_sample(sampled[i], row, with_margins);
      });

  engine::tick_plan plan;
  for (const slot_id slot : slots.first(prompts.size())) {
    engine::row row;
    row.slot = slot;
    row.sample = true;
    row.logits = wanted;
    plan.rows.push_back(row);
  }
  for (std::uint32_t submitted = 1, collected = 1; collected < count; ++collected) {
    for (; submitted < count && on.ticks_in_flight() < on.info().ticks_in_flight_max; ++submitted)
      or_throw(on.submit(plan));
    const auto& outcome = *or_throw(on.collect());
    for (std::size_t i = 0; i < prompts.size(); ++i) note_sample(sampled[i], outcome.rows[i], with_margins);
  }
  return sampled;
}

}  // namespace skein::test
