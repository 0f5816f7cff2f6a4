#include "cli/one_sequence.hpp"

namespace skein::cli {

one_sequence::one_sequence(engine::engine& on, const sampling::sampling_params& params) : engine_(on) {
  engine_.start(0, params);
}

result<const engine::row_result*> one_sequence::feed(std::span<const token_id> tokens, bool sample,
                                                     engine::logits_wanted logits) {
  engine::row row;
  row.kind = engine::row_kind::prefill;
  row.tokens = static_cast<std::uint32_t>(tokens.size());
  row.sample = sample;
  row.logits = logits;
  return run(row, tokens);
}

result<const engine::row_result*> one_sequence::score(std::span<const token_id> tokens, token_id next) {
  engine::row row;
  row.kind = engine::row_kind::score;
  row.tokens = static_cast<std::uint32_t>(tokens.size());
  row.score_next = next;
  return run(row, tokens);
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
  return &(*outcome)->rows.front();
}

result<std::vector<float>> one_sequence::state() {
  std::vector<float> floats(engine_.info().state_floats);
  engine_.read_state(0, floats);
  if (const auto finished = engine_.finish(); !finished) return finished.error();
  return floats;
}

result<void> one_sequence::set_state(std::span<const float> state) {
  engine_.write_state(0, state);
  return engine_.finish();
}

}  // namespace skein::cli
