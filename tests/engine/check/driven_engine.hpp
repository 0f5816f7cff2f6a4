#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/engine.hpp"

/// Sequences driven through an engine as the device actor does it, for comparisons of engines. What an engine refuses
/// is thrown as std::runtime_error: there is nothing to compare then.
namespace skein::test {

using sequences = std::vector<std::vector<token_id>>;

/// How many tokens the next row of a sequence takes, of those it has left. At least one.
using cutter = std::function<std::uint32_t(std::uint32_t left)>;

/// The logits after every token of every sequence, [tokens, vocab] each, fed from fresh states, sequence i in slot
/// slots[i], in ticks as full as they get.
[[nodiscard]] std::vector<std::vector<float>> feed_together(skein::engine::engine& on, const sequences& all,
                                                            std::span<const slot_id> slots, const cutter& cut);

/// What an engine drew after a prompt.
struct transcript {
  std::vector<token_id> tokens;
  std::vector<float> logprobs;
  std::vector<float> margins;  ///< best minus second-best logit at each draw, when asked for
};

/// Draws `count` tokens after each prompt, all sequences in every tick and two ticks in flight.
[[nodiscard]] std::vector<transcript> continue_together(skein::engine::engine& on, const sequences& prompts,
                                                        std::span<const slot_id> slots,
                                                        const std::vector<sampling::sampling_params>& params,
                                                        std::uint32_t count, bool with_margins);

}  // namespace skein::test
