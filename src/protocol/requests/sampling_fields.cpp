#include <algorithm>
#include <charconv>
#include <limits>

#include "protocol/requests/shared_fields.hpp"

namespace skein::protocol {
namespace {

constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t int64_min = std::numeric_limits<std::int64_t>::min();
constexpr double float_max = std::numeric_limits<float>::max();
constexpr std::int64_t token_max = std::numeric_limits<token_id>::max();

std::optional<float> read_float(const object_reader& body, std::string_view name, double min, double max) {
  const auto number = body.number(name, min, max);
  return number ? std::optional(static_cast<float>(*number)) : std::nullopt;
}

std::optional<std::int32_t> read_top_k(const object_reader& body) {
  const auto count = body.integer("top_k", int64_min, int64_max);
  if (!count) return std::nullopt;
  const bool limits = *count > 0 && *count <= token_max;  // more than any vocabulary size is no limit
  return limits ? static_cast<std::int32_t>(*count) : 0;
}

std::optional<float> read_native_top_p(const object_reader& body) {
  const auto top_p = read_float(body, "top_p", -float_max, float_max);
  return top_p && (*top_p < 0 || *top_p > 1) ? 1.0f : top_p;
}

/// Where the preset is not kept, setting one of the three makes the others neutral.
void read_filters(const object_reader& body, const sampling_rules& rules, sampling::sampling_params& out) {
  if (rules.temperature_only) {  // a temperature of 0 or below means greedy
    const auto temperature = read_float(body, "temperature", -float_max, 1000);
    out.temperature = std::max(temperature.value_or(rules.temperature), 0.0f);
    return;
  }
  const auto temperature = read_float(body, "temperature", 0, 1000);
  const auto top_p = rules.stands_alone ? read_native_top_p(body) : read_float(body, "top_p", 0, 1);
  const auto top_k = read_top_k(body);
  const bool named = !rules.stands_alone && !rules.keeps_unset && (temperature || top_p || top_k);
  out.temperature = temperature.value_or(named ? 1.0f : rules.temperature);
  out.top_p = top_p.value_or(named ? 1.0f : rules.top_p);
  out.top_k = top_k.value_or(named ? 0 : rules.top_k);
  out.min_p = read_float(body, "min_p", 0, 1).value_or(0.0f);
}

std::optional<float> read_decay(const object_reader& body, std::string_view name) {
  const auto decay = read_float(body, name, 0, 1);
  if (!decay || *decay > 0) return decay;
  body.refuse(name, "must be above 0 and at most 1");
  return std::nullopt;
}

void read_penalties(const object_reader& body, const sampling_rules& rules, sampling::sampling_params& out) {
  const auto alpha_presence = read_float(body, "alpha_presence", -100, 100);
  const auto alpha_frequency = read_float(body, "alpha_frequency", -100, 100);
  const auto presence = read_float(body, "presence_penalty", -2, 2);
  const auto frequency = read_float(body, "frequency_penalty", -2, 2);
  const auto penalty_decay = read_decay(body, "penalty_decay");
  const auto alpha_decay = read_decay(body, "alpha_decay");
  const auto decay = alpha_decay ? alpha_decay : penalty_decay;

  const bool native_named = alpha_presence || alpha_frequency;
  if (rules.classic) {
    out.filters_first = true;
    out.lasting_penalty = alpha_presence.value_or(presence.value_or(rules.alpha_presence));
    out.first_penalty = out.repeat_penalty = alpha_frequency.value_or(frequency.value_or(rules.alpha_frequency));
    out.penalty_decay = decay.value_or(rules.alpha_decay);
  } else if (!native_named && (presence || frequency)) {  // OpenAI's frequency penalty counts the first time, too
    const bool keeps = rules.keeps_unset;
    out.first_penalty = presence.value_or(keeps ? rules.alpha_presence : 0.0f) + frequency.value_or(0.0f);
    out.repeat_penalty = frequency.value_or(keeps ? rules.alpha_frequency : 0.0f);
    out.penalty_decay = decay.value_or(keeps ? rules.alpha_decay : 1.0f);
  } else {
    out.first_penalty = alpha_presence.value_or(presence.value_or(rules.alpha_presence));
    out.repeat_penalty = alpha_frequency.value_or(frequency.value_or(rules.alpha_frequency));
    out.penalty_decay = decay.value_or(rules.alpha_decay);
  }
}

/// A token id in a JSON object key: digits only, no leading zero, so that different keys are different tokens.
std::optional<token_id> token_of_key(std::string_view key) {
  token_id token = 0;
  if (key.empty() || key[0] == '-' || (key[0] == '0' && key.size() > 1)) return std::nullopt;
  const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), token);
  return code == std::errc() && end == key.data() + key.size() ? std::optional(token) : std::nullopt;
}

void read_logit_bias(const object_reader& body, std::string_view name, const request_limits& limits,
                     sampling::sampling_params& out) {
  const auto found = body.value(name);
  if (!found || found->is_empty_array()) return;  // some languages serialize an empty map as []
  if (!found->is(json_kind::object)) return body.refuse(name, "must be an object of token ids and numbers");
  const auto path = body.path_of(name);
  const object_reader entries(*found, path, body.fault());
  for (const auto [key, value] : found->members()) {
    if (value.is(json_kind::null)) continue;
    if (out.logit_bias.size() >= limits.logit_bias_max)
      return body.refuse(name, "has more than " + std::to_string(limits.logit_bias_max) + " entries");
    const auto token = token_of_key(key);
    if (!token) return entries.refuse(key, "is not a token id");
    const auto bias = value.number();
    if (!bias || *bias < -100 || *bias > 100) return entries.refuse(key, "must be a number from -100 to 100");
    out.logit_bias.push_back({*token, static_cast<float>(*bias)});
  }
}

void read_max_tokens(const object_reader& body, const sampling_rules& rules, const request_limits& limits,
                     sampling::sampling_params& out) {
  const auto new_name = body.integer("max_completion_tokens", 0, int64_max);
  const auto old_name = body.integer("max_tokens", 0, int64_max);
  const auto wanted = new_name.value_or(old_name.value_or(rules.max_tokens));
  out.max_tokens = static_cast<std::uint32_t>(std::min<std::int64_t>(wanted, limits.max_tokens_max));
}

}  // namespace

void client_defaults::change(const client_defaults& newer) {
  const auto take = [](auto& to, const auto& from) {
    if (from) to = from;
  };
  take(temperature, newer.temperature);
  take(top_p, newer.top_p);
  take(presence, newer.presence);
  take(frequency, newer.frequency);
  take(decay, newer.decay);
  take(top_k, newer.top_k);
  take(max_tokens, newer.max_tokens);
  take(end_text, newer.end_text);
  take(penalises_prompt, newer.penalises_prompt);
}

void read_sampling(const object_reader& body, const sampling_rules& rules, const request_limits& limits,
                   sampling::sampling_params& out) {
  read_filters(body, rules, out);
  if (!rules.temperature_only) read_penalties(body, rules, out);
  if (rules.noise && limits.noise) out.noise = read_float(body, "noise", 0, 1000).value_or(0.0f);
  read_logit_bias(body, body.value("logit_bias") ? "logit_bias" : rules.bias_field, limits, out);
  read_max_tokens(body, rules, limits, out);
}

}  // namespace skein::protocol
