// The names of an object and what follows each.
#include <algorithm>

#include "grammar/schema/node_builder.hpp"

namespace skein::grammar {
namespace {

constexpr std::uint32_t any_name = std::uint32_t{1} << 31;
constexpr std::size_t patterns_max = 30, valued_max = 5;
constexpr std::uint64_t few_names = 64;

bool is_listed(const object_rules::layer& layer, std::string_view name) {
  return std::ranges::binary_search(layer.names, name, {}, [](const auto& each) { return each.first; });
}

struct asked_name {
  std::optional<std::string_view> listed;                      ///< if it is one of object_spec::names
  std::function<bool(std::uint32_t)> matches;                  ///< a pattern
  std::function<result<bool>(std::size_t witness)> satisfies;  ///< what the witness asks of names
};

/// What follows a name, with its bits: which witnesses it may be, for all of its values or for those of one witness.
result<program::label> label_of(expander& with, const std::function<result<std::uint32_t>(atom_set)>& node_of,
                                program::object_spec& to, const object_rules& rules, atom_set set,
                                const asked_name& name) {
  program::label made;
  struct valued {
    atom value;
    std::uint8_t bits;
  };
  std::vector<valued> values;
  for (std::size_t i = 0; i < rules.beyond.size(); ++i) {
    const auto& each = rules.beyond[i];
    if (name.listed && std::ranges::find(each.unlisted, *name.listed) != each.unlisted.end()) continue;
    if (std::ranges::any_of(each.unmatched, name.matches) || (each.pattern && !name.matches(*each.pattern))) continue;
    const auto fits = name.satisfies(i);
    if (!fits) return fits.error();
    if (!*fits) continue;
    auto value = each.value;
    if (!each.members.empty()) {
      const auto member =
          std::ranges::find_if(each.members, [&](const auto& one) { return name.listed && one.first == *name.listed; });
      if (member == each.members.end()) continue;
      value = member->second;
    }
    const auto bit = static_cast<std::uint8_t>(1u << i);
    if (!value) {
      made.beyond |= bit;
      continue;
    }
    if (value->how == atom::mode::schema || value->how == atom::mode::not_schema)
      value->value = with.referred(value->value);
    const auto known = std::ranges::find(values, *value, &valued::value);
    if (known == values.end())
      values.push_back({*value, bit});
    else
      known->bits |= bit;
  }
  if (values.size() > valued_max) {
    error why{error_kind::unsupported, "to negate that many schemas of one member is not supported", "oneOf"};
    if (!with.may_drop(values.front().value, why)) return why;
    values.resize(valued_max);
  }
  // A value may satisfy any of them together.
  made.first_witness = static_cast<std::uint32_t>(to.witnesses.size());
  for (unsigned chosen = 1; chosen < 1u << values.size(); ++chosen) {
    auto with_values = set;
    program::witness witness;
    for (std::size_t k = 0; k < values.size(); ++k) {
      if ((chosen >> k & 1) == 0) continue;
      with_values.push_back(values[k].value);
      witness.beyond |= values[k].bits;
    }
    const auto node = node_of(std::move(with_values));
    if (!node) return node.error();
    witness.node = *node;
    to.witnesses.push_back(witness);
    ++made.witnesses;
  }
  const auto node = node_of(std::move(set));
  if (!node) return node.error();
  made.node = *node;
  return made;
}

/// Lists the names that an automaton accepts, which are few, each with what follows its label.
result<void> list_names(const dfa& names, program::object_spec& to, budget& work) {
  std::vector<std::pair<std::uint32_t, std::string>> open;
  if (!names.is_empty()) open.emplace_back(names.start, "");
  while (!open.empty()) {
    const auto [state, text] = std::move(open.back());
    open.pop_back();
    if (!work.spend(256 + text.size())) return too_much_work(work);
    const auto place = std::ranges::lower_bound(to.names, text);
    if (names.accepting[state] != 0 && (place == to.names.end() || *place != text)) {
      const auto follows =
          std::ranges::find(to.other_by_label, names.accepting[state], [](const auto& each) { return each.first; });
      to.labels.insert(to.labels.begin() + (place - to.names.begin()), follows->second);
      to.names.insert(place, text);
    }
    for (unsigned byte = 0; byte < 256; ++byte)
      if (const auto next = names.step(state, static_cast<unsigned char>(byte)); next != dfa::dead)
        open.emplace_back(next, text + static_cast<char>(byte));
  }
  to.other_by_label.clear();
  return {};
}

}  // namespace

/// What follows names that are not listed: one label for each set of patterns that a name can match.
result<void> node_builder::add_other_names(program::object_spec& to, const object_rules& rules) {
  std::vector<std::uint32_t> patterns;
  const auto add_pattern = [&](std::uint32_t index) {
    if (std::ranges::find(patterns, index) == patterns.end()) patterns.push_back(index);
  };
  for (const auto& layer : rules.layers)
    for (const auto& [index, value] : layer.patterns) add_pattern(index);
  std::vector<std::size_t> names_judged;  // witnesses whose condition on names has a bit after those of patterns
  for (std::size_t i = 0; i < rules.beyond.size(); ++i) {
    for (const auto index : rules.beyond[i].unmatched) add_pattern(index);
    if (rules.beyond[i].pattern) add_pattern(*rules.beyond[i].pattern);
    if (rules.beyond[i].name) names_judged.push_back(i);
  }
  if (patterns.size() + names_judged.size() > patterns_max)
    return too_much("patterns of names in one object", patterns_max);
  const auto label_for = [&](std::uint32_t matched) {
    const auto has = [&](std::size_t bit) { return (matched >> bit & 1) != 0; };
    const auto matches = [&](std::uint32_t index) {
      return has(static_cast<std::size_t>(std::ranges::find(patterns, index) - patterns.begin()));
    };
    atom_set set;
    for (const auto& layer : rules.layers) {
      bool known = false;
      for (const auto& [index, value] : layer.patterns) {
        if (!matches(index)) continue;
        known = true;
        if (value) set.push_back(*value);
      }
      if (!known && layer.rest) set.push_back(*layer.rest);
    }
    const auto satisfies = [&](std::size_t witness) -> result<bool> {
      const auto place = std::ranges::find(names_judged, witness);
      return place == names_judged.end() ||
             has(patterns.size() + static_cast<std::size_t>(place - names_judged.begin()));
    };
    return label_of(with_, nodes(), to, rules, std::move(set), {std::nullopt, matches, satisfies});
  };
  if (patterns.empty() && rules.names.empty() && names_judged.empty()) {
    auto label = label_for(0);
    if (!label) return label.error();
    to.other = *label;
    return {};
  }
  dfa names = any_text();
  for (auto& label : names.accepting)
    if (label != 0) label = any_name;
  for (std::size_t i = 0; i < patterns.size() + names_judged.size(); ++i) {
    const auto language = i < patterns.size()
                              ? with_.languages().whole(patterns[i])
                              : names_.automaton({*rules.beyond[names_judged[i - patterns.size()]].name});
    if (!language) return language.error();
    auto both = combine(names, *language ? **language : any_text(), combination::labels, work_, std::uint32_t{1} << i);
    if (!both) return both.error();
    names = std::move(*both);
  }
  const auto allowed = names_.automaton(rules.names);
  if (!allowed) return allowed.error();
  if (*allowed) {
    auto both = combine(names, **allowed, combination::both, work_);
    if (!both) return both.error();
    names = std::move(*both);
  }
  for (const auto label : names.accepting) {
    const bool known = std::ranges::any_of(to.other_by_label, [&](const auto& each) { return each.first == label; });
    if (label == 0 || known) continue;
    const auto follows = label_for(label & ~any_name);
    if (!follows) return follows.error();
    to.other_by_label.emplace_back(label, *follows);
  }
  const auto leads_on = [&](std::uint32_t label) {
    return std::ranges::any_of(
        to.other_by_label, [&](const auto& each) { return each.first == label && each.second.node != program::none; });
  };
  for (auto& label : names.accepting)
    if (!leads_on(label)) label = 0;
  names.finish();
  if (!work_.spend(names.next.size())) return too_much_work(work_);
  // Names that are few are listed, so that none occurs twice.
  if (text_counts(names)[names.start] <= few_names) return list_names(names, to, work_);
  to.other_names = std::make_shared<const dfa>(std::move(names));
  return {};
}

result<void> node_builder::add_object(program::node& to, const object_rules& rules) {
  program::object_spec made;
  std::vector<std::string_view> names = rules.required;
  names.insert(names.end(), rules.forbidden.begin(), rules.forbidden.end());
  for (const auto& layer : rules.layers)
    for (const auto& [name, value] : layer.names) names.push_back(name);
  for (const auto& each : rules.dependent) names.insert(names.end(), {each.name, each.required});
  for (const auto& each : rules.beyond) {
    names.insert(names.end(), each.unlisted.begin(), each.unlisted.end());
    for (const auto& [name, value] : each.members) names.push_back(name);
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.size() > work_.of().names_max) return too_much("names in one object", work_.of().names_max);
  made.names.assign(names.begin(), names.end());
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
    const auto allowed = names_.allowed(rules.names, name);
    if (!allowed) return allowed.error();
    if (*allowed && std::ranges::find(rules.forbidden, name) == rules.forbidden.end()) {
      const auto matches = [&](std::uint32_t index) {
        const auto language = with_.languages().whole(index);
        return language && (*language)->match(name) != 0;
      };
      const auto satisfies = [&](std::size_t witness) -> result<bool> {
        const auto& asked = rules.beyond[witness].name;
        return asked ? names_.allowed({*asked}, name) : result<bool>(true);
      };
      const auto follows = label_of(with_, nodes(), made, rules, std::move(set), {name, matches, satisfies});
      if (!follows) return follows.error();
      label = *follows;
    }
    made.labels.push_back(label);
  }
  if (const auto added = add_other_names(made, rules); !added) return added;
  made.required.resize(made.names.size() / 64 + 1);
  const auto place_of = [&](std::string_view name) {
    return static_cast<std::uint32_t>(std::ranges::lower_bound(made.names, name) - made.names.begin());
  };
  for (const auto name : rules.required)
    made.required[place_of(name) / 64] |= std::uint64_t{1} << (place_of(name) % 64);
  for (const auto& each : rules.dependent) made.dependent.emplace_back(place_of(each.name), place_of(each.required));
  if (!made.dependent.empty() && rules.most != ~std::uint64_t{0})
    return error{error_kind::unsupported, "maxProperties beside dependentRequired is not supported", "maxProperties"};
  made.least = rules.least;
  made.most = rules.most;
  made.beyond = static_cast<std::uint8_t>((1u << rules.beyond.size()) - 1);
  to.objects.push_back(static_cast<std::uint32_t>(made_.objects.size()));
  made_.objects.push_back(std::move(made));
  return {};
}

}  // namespace skein::grammar
