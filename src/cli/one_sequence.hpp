#pragma once
#include <span>
#include <vector>

#include "engine/engine.hpp"
#include "engine/prompt_parts.hpp"

namespace skein::cli {

/// One sequence in slot 0 of an engine, fed step by step. Each call waits for its tick. Results are valid until the
/// next call.
class one_sequence {
 public:
  one_sequence(engine::engine& on, const sampling::sampling_params& params);

  /// The next piece of a prompt for one tick, after `fed` tokens: at most `most` tokens, cut as a server cuts it.
  [[nodiscard]] engine::prompt_piece next_piece(std::span<const token_id> prompt, std::size_t fed,
                                                std::uint32_t most) const;
  /// Feeds a piece of a prompt whose tokens begin at `tokens`; with `sample`, samples a token after the last.
  [[nodiscard]] result<const engine::row_result*> feed(engine::prompt_piece piece, const token_id* tokens, bool sample,
                                                       engine::logits_wanted logits = engine::logits_wanted::none);
  /// Feeds a piece and scores the successor of each token: the next token in the piece, and `next` (unless no_token)
  /// for the last.
  [[nodiscard]] result<const engine::row_result*> score(engine::prompt_piece piece, const token_id* tokens,
                                                        token_id next);
  /// Feeds the last sampled token and samples the next.
  [[nodiscard]] result<const engine::row_result*> decode();

  /// The state as it is in the slot.
  [[nodiscard]] result<model::state_value> state();
  /// Sets a state of any types.
  [[nodiscard]] result<void> set_state(const model::state_view& state);

 private:
  [[nodiscard]] result<const engine::row_result*> run(const engine::row& row, std::span<const token_id> tokens);

  engine::engine& engine_;
  engine::tick_plan plan_;
};

}  // namespace skein::cli
