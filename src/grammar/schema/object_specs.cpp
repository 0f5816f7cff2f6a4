// The names of an object and what follows each.
#include <algorithm>

#include "grammar/schema/node_builder.hpp"

namespace skein::grammar {
namespace {

constexpr std::uint32_t any_name = std::uint32_t{1} << 31;
constexpr std::size_t patterns_max = 30;
constexpr std::uint64_t name_length_max = 1'000;

bool is_listed(const object_rules::layer& layer, std::string_view name) {
  return std::ranges::binary_search(layer.names, name, {}, [](const auto& each) { return each.first; });
}

}  // namespace

/// True if propertyNames allows a name.
result<bool> node_builder::name_allowed(const object_rules& rules, std::string_view name) {
  for (const auto& each : rules.names) {
    const auto alternatives = with_.expand(with_.simplified({each}));
    if (!alternatives) return alternatives.error();
    bool fits = false;
    for (const auto& one : *alternatives) {
      if ((one.types & string_type) == 0) continue;
      const auto accepted = scalars_.accepts(one.strings, name);
      if (!accepted) return accepted;
      fits = fits || *accepted;
    }
    if (!fits) return false;
  }
  return true;
}

/// The names that propertyNames allows; null for all.
result<std::shared_ptr<const dfa>> node_builder::name_automaton(const object_rules& rules) {
  std::shared_ptr<const dfa> all;
  for (const auto& each : rules.names) {
    const auto alternatives = with_.expand(with_.simplified({each}));
    if (!alternatives) return alternatives.error();
    auto none_yet = literals({}, work_);
    if (!none_yet) return none_yet.error();
    dfa either = std::move(*none_yet);
    for (const auto& one : *alternatives) {
      if ((one.types & string_type) == 0) continue;
      auto strings = one.strings;
      auto made = scalars_.string_automaton(strings, false);
      if (!made) return made.error();
      if (!*made) *made = std::make_shared<const dfa>(any_text());
      const auto intersect = [&](const result<dfa>& with) -> result<void> {
        if (!with) return with.error();
        auto both = combine(**made, *with, combination::both, work_);
        if (!both) return both.error();
        *made = std::make_shared<const dfa>(std::move(*both));
        return {};
      };
      if (strings.included)
        if (const auto done = intersect(literals(*strings.included, work_)); !done) return done.error();
      if (strings.least > 0 || strings.most != ~std::uint64_t{0}) {
        if (strings.least > name_length_max || (strings.most > name_length_max && strings.most != ~std::uint64_t{0}))
          return error{error_kind::unsupported, "a length of names above 1000 is not supported", "propertyNames"};
        nfa code;
        bool fits = true;
        const auto any = code.codes(any_set());
        code.accept(
            code.repeat(any, static_cast<std::uint32_t>(strings.least),
                        strings.most == ~std::uint64_t{0} ? nfa::none : static_cast<std::uint32_t>(strings.most),
                        work_.of().instructions_max, fits));
        if (const auto done = intersect(determinise(code, work_)); !done) return done.error();
      }
      auto both = combine(either, **made, combination::either, work_);
      if (!both) return both.error();
      either = std::move(*both);
    }
    if (!all) {
      all = std::make_shared<const dfa>(std::move(either));
    } else {
      auto both = combine(*all, either, combination::both, work_);
      if (!both) return both.error();
      all = std::make_shared<const dfa>(std::move(*both));
    }
  }
  return all;
}

/// What follows names that are not listed: one node for each set of patterns that a name can match.
result<void> node_builder::add_other_names(program::object_spec& to, const object_rules& rules) {
  std::vector<std::uint32_t> patterns;
  for (const auto& layer : rules.layers)
    for (const auto& [index, value] : layer.patterns)
      if (std::ranges::find(patterns, index) == patterns.end()) patterns.push_back(index);
  if (patterns.size() > patterns_max) return too_much("patterns of names in one object", patterns_max);
  const auto node_for = [&](std::uint32_t matched) {
    atom_set set;
    for (const auto& layer : rules.layers) {
      bool known = false;
      for (const auto& [index, value] : layer.patterns) {
        if ((matched >> (std::ranges::find(patterns, index) - patterns.begin()) & 1) == 0) continue;
        known = true;
        if (value) set.push_back(*value);
      }
      if (!known && layer.rest) set.push_back(*layer.rest);
    }
    return node_of(std::move(set));
  };
  if (patterns.empty() && rules.names.empty()) {
    const auto node = node_for(0);
    if (!node) return node.error();
    to.other = *node;
    return {};
  }
  dfa names = any_text();
  for (auto& label : names.accepting)
    if (label != 0) label = any_name;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const auto language = with_.languages().whole(patterns[i]);
    if (!language) return language.error();
    auto both = combine(names, **language, combination::labels, work_, std::uint32_t{1} << i);
    if (!both) return both.error();
    names = std::move(*both);
  }
  const auto allowed = name_automaton(rules);
  if (!allowed) return allowed.error();
  if (*allowed) {
    auto both = combine(names, **allowed, combination::both, work_);
    if (!both) return both.error();
    names = std::move(*both);
  }
  for (const auto label : names.accepting) {
    const bool known = std::ranges::any_of(to.other_by_label, [&](const auto& each) { return each.first == label; });
    if (label == 0 || known) continue;
    const auto node = node_for(label & ~any_name);
    if (!node) return node.error();
    to.other_by_label.emplace_back(label, *node);
  }
  to.other_names = std::make_shared<const dfa>(std::move(names));
  return {};
}

