#include "kernels/weights/weight_plan.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

#include "base/weight_format_names.hpp"

namespace skein::kernels {
namespace {

/// Matches a pattern in which * is any text, without recursion: after a mismatch, the last * takes one character more.
bool is_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = pattern.npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++, taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != pattern.npos) {
      p = star + 1, t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

std::vector<weight_plan::rule> recipe(weight_format format) {
  if (!format.quantised() || format.element == weight_element::int8) return {{"*", format}};
  return {{"head", {weight_element::int8, format.group}}, {"*", format}};
}

error refused(std::string message, const char* field) {
  return {error_kind::invalid_argument, std::move(message), field};
}

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
  return trouble == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// "PATTERN=FORMAT" or "PATTERN@FIRST-LAST=FORMAT".
std::optional<weight_plan::rule> parse_rule(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos) return std::nullopt;
  const auto format = parse_weight_format(text.substr(equals + 1));
  const std::string_view left = text.substr(0, equals), pattern = left.substr(0, left.find('@'));
  if (!format || pattern.empty()) return std::nullopt;
  weight_plan::rule rule{std::string(pattern), *format};
  if (pattern.size() == left.size()) return rule;
  const std::string_view layers = left.substr(pattern.size() + 1);
  const std::size_t dash = std::min(layers.find('-'), layers.size());
  const auto first = number_in(layers.substr(0, dash));
  const auto last = dash < layers.size() ? number_in(layers.substr(dash + 1)) : first;
  if (!first || !last || *last < *first || *last == ~0u) return std::nullopt;
  rule.first_layer = *first, rule.end_layer = *last + 1;
  return rule;
}

result<std::vector<weight_plan::rule>> parse_rules(std::string_view text) {
  std::vector<weight_plan::rule> rules;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    auto rule = parse_rule(one);
    if (!rule)
      return refused(
          "weight_format: " + std::string(one) +
              " is not PATTERN=FORMAT or PATTERN@FIRST-LAST=FORMAT; formats: " + std::string(weight_format_names),
          "weight_format");
    rule->written = one;
    rules.push_back(std::move(*rule));
  }
  return rules;
}

}  // namespace

weight_plan::weight_plan(dtype type) : base_(type), name_(to_string(type)) {
  if (const auto format = format_of(type)) rules_ = recipe(*format);
}

result<weight_plan> weight_plan::parse(std::string_view name, std::string_view overrides, dtype base) {
  const auto format = parse_weight_format(name);
  if (!format)
    return refused("dtype: " + std::string(name) + " is not supported; accepted: " + std::string(weight_format_names),
                   "dtype");
  auto rules = parse_rules(overrides);
  if (!rules) return rules.error();
  weight_plan plan(base);
  if (!format->quantised())
    for (const dtype type : {dtype::f32, dtype::bf16, dtype::f16})
      if (format_of(type) == format) plan.base_ = type;
  plan.rules_ = recipe(*format);
  plan.name_ = name;
  plan.prefer(std::move(*rules));
  if (!overrides.empty()) plan.name_ += " (" + std::string(overrides) + ')';
  return plan;
}

result<weight_plan> weight_plan::of_file(std::string name, std::vector<rule> rules, std::string_view overrides,
                                         dtype base) {
  auto wished = parse_rules(overrides);
  if (!wished) return wished.error();
  weight_plan plan(base);
  plan.prefer(std::move(rules));
  plan.prefer(std::move(*wished));
  plan.name_ = std::move(name);
  if (!overrides.empty()) plan.name_ += " (" + std::string(overrides) + ')';
  return plan;
}

void weight_plan::prefer(std::vector<rule> rules) {
  rules_.insert(rules_.begin(), std::make_move_iterator(rules.begin()), std::make_move_iterator(rules.end()));
}

bool weight_plan::quantised() const {
  return std::ranges::any_of(rules_, [](const rule& each) { return each.format.quantised(); });
}

bool weight_plan::has(weight_element element) const {
  return std::ranges::any_of(rules_, [&](const rule& each) { return each.format.element == element; });
}

weight_format weight_plan::of(const tensor_spec& spec, std::uint32_t layer) const {
  const weight_format base = format_of(base_).value_or(weight_format{});
  if (spec.transposed || spec.name == "emb.weight") return base;
  const std::string_view name = pattern_name(spec);
  for (const rule& each : rules_)
    if (each.matches(name, layer)) return each.format;
  return base;
}

std::string_view weight_plan::pattern_name(const tensor_spec& spec) {
  std::string_view name = spec.name;
  if (name.ends_with(".weight")) name.remove_suffix(7);
  return name;
}

bool weight_plan::rule::matches(std::string_view name, std::uint32_t layer) const {
  return layer >= first_layer && layer < end_layer && is_match(pattern, name);
}

}  // namespace skein::kernels
