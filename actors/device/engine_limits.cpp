#include "actors/device/engine_limits.hpp"

#include <algorithm>
#include <string>

namespace skein::device {
namespace {

constexpr const char* bias_unit = "entries, including those added by the server";
constexpr const char* stop_unit = "tokens, including those added by the server";

std::optional<error> too_many(const char* field, std::size_t count, std::uint32_t most, const char* of) {
  if (count <= most) return {};
  return error{error_kind::invalid_argument,
               std::string(field) + ": " + std::to_string(count) + " " + of + "; the device takes at most " +
                   std::to_string(most),
               field};
}

std::optional<error> beyond(const engine_limits& limits, const sampling::sampling_params& row) {
  if (auto no = too_many("logit_bias", row.logit_bias.size(), limits.row_max.logit_bias_max, bias_unit)) return no;
  if (auto no = too_many("stop_token_ids", row.stop_ids.size(), limits.row_max.stop_ids_max, stop_unit)) return no;
  if (auto no = too_many("top_logprobs", row.top_logprobs, limits.top_logprobs_max, "alternatives")) return no;
  if (row.rule && !limits.constrains)
    return error{error_kind::unsupported, row.rule->field() + " is not supported by the device of this model",
                 row.rule->field()};
  if (row.prior && row.prior->size() > limits.vocab)
    return error{error_kind::internal, "penalties: more tokens than in the vocabulary", ""};
  return {};
}

}  // namespace

engine_limits limits_of(const engine::engine_info& info) {
  return {info.vocab, info.row_max, info.top_logprobs_max, info.prompt_tokens_max, info.constrains, info.rules_wait};
}

std::optional<error> beyond(const engine_limits& limits, const submit& message) {
  if (message.prompt.empty() || message.rows.empty())
    return error{error_kind::invalid_argument, "prompt: empty; at least one token and one row are required", "prompt"};
  if (message.prompt.size() > limits.prompt_tokens_max)
    return error{error_kind::too_large,
                 "prompt: " + std::to_string(message.prompt.size()) + " tokens; the device takes at most " +
                     std::to_string(limits.prompt_tokens_max),
                 "prompt"};
  if (!knows(limits, message.prompt))
    return error{error_kind::invalid_argument, "prompt: a token is not in the model's vocabulary", "prompt"};
  if (auto no = too_many("top_logprobs", message.score_top, limits.top_logprobs_max, "alternatives")) return no;
  if (limits.rules_wait && !message.mixture.empty() && message.rows.front().rule)
    return error{error_kind::unsupported,
                 message.rows.front().rule->field() + " is not supported for a mixture of states on this device",
                 message.rows.front().rule->field()};
  for (const sampling::sampling_params& row : message.rows)
    if (auto no = beyond(limits, row)) return no;
  return {};
}

bool knows(const engine_limits& limits, const std::vector<token_id>& tokens) {
  return std::ranges::all_of(tokens,
                             [&](token_id t) { return static_cast<std::uint32_t>(t) < limits.vocab && t >= 0; });
}

}  // namespace skein::device
