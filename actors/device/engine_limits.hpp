#pragma once
#include <optional>

#include "actors/device/device_mailbox.hpp"
#include "base/error.hpp"
#include "engine/engine.hpp"

namespace skein::device {

/// Limits of an engine for one request. An engine checks them as invariants: a request that exceeds one must not reach
/// it.
struct engine_limits {
  std::uint32_t vocab = ~0u;
  sampling::row_limits row_max = {.logit_bias_max = ~0u, .stop_ids_max = ~0u};
  std::uint32_t top_logprobs_max = sampling::top_logprobs_max;
  std::uint32_t prompt_tokens_max = ~0u;
  bool constrains = true, rules_wait = false;
};

[[nodiscard]] engine_limits limits_of(const engine::engine_info& info);

/// Checks a request against the limits; empty if it is within all of them. Errors: invalid_argument (too_large for a
/// long prompt, unsupported for a constraint), with the field.
[[nodiscard]] std::optional<error> beyond(const engine_limits& limits, const submit& message);
/// Whether all tokens are in the vocabulary; for tokens that arrive later.
[[nodiscard]] bool knows(const engine_limits& limits, const std::vector<token_id>& tokens);

}  // namespace skein::device
