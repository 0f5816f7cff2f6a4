#include "cli/bench/tick_maker.hpp"

#include <algorithm>

#include "engine/prompt_parts.hpp"

namespace skein::cli {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

tick_maker::tick_maker(engine::engine& on, float temperature) : on_(on), random_(1) {
  params_.temperature = temperature;
  params_.max_tokens = ~0u;
}

result<void> tick_maker::begin(std::uint32_t count) {
  for (slot_id slot = 0; slot < count; ++slot) {
    params_.seed = slot + 1;
    on_.start(slot, params_);
  }
  const std::uint32_t at_once = on_.info().max_tick_tokens / first_tokens;
  for (slot_id first = 0; first < count; first += at_once)
    if (const auto fed = run(feeding(first, std::min(at_once, count - first), first_tokens)); !fed) return fed;
  return {};
}

engine::tick_plan tick_maker::decoding(std::uint32_t count) {
  engine::tick_plan plan;
  for (slot_id slot = 0; slot < count; ++slot) {
    engine::row row;
    row.slot = slot;
    row.sample = true;
    plan.rows.push_back(row);
  }
  return plan;
}

engine::tick_plan tick_maker::feeding(slot_id first, std::uint32_t count, std::uint32_t tokens) {
  engine::tick_plan plan;
  for (slot_id slot = first; slot < first + count; ++slot) {
    engine::row row;
    row.slot = slot;
    row.kind = engine::row_kind::prefill;
    row.first_token = static_cast<std::uint32_t>(plan.tokens.size());
    row.tokens = tokens;
    row.chunked = engine::chunked_tokens(tokens, on_.info().chunk_tokens);
    row.sample = true;
    plan.rows.push_back(row);
    for (std::uint32_t i = 0; i < tokens; ++i)
      plan.tokens.push_back(static_cast<token_id>(random_() % on_.info().vocab));
  }
  return plan;
}

result<void> tick_maker::run(const engine::tick_plan& plan) {
  if (const auto tick = on_.submit(plan); !tick) return tick.error();
  if (const auto outcome = on_.collect(); !outcome) return outcome.error();
  return {};
}

}  // namespace skein::cli