result<void> node_builder::add_object(program::node& to, const object_rules& rules) {
  program::object_spec made;
  std::vector<std::string_view> names = rules.required;
  names.insert(names.end(), rules.forbidden.begin(), rules.forbidden.end());
  for (const auto& layer : rules.layers)
    for (const auto& [name, value] : layer.names) names.push_back(name);
  for (const auto& [first, second] : rules.dependent) names.insert(names.end(), {first, second});
  for (const auto& list : rules.beyond) names.insert(names.end(), list.begin(), list.end());
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.size() > work_.of().names_max) return too_much("names in one object", work_.of().names_max);
  made.names.assign(names.begin(), names.end());
  made.required.resize(names.size() / 64 + 1);
  const auto place_of = [&](std::string_view name) {
    return static_cast<std::uint32_t>(std::ranges::lower_bound(names, name) - names.begin());
  };
  for (const auto name : names) {
    if (!work_.spend(50 + 20 * rules.layers.size())) return too_much_work(work_);
    program::label label;
    atom_set set;
    for (const auto& layer : rules.layers) {
      bool known = is_listed(layer, name);
      const auto [first, last] =
          std::ranges::equal_range(layer.names, name, {}, [](const auto& each) { return each.first; });
      for (auto at = first; at != last; ++at)
        if (at->second) set.push_back(*at->second);
      for (const auto& [index, value] : layer.patterns) {
        const auto language = with_.languages().whole(index);
        if (!language) return language.error();
        if ((*language)->match(name) == 0) continue;
        known = true;
        if (value) set.push_back(*value);
      }
      if (!known && layer.rest) set.push_back(*layer.rest);
    }
    const auto allowed = name_allowed(rules, name);
    if (!allowed) return allowed.error();
    if (*allowed && std::ranges::find(rules.forbidden, name) == rules.forbidden.end()) {
      const auto node = node_of(std::move(set));
      if (!node) return node.error();
      label.node = *node;
    }
    for (std::size_t i = 0; i < rules.beyond.size(); ++i)
      if (std::ranges::find(rules.beyond[i], name) == rules.beyond[i].end())
        label.beyond |= static_cast<std::uint8_t>(1u << i);
    made.labels.push_back(label);
  }
  for (const auto name : rules.required)
    made.required[place_of(name) / 64] |= std::uint64_t{1} << (place_of(name) % 64);
  for (const auto& [first, second] : rules.dependent) made.dependent.emplace_back(place_of(first), place_of(second));
  if (!made.dependent.empty() && rules.most != ~std::uint64_t{0})
    return error{error_kind::unsupported, "maxProperties beside dependentRequired is not supported", "maxProperties"};
  made.second_first =
      work_.of().calls && made.required.front() == 3 && made.names == std::vector<std::string>{"arguments", "name"};
  made.least = rules.least;
  made.most = rules.most;
  made.beyond = static_cast<std::uint8_t>((1u << rules.beyond.size()) - 1);
  if (const auto added = add_other_names(made, rules); !added) return added;
  to.objects.push_back(static_cast<std::uint32_t>(made_.objects.size()));
  made_.objects.push_back(std::move(made));
  return {};
}

}  // namespace skein::grammar
