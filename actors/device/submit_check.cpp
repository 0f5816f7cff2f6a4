#include "actors/device/submit_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "actors/device/engine_limits.hpp"

namespace skein::device {

std::optional<error> objection(const scheduler_options& options, submit& message) {
  const auto fits = [&](const beginning& from) {
    return !from.state || (from.state->format.layout == options.state.layout &&
                           from.state->bytes.size() == from.state->format.bytes());
  };
  if (!fits(message.from)) return error{error_kind::internal, "the initial state has the wrong size", ""};
  if (auto no = beyond(options.limits, message)) return no;
  std::size_t tokens = 0;
  for (const engine::prompt_part& part : message.parts) tokens += part.tokens;
  if (!message.parts.empty() && tokens != message.prompt.size())
    return error{error_kind::internal, "the parts of the prompt do not add up to the prompt", ""};
  if (message.mixture.empty()) return {};

  float weights = 0;
  for (const weighted_beginning& part : message.mixture) {
    if (!fits(part.from)) return error{error_kind::internal, "a state of the mixture has the wrong size", ""};
    if (part.from.key && !part.from.state)
      return error{error_kind::unavailable, "a state of the mixture is not available", ""};
    if (!(part.weight >= 0))
      return error{error_kind::invalid_argument, "mixture: a weight is negative or not a number", ""};
    weights += part.weight;
  }
  if (!std::isfinite(weights) || weights <= 0)
    return error{error_kind::invalid_argument, "mixture: the sum of the weights is not positive and finite", ""};
  if (message.rows.size() != 1 || message.score_prompt)
    return error{error_kind::unsupported, "mixture: several answers and prompt scores are not supported", ""};
  std::erase_if(message.mixture, [](const weighted_beginning& part) { return part.weight == 0; });
  const std::uint32_t most =
      std::min({options.mixture_max, options.slots, options.max_tick_rows, options.max_decode_rows()});
  if (message.mixture.size() > most)
    return error{error_kind::too_large, "mixture: too many states; at most " + std::to_string(most) + " are accepted",
                 ""};
  return {};
}

}  // namespace skein::device
