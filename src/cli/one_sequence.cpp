#include "cli/one_sequence.hpp"

#include <algorithm>

namespace skein::cli {

one_sequence::one_sequence(engine::engine& on, const sampling::sampling_params& params) : engine_(on) {
  engine_.start(0, params);
}

engine::prompt_piece one_sequence::next_piece(std::span<const token_id> prompt, std::size_t fed,
                                              std::uint32_t most) const {
  const auto size = static_cast<std::uint32_t>(prompt.size());
  const engine::prompt_part whole{size};
  const engine::engine_info& about = engine_.info();
  const std::uint32_t room = std::min(std::max(most, about.chunk_tokens), about.max_tick_tokens);
  return engine::next_piece({&whole, 1}, about.chunk_tokens, static_cast<std::uint32_t>(fed), size, room);
}

result<const engine::row_result*> one_sequence::feed(engine::prompt_piece piece, const token_id* tokens, bool sample,
                                                     engine::logits_wanted logits) {
  engine::row row;
  row.kind = engine::row_kind::prefill;
  row.tokens = piece.tokens, row.chunked = piece.chunked;
  row.sample = sample;
  row.logits = logits;
  return run(row, {tokens, piece.tokens});
}

result<const engine::row_result*> one_sequence::score(engine::prompt_piece piece, const token_id* tokens,
                                                      token_id next) {
  engine::row row;
  row.kind = engine::row_kind::score;
  row.tokens = piece.tokens, row.chunked = piece.chunked;
  row.score_next = next;
  return run(row, {tokens, piece.tokens});
}

result<const engine::row_result*> one_sequence::decode() {
  engine::row row;
  row.kind = engine::row_kind::decode;
  row.sample = true;
  return run(row, {});
}

result<const engine::row_result*> one_sequence::run(const engine::row& row, std::span<const token_id> tokens) {
  plan_.clear();
  plan_.rows.push_back(row);
  plan_.tokens.assign(tokens.begin(), tokens.end());
  if (const auto tick = engine_.submit(plan_); !tick) return tick.error();
  const auto outcome = engine_.collect();
  if (!outcome) return outcome.error();
  const engine::row_result& done = (*outcome)->rows.front();
  if (!done.finite) return error{error_kind::internal, "the model computed a logit that is NaN or infinite", ""};
  return &done;
}

result<model::state_value> one_sequence::state() {
  model::state_value state;
  engine_.read_state(0, state);
  if (const auto finished = engine_.finish(); !finished) return finished.error();
  if (state.empty()) return error{error_kind::unavailable, "not enough memory for a state", ""};
  return state;
}

result<void> one_sequence::set_state(const model::state_view& state) {
  engine_.write_state(0, state);
  return engine_.finish();
}

}  // namespace skein::cli
