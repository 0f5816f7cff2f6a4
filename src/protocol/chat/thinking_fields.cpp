#include "protocol/chat/thinking_fields.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace skein::protocol {
namespace {

struct named_mode {
  std::string_view name;
  think_mode mode;
};

constexpr std::array<named_mode, 9> think_types{{{"fast", think_mode::off},
                                                 {"free", think_mode::on},
                                                 {"preferChinese", think_mode::chinese_think},
                                                 {"prefer_chinese", think_mode::chinese_think},
                                                 {"en", think_mode::english_think},
                                                 {"enShort", think_mode::short_think},
                                                 {"enLong", think_mode::long_think},
                                                 {"en_short", think_mode::short_think},
                                                 {"en_long", think_mode::long_think}}};

constexpr std::array<named_mode, 6> reasoning_efforts{{{"none", think_mode::off},
                                                       {"minimal", think_mode::short_think},
                                                       {"low", think_mode::short_think},
                                                       {"medium", think_mode::english_think},
                                                       {"high", think_mode::long_think},
                                                       {"xhigh", think_mode::long_think}}};

constexpr std::array<named_mode, 2> thinking_types{{{"enabled", think_mode::on}, {"disabled", think_mode::off}}};

std::optional<think_mode> read_mode(const object_reader& body, std::string_view field,
                                    std::span<const named_mode> known) {
  const auto name = body.text(field);
  if (!name || name->empty()) return std::nullopt;
  const auto found = std::find_if(known.begin(), known.end(), [&](const named_mode& m) { return m.name == *name; });
  if (found != known.end()) return found->mode;
  std::string names;
  for (const auto& m : known) names += (names.empty() ? "" : ", ") + std::string(m.name);
  body.refuse(field, "must be one of: " + names);
  return std::nullopt;
}

std::optional<think_mode> read_switch(const object_reader& body, std::string_view field) {
  const auto think = body.boolean(field);
  if (!think) return std::nullopt;
  return *think ? think_mode::on : think_mode::off;
}

/// The first of several fields that is given. All are read, so that an invalid one is rejected even if it has no
/// effect.
struct thinking_reader {
  std::optional<think_mode> mode;
  std::optional<std::int64_t> tokens_max;  ///< -1: no limit
  std::string tokens_field;

  void take(std::optional<think_mode> given) {
    if (!mode) mode = given;
  }
  void take_limit(const object_reader& in, std::string_view name) {
    const auto given = in.integer(name, -1, std::int64_t{1} << 31);
    if (!given || tokens_max) return;
    tokens_max = given;
    tokens_field = in.path_of(name);
  }
};

/// Anthropic's object; some clients send a switch.
void read_thinking_object(const object_reader& body, thinking_reader& found) {
  const auto given = body.value("thinking");
  if (!given) return;
  if (!given->is(json_kind::object)) return found.take(read_switch(body, "thinking"));
  const auto thinking = body.object("thinking");
  const auto type = thinking->text("type").value_or("");
  if (type != "adaptive" && type != "auto") found.take(read_mode(*thinking, "type", thinking_types));
  found.take_limit(*thinking, "budget_tokens");
}

}  // namespace

std::optional<think_mode> read_effort(const object_reader& body, std::string_view field) {
  return read_mode(body, field, reasoning_efforts);
}

void read_thinking(const object_reader& body, const model_preset& preset, generation_request& out) {
  thinking_reader found;
  found.take(read_mode(body, "think_type", think_types));
  for (const auto name : {"think", "enable_think", "enable_thinking"}) found.take(read_switch(body, name));
  if (const auto arguments = body.object("chat_template_kwargs")) {
    for (const auto name : {"enable_thinking", "thinking"}) found.take(read_switch(*arguments, name));
    found.take_limit(*arguments, "thinking_budget");
  }
  read_thinking_object(body, found);
  found.take(read_effort(body, "reasoning_effort"));
  if (const auto reasoning = body.object("reasoning")) {
    found.take(read_effort(*reasoning, "effort"));
    found.take(read_switch(*reasoning, "enabled"));
    found.take_limit(*reasoning, "max_tokens");
  }
  for (const auto name : {"max_reasoning_tokens", "thinking_budget", "thinking_token_budget"})
    found.take_limit(body, name);

  out.think = found.mode.value_or(preset.default_think ? think_mode::on : think_mode::off);
  const std::uint32_t standard = preset.default_think_tokens_max;
  if (!found.tokens_max && standard > 0) out.thoughts = thought_limit{standard, ""};
  const std::int64_t tokens_max = found.tokens_max.value_or(-1);
  if (tokens_max == 0) out.think = think_mode::off;
  if (tokens_max > 0) out.thoughts = thought_limit{static_cast<std::uint32_t>(tokens_max), found.tokens_field};
}

}  // namespace skein::protocol
