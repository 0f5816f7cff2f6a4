#include "actors/device/row_planner.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/check.hpp"

namespace skein::device {

void row_planner::plan(std::span<const std::uint8_t> congested) {
  planned_rows rows;
  if (!spare_.empty()) {
    rows = std::move(spare_.back());
    spare_.pop_back();
    rows.clear();
  }
  in_flight_.push_back(std::move(rows));
  plan_pass({congested, arrivals::skipped});
  if (plan_.rows.empty() && in_flight_.size() == 1 && slots_.moves().coming() > 0)
    plan_pass({congested, arrivals::awaited});
  if (plan_.rows.empty()) {
    spare_.push_back(std::move(in_flight_.back()));
    in_flight_.pop_back();
  }
}

planned_rows row_planner::take_oldest() {
  check(!in_flight_.empty(), "a result belongs to a plan");
  planned_rows planned = std::move(in_flight_.front());
  in_flight_.erase(in_flight_.begin());
  return planned;
}

void row_planner::plan_pass(const terms& now) {
  plan_decode(now);
  plan_prefill(now);
}

bool row_planner::rests(const sequence& s, const terms& now) const {
  const auto comes = [this](const sequence& one) { return !slots_.is_here(one); };
  const request_record& r = *s.owner;
  if (now.of_states == arrivals::skipped && (r.mixes() ? std::ranges::any_of(r.rows, comes) : comes(s))) return true;
  if (s.over()) return false;  // settling does not depend on a reader
  const std::uint32_t to = r.message.reply_to;
  return r.paused || (to < now.congested.size() && now.congested[to] != 0);
}

// ---------------------------------------------------------------- decode

/// Whether the row's mask depends on a token that is still on the device. Other rows do not wait for it.
bool row_planner::awaits_token(const sequence& s) const {
  return options_.limits.rules_wait && s.in_flight > 0 && s.owner->params(s).rule != nullptr;
}

/// Whether the next piece of a prompt needs room for a chunk, so that it does not wait until answers have ended.
bool row_planner::awaits_chunk(const terms& now) const {
  if (options_.chunk_tokens == 0) return false;
  return std::ranges::any_of(slots_.sequences(), [&](const sequence* s) {
    return s && s->can_prefill() && !rests(*s, now) && next_piece(*s, options_.chunk_tokens).chunked > 0;
  });
}

void row_planner::plan_decode(const terms& now) {
  const std::uint32_t room = awaits_chunk(now) ? options_.max_decode_rows() : options_.max_tick_tokens;
  const std::uint32_t ceiling = std::min(options_.max_tick_rows, room);
  const auto slots = slots_.sequences();
  const auto count = static_cast<std::uint32_t>(slots.size());
  std::uint32_t i = 0;
  for (; i < count && plan_.rows.size() < ceiling; ++i) {
    sequence* s = slots[(decode_turn_ + i) % count];
    if (!s || !s->can_decode() || rests(*s, now) || awaits_token(*s)) continue;
    if (plan_.rows.size() + s->owner->slots_at_once() > ceiling) break;  // first in the next tick
    if (s->owner->mixes()) {
      plan_mixture(*s->owner);
      continue;
    }
    engine::row row;
    row.slot = s->place.slot();
    row.kind = engine::row_kind::decode;
    row.sample = true;
    plan_row(*s, row, false);
    ++s->samples_planned;
  }
  decode_turn_ = (decode_turn_ + i) % count;
}

/// One row for each state of a mixture, as a group: feeds the last token of the prompt, or the last sampled token.
void row_planner::plan_mixture(request_record& r) {
  for (sequence& s : r.rows) {
    engine::row row;
    row.slot = s.place.slot();
    row.sample = true;
    row.group = r.rows[0].place.slot() + 1;
    row.weight = r.message.mixture[s.row].weight;
    if (s.fed < r.prompt_tokens()) {
      row.kind = engine::row_kind::prefill;
      row.first_token = static_cast<std::uint32_t>(plan_.tokens.size());
      row.tokens = 1;
      plan_.tokens.push_back(r.message.prompt[s.fed++]);
    }
    ++s.samples_planned;
    plan_row(s, row, false);
  }
}

// ---------------------------------------------------------------- prefill

void row_planner::plan_prefill(const terms& now) {
  const auto decoding = static_cast<std::uint32_t>(plan_.rows.size());
  std::uint32_t budget = options_.max_tick_tokens - decoding;
  if (decoding > 0) budget = std::min(budget, std::max(options_.prefill_chunk_tokens, options_.chunk_tokens));
  const auto slots = slots_.sequences();
  const auto count = static_cast<std::uint32_t>(slots.size());
  std::optional<slot_id> too_long;  // its chunk does not fit into the rest of this tick: first in the next one
  for (std::uint32_t i = 0; i < count && budget > 0 && plan_.rows.size() < options_.max_tick_rows; ++i) {
    const std::uint32_t slot = (prefill_turn_ + i) % count;
    sequence* s = slots[slot];
    if (!s || !s->can_prefill() || rests(*s, now)) continue;
    const std::uint32_t planned = plan_prefill_row(*s, budget);
    if (planned == 0 && !too_long) too_long = slot;
    budget -= planned;
    if (budget == 0) prefill_turn_ = (slot + 1) % count;
  }
  if (too_long) prefill_turn_ = *too_long;
}

/// The next piece of the prompt, or of the text that replaces it; ends at a wanted copy, unless that is inside a chunk.
engine::prompt_piece row_planner::next_piece(const sequence& s, std::uint32_t budget) const {
  const request_record& r = *s.owner;
  const std::span parts(r.message.parts);
  std::uint32_t end = r.feed_limit();
  if (s.row == 0) {
    const auto ahead = std::span(r.message.copies).subspan(r.next_copy);
    const auto next = std::ranges::find_if(ahead, [&](const wanted_copy& c) {
      return c.position > s.fed && engine::may_cut(parts, options_.chunk_tokens, c.position);
    });
    if (next != ahead.end()) end = std::min(end, next->position);
  }
  return engine::next_piece(parts, options_.chunk_tokens, s.fed, end, budget);
}

/// Returns the number of planned tokens: 0 if the next chunk does not fit.
std::uint32_t row_planner::plan_prefill_row(sequence& s, std::uint32_t budget) {
  const request_record& r = *s.owner;
  const auto [count, chunked] = next_piece(s, budget);
  if (count == 0) return 0;
  const auto first = r.message.prompt.begin() + s.fed;
  engine::row row;
  row.slot = s.place.slot();
  row.kind = r.message.score_prompt && s.row == 0 && !s.over() ? engine::row_kind::score : engine::row_kind::prefill;
  row.score_top = r.message.score_top;
  row.first_token = static_cast<std::uint32_t>(plan_.tokens.size());
  row.tokens = count, row.chunked = chunked;
  plan_.tokens.insert(plan_.tokens.end(), first, first + count);
  s.fed += count;
  if (r.message.fed && s.row == 0 && !s.over()) r.message.fed->fetch_add(count, std::memory_order_relaxed);
  const bool last = s.fed == r.prompt_tokens();
  if (!last) row.score_next = r.message.prompt[s.fed];
  row.sample = last && !s.over() && r.params(s).max_tokens > 0;
  if (row.sample) ++s.samples_planned;
  plan_row(s, row, last && !s.over() && !row.sample);
  if (s.row == 0) handout_.copy_out(s);
  return count;
}

void row_planner::plan_row(sequence& s, const engine::row& row, bool last_without_sample) {
  plan_.rows.push_back(row);
  in_flight_.back().push_back({{s.owner->message.id, s.row}, last_without_sample});
  ++s.in_flight;
}

}  // namespace skein::device
