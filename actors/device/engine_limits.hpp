#pragma once
#include <optional>

#include "actors/device/device_mailbox.hpp"
#include "base/error.hpp"
#include "engine/engine.hpp"

namespace skein::device {

/// What an engine takes of one request. An engine checks these as invariants: a request that exceeds one must not
/// reach it.
struct engine_limits {
  std::uint32_t vocab = ~0u;
  sampling::row_limits row_max = {.logit_bias_max = ~0u, .stop_ids_max = ~0u};
  std::uint32_t top_logprobs_max = sampling::top_logprobs_max;
  std::uint32_t prompt_tokens_max = ~0u;
};

[[nodiscard]] engine_limits limits_of(const engine::engine_info& info);

/// What of a request, as the device gets it, the engine does not take: nothing where it takes all. Errors:
/// invalid_argument (too_large for a prompt), naming the field.
[[nodiscard]] std::optional<error> beyond(const engine_limits& limits, const submit& message);
/// The same of tokens that come later.
[[nodiscard]] bool knows(const engine_limits& limits, const std::vector<token_id>& tokens);

}  // namespace skein::device
