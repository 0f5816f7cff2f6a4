#pragma once
#include <span>
#include <vector>

#include "engine/engine.hpp"
#include "engine/prompt_parts.hpp"

namespace skein::cli {

/// One sequence in slot 0 of an engine, fed step by step; each call waits for its tick. Results stay valid until the
/// next call.
class one_sequence {
 public:
  one_sequence(engine::engine& on, const sampling::sampling_params& params);

  /// How much of a prompt one tick can take next, of which `fed` tokens are fed: at most `most`, as a server would cut
  /// it.
  [[nodiscard]] engine::prompt_piece next_piece(std::span<const token_id> prompt, std::size_t fed,
                                                std::uint32_t most) const;
  /// Feeds a piece of a prompt, whose tokens begin at `tokens`; with `sample` a token is drawn after the last.
  [[nodiscard]] result<const engine::row_result*> feed(engine::prompt_piece piece, const token_id* tokens, bool sample,
                                                       engine::logits_wanted logits = engine::logits_wanted::none);
  /// Feeds a piece and scores what follows each of its tokens: the next one, for the last `next` unless no_token.
  [[nodiscard]] result<const engine::row_result*> score(engine::prompt_piece piece, const token_id* tokens,
                                                        token_id next);
  /// Feeds the token that was drawn last and draws the next.
  [[nodiscard]] result<const engine::row_result*> decode();

  /// Canonical order; see model/state_layout.
  [[nodiscard]] result<std::vector<float>> state();
  [[nodiscard]] result<void> set_state(std::span<const float> state);

 private:
  [[nodiscard]] result<const engine::row_result*> run(const engine::row& row, std::span<const token_id> tokens);

  engine::engine& engine_;
  engine::tick_plan plan_;
};

}  // namespace skein::cli
