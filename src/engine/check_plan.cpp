#include "engine/check_plan.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace skein::engine {

namespace {

void check_chunks(const engine_info& info, const row& r) {
  if (r.chunked == 0) return;
  check(info.chunk_tokens > 0, "chunks for an engine that has none");
  check(r.chunked <= r.tokens, "more tokens in chunks than the row has");
  const std::uint32_t rest = r.chunked % info.chunk_tokens;
  check(rest == 0 || 2 * rest >= info.chunk_tokens, "a last chunk below half of the chunk size");
}

}  // namespace

void check_plan(const engine_info& info, const tick_plan& plan, std::vector<std::uint8_t>& slot_seen) {
  check(plan.rows.size() <= info.max_tick_rows, "more rows than the limit of a tick");
  slot_seen.assign(info.slots, 0);
  std::uint64_t tick_tokens = 0;
  for (const row& r : plan.rows) {
    check(r.slot < info.slots, "no such slot");
    check(!slot_seen[r.slot], "a slot twice in one tick");
    slot_seen[r.slot] = 1;
    if (r.kind == row_kind::decode) {
      check(r.tokens == 0, "a decode row with tokens");
      tick_tokens += 1;
    } else {
      check(r.tokens > 0, "a prefill or score row without tokens");
      check(std::uint64_t{r.first_token} + r.tokens <= plan.tokens.size(), "a row's tokens are not in the plan");
      tick_tokens += r.tokens;
    }
    check_chunks(info, r);
    check(r.sample || !r.sync, "sync without sample");
    if (r.group != 0) {
      check(r.sample && !r.sync, "a row of a group without sample, or with sync");
      check(std::isfinite(r.weight) && r.weight > 0, "a weight that is not above zero");
    }
  }
  check(tick_tokens <= info.max_tick_tokens, "more tokens than the limit of a tick");
  check(std::ranges::all_of(plan.tokens,
                            [&](token_id t) { return t >= 0 && static_cast<std::uint32_t>(t) < info.vocab; }),
        "a token outside the vocabulary");
}

}  // namespace skein::engine
