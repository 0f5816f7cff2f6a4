#include "engine/row_results.hpp"

#include <utility>

namespace skein::engine {

void reset(row_result& r, slot_id slot) {
  auto scores = std::move(r.scores);
  auto logits = std::move(r.logits);
  auto forced = std::move(r.forced);
  forced.clear();
  scores.clear();
  logits.clear();
  r = {};
  r.slot = slot;
  r.scores = std::move(scores);
  r.logits = std::move(logits);
  r.forced = std::move(forced);
}

std::uint32_t scores_of(const row& r, std::uint32_t tokens) {
  if (r.kind != row_kind::score) return 0;
  return r.score_next == no_token ? tokens - 1 : tokens;
}

}  // namespace skein::engine
