#include "grammar/schema/expander.hpp"

#include <algorithm>

#include "base/utf8.hpp"
#include "grammar/schema/schema_reader.hpp"

namespace skein::grammar {
namespace {

constexpr auto no_value = json_tree::none;
constexpr std::uint32_t root_scope = 0, no_parent = ~std::uint32_t{0};
constexpr unsigned exclusion_depth_max = 4;
constexpr std::size_t branches_max = 8'192, scopes_max = 16'384;
/// Steps of work to copy an element of a branch beyond the first ones. So the memory of all branches is bounded by
/// limits::steps_max.
constexpr std::uint64_t element_steps = 10, elements_free = 256;
constexpr int references_max = 16;

void intersect_types(alternative& of, std::uint8_t types) { of.types &= types; }

/// Drops types whose rules contradict each other.
void prune(alternative& each) {
  const auto drop = [&](std::uint8_t type) { each.types &= static_cast<std::uint8_t>(~type); };
  if (each.strings.least > each.strings.most) drop(string_type);
  if (each.arrays.least > each.arrays.most) drop(array_type);
  if (each.objects.least > each.objects.most) drop(object_type);
  if (each.strings.included && each.strings.included->empty()) drop(string_type);
  if (each.numbers_included && each.numbers_included->empty()) drop(number_type);
  const auto& n = each.numbers;
  if (n.integer && n.not_integer) drop(number_type);
  if (n.least && n.most) {
    const auto is = compare(n.least->value, n.most->value);
    if (is > 0 || (is == 0 && (n.least->exclusive || n.most->exclusive))) drop(number_type);
  }
  for (const auto name : each.objects.required)
    if (std::ranges::find(each.objects.forbidden, name) != each.objects.forbidden.end()) drop(object_type);
}

/// The value is equal to a constant.
void apply_constant(const json_tree& tree, const limits& of, alternative& to, std::uint32_t value) {
  switch (tree[value].kind) {
    case json_kind::null: intersect_types(to, null_type); return;
    case json_kind::truth: intersect_types(to, true_type); return;
    case json_kind::falsehood: intersect_types(to, false_type); return;
    case json_kind::number: {
      intersect_types(to, number_type);
      auto number = parse_decimal(tree[value].text, of.number_digits_max);
      if (!number ||
          (to.numbers_included && std::ranges::find(*to.numbers_included, *number) == to.numbers_included->end()))
        to.types = 0;
      else
        to.numbers_included = {std::move(*number)};
      return;
    }
    case json_kind::string: {
      intersect_types(to, string_type);
      const std::string_view text = tree[value].text;
      if (to.strings.included && std::ranges::find(*to.strings.included, text) == to.strings.included->end())
        to.types = 0;
      else
        to.strings.included = {text};
      return;
    }
    case json_kind::array: {
      intersect_types(to, array_type);
      const std::uint64_t count = tree[value].children.size();
      to.arrays.least = std::max(to.arrays.least, count);
      to.arrays.most = std::min(to.arrays.most, count);
      array_rules::layer layer;
      for (const auto each : tree[value].children) layer.prefix.push_back(atom{each, atom::mode::equal});
      layer.scope = no_parent;
      to.arrays.layers.push_back(std::move(layer));
      return;
    }
    case json_kind::object: {
      intersect_types(to, object_type);
      object_rules::layer layer;
      for (const auto each : tree[value].children) {
        layer.names.emplace_back(tree[each].key, atom{each, atom::mode::equal});
        to.objects.required.push_back(tree[each].key);
      }
      std::ranges::sort(layer.names, {}, [](const auto& each) { return each.first; });
      layer.rest = atom{0, atom::mode::nothing};
      layer.scope = no_parent;
      to.objects.layers.push_back(std::move(layer));
      return;
    }
  }
}

}  // namespace

/// Makes the values of a branch differ from a constant: each way to differ is a choice of its own, where there are
/// several.
class constant_difference {
 public:
  constant_difference(const expander& with, expander::branch& to)
      : tree_(with.document_.tree()), limits_(with.work_.of()), to_(to) {}

  /// Errors: unsupported for a number with too many digits.
  [[nodiscard]] result<void> choose(std::uint32_t constant);
  /// One of the choices: other_type to shorter. Errors: unsupported for too many negations of one object.
  [[nodiscard]] result<void> apply(const atom& what);

 private:
  void choose_one(std::uint32_t constant);
  void only(int types) { to_.made.types &= static_cast<std::uint8_t>(types); }

  const json_tree& tree_;
  limits limits_;
  expander::branch& to_;
};

/// The value differs from a constant: it has another type, or the same type and another value.
result<void> constant_difference::choose(std::uint32_t value) {
  auto& made = to_.made;
  const auto drop = [&](std::uint8_t type) { made.types &= static_cast<std::uint8_t>(~type); };
  switch (tree_[value].kind) {
    case json_kind::null: drop(null_type); return {};
    case json_kind::truth: drop(true_type); return {};
    case json_kind::falsehood: drop(false_type); return {};
    case json_kind::string: made.strings.excluded.push_back(tree_[value].text); return {};
    case json_kind::number:
      if (auto number = parse_decimal(tree_[value].text, limits_.number_digits_max))
        made.numbers.excluded.push_back(std::move(*number));
      else
        return error{
            error_kind::unsupported, tree_.pointer(value) + ": a number with this many digits is not supported", {}};
      return {};
    case json_kind::array:
    case json_kind::object: break;
  }
  const bool has_empty = tree_[value].children.empty();
  if (has_empty && tree_.is(value, json_kind::array)) {
    made.arrays.least = std::max<std::uint64_t>(made.arrays.least, 1);
    return {};
  }
  if (has_empty) {
    made.objects.least = std::max<std::uint64_t>(made.objects.least, 1);
    return {};
  }
  choose_one(value);
  return {};
}

/// The value is not this array or object: each of these choices is one way to differ from it.
void constant_difference::choose_one(std::uint32_t constant) {
  std::vector<std::vector<expander::pending>> choices;
  const auto choose = [&](std::uint32_t value, atom::mode how) { choices.push_back({{{value, how}, root_scope}}); };
  const bool is_array = tree_.is(constant, json_kind::array);
  choose(constant, atom::mode::other_type);
  choose(constant, is_array ? atom::mode::longer : atom::mode::other_name);
  if (is_array) choose(constant, atom::mode::shorter);
  for (const auto each : tree_[constant].children) {
    if (!is_array) choose(each, atom::mode::object_absent);
    choose(each, is_array ? atom::mode::element_differs : atom::mode::member_differs);
  }
  to_.forks.push_back(std::move(choices));
}

result<void> constant_difference::apply(const atom& what) {
  const auto& value = tree_[what.value];
  auto& made = to_.made;
  const std::uint64_t count = value.children.size();
  const atom differs{what.value, atom::mode::not_equal};
  switch (what.how) {
    case atom::mode::other_type:
      only(value.kind == json_kind::array ? every_type & ~array_type : every_type & ~object_type);
      return {};
    case atom::mode::other_name: {
      only(object_type);
      if (made.objects.beyond.size() == object_rules::witnesses_max)
        return error{
            error_kind::unsupported,
            tree_.pointer(what.value) + ": to exclude an object beside that many other negations is not supported",
            {}};
      object_rules::witness other;
      for (const auto each : value.children) other.unlisted.push_back(tree_[each].key);
      made.objects.beyond.push_back(std::move(other));
      return {};
    }
    case atom::mode::member_differs: {
      only(object_type);
      made.objects.required.push_back(value.key);
      object_rules::layer layer;
      layer.names.emplace_back(value.key, differs);
      layer.scope = no_parent;
      made.objects.layers.push_back(std::move(layer));
      return {};
    }
    case atom::mode::element_differs: {
      only(array_type);
      made.arrays.least = std::max<std::uint64_t>(made.arrays.least, value.place + 1u);
      array_rules::layer layer;
      layer.prefix.resize(value.place);
      layer.prefix.push_back(differs);
      layer.scope = no_parent;
      made.arrays.layers.push_back(std::move(layer));
      return {};
    }
    case atom::mode::longer:
      only(array_type);
      made.arrays.least = std::max(made.arrays.least, count + 1);
      return {};
    default:
      only(array_type);
      made.arrays.most = std::min(made.arrays.most, count - 1);
      return {};
  }
}

expander::expander(const schema_document& of, language_pool& languages, format_rule formats, budget& work)
    : document_(of), languages_(languages), formats_(formats), work_(work), notes_(of.tree()) {}

/// The schema that a schema refers to if it says nothing else; otherwise the schema itself.
std::uint32_t expander::referred(std::uint32_t schema) {
  const auto& tree = document_.tree();
  if (referred_.empty()) referred_.assign(tree.values.size(), no_value);
  auto& known = referred_[schema];
  if (known != no_value) return known;
  auto at = schema;
  for (int steps = 0; steps < references_max; ++steps) {
    const auto reference = tree.member(at, "$ref");
    if (reference == no_value || !tree.is(reference, json_kind::string)) break;
    const bool more = !document_.ref_replaces() && std::ranges::any_of(tree[at].children, [&](auto each) {
      return each != reference && (is_assertion(tree[each].key) || tree[each].key == "$id");
    });
    const auto target = more ? result<std::uint32_t>(error{}) : document_.resolve(reference);
    if (!target) break;
    at = *target;
  }
  return known = at;
}

atom_set expander::simplified(atom_set set) {
  const auto& tree = document_.tree();
  for (auto& each : set)
    if (each.how == atom::mode::schema || each.how == atom::mode::not_schema) each.value = referred(each.value);
  std::erase_if(set, [&](const atom& each) {
    return each.how == atom::mode::schema &&
           (tree.is(each.value, json_kind::truth) ||
            (tree.is(each.value, json_kind::object) && tree[each.value].children.empty()));
  });
  std::ranges::sort(set);
  set.erase(std::unique(set.begin(), set.end()), set.end());
  return set;
}

std::string_view expander::name_of(std::uint32_t value) const {
  const auto& v = document_.tree()[value];
  const bool is_element = v.parent != no_value && document_.tree().is(v.parent, json_kind::array);
  return is_element && v.kind == json_kind::string ? v.text : v.key;
}

/// Elements of all lists of a branch.
std::uint64_t expander::elements_of(const branch& of) {
  const auto& objects = of.made.objects;
  std::uint64_t count = of.todo.size() + of.scopes.size() + of.applied.size() + of.made.rest.size() +
                        objects.required.size() + objects.forbidden.size() + objects.names.size() +
                        objects.dependent.size() + of.made.strings.excluded.size() + of.made.strings.patterns.size();
  for (const auto& layer : objects.layers) count += 1 + layer.names.size() + layer.patterns.size();
  for (const auto& layer : of.made.arrays.layers) count += 1 + layer.prefix.size();
  if (of.made.strings.included) count += of.made.strings.included->size();
  if (of.made.numbers_included) count += of.made.numbers_included->size();
  for (const auto& fork : of.forks)
    for (const auto& choice : fork) count += 1 + choice.size();
  return count;
}

/// Comparisons of prune().
std::uint64_t expander::comparisons_of(const alternative& each) {
  return each.objects.required.size() * each.objects.forbidden.size();
}

result<std::vector<alternative>> expander::expand(const atom_set& set) {
  std::vector<alternative> made;
  std::vector<branch> branches(1);
  branches.front().scopes.push_back(no_parent);
  for (const auto& each : set) {
    branches.front().scopes.push_back(root_scope);
    branches.front().todo.push_back({each, static_cast<std::uint32_t>(branches.front().scopes.size() - 1)});
  }
  std::size_t count = 0;
  while (!branches.empty()) {
    branch here = std::move(branches.back());
    branches.pop_back();
    while (!here.todo.empty() && here.made.types != 0) {
      const auto next = here.todo.back();
      here.todo.pop_back();
      if (!work_.spend(20)) return too_much_work(work_);
      if (const auto applied = apply(here, next); !applied) {
        if (!may_drop(next.what, applied.error())) return applied.error();
        here.made.types = 0;
      }
    }
    if (!work_.spend(comparisons_of(here.made))) return too_much_work(work_);
    prune(here.made);
    if (here.made.types == 0) continue;
    if (here.forked) {  // most combinations of conditions on a member that tells kinds of objects apart are empty
      const auto possible = may_hold(here.made);
      if (!possible) return possible.error();
      if (!*possible) continue;
    }
    if (!here.forks.empty()) {
      const auto fork = std::move(here.forks.back());
      here.forks.pop_back();
      const std::uint64_t elements = elements_of(here);
      const std::uint64_t copy_steps =
          100 + here.scopes.size() + element_steps * (elements - std::min(elements, elements_free));
      for (std::size_t i = fork.size(); i-- > 0;) {
        if (++count > branches_max) return too_much("combinations of anyOf, oneOf, if and not", branches_max);
        if (!work_.spend(copy_steps)) return too_much_work(work_);
        branches.push_back(here);
        branches.back().forked = true;
        branches.back().todo = fork[i];
      }
      continue;
    }
    if (choose_dependencies(here)) {
      branches.push_back(std::move(here));
      continue;
    }
    if (const auto done = finish(here); !done) return done.error();
    if (!work_.spend(comparisons_of(here.made))) return too_much_work(work_);
    prune(here.made);
    if (here.made.types == 0) continue;
    if (made.size() >= work_.of().alternatives_max)
      return too_much("alternatives at one place", work_.of().alternatives_max);
    made.push_back(std::move(here.made));
  }
  return made;
}

result<void> expander::apply(branch& to, const pending& next) {
  auto& made = to.made;
  const auto name = [&] { return name_of(next.what.value); };
  switch (next.what.how) {
    case atom::mode::schema:
      if (made.rest.empty() && !to.applied.insert(next.what).second) return {};
      if (to.scopes.size() > scopes_max) return too_much("subschemas at one place", scopes_max);
      return schema_reader(*this, to).apply(next.what.value, next.scope);
    case atom::mode::not_schema: {
      const auto schema = referred(next.what.value);
      if (!to.applied.insert({schema, atom::mode::not_schema}).second) return {};
      return negation_reader(*this, to).negate_schema(schema);
    }
    case atom::mode::not_keyword: return negation_reader(*this, to).negate_keyword(next.what.value);
    case atom::mode::equal: apply_constant(document_.tree(), work_.of(), made, next.what.value); return {};
    case atom::mode::not_equal: return constant_difference(*this, to).choose(next.what.value);
    case atom::mode::object_absent: intersect_types(made, object_type); [[fallthrough]];
    case atom::mode::absent: made.objects.forbidden.push_back(name()); return {};
    case atom::mode::object_present:
      intersect_types(made, object_type);
      made.objects.required.push_back(name());
      return {};
    case atom::mode::absent_or_fails:
    case atom::mode::property_fails: {
      intersect_types(made, object_type);
      if (next.what.how == atom::mode::property_fails) made.objects.required.push_back(name());
      object_rules::layer layer;
      layer.names.emplace_back(name(), atom{next.what.value, atom::mode::not_schema});
      layer.scope = no_parent;
      made.objects.layers.push_back(std::move(layer));
      return {};
    }
    case atom::mode::member_fails: return negation_reader(*this, to).member_fails(next.what.value);
    case atom::mode::match_fails: return negation_reader(*this, to).match_fails(next.what.value);
    case atom::mode::element_fails: {
      const auto place = document_.tree()[next.what.value].place;
      intersect_types(made, array_type);
      made.arrays.least = std::max<std::uint64_t>(made.arrays.least, place + 1u);
      array_rules::layer layer;
      layer.prefix.resize(place);
      layer.prefix.push_back(atom{next.what.value, atom::mode::not_schema});
      layer.scope = no_parent;
      made.arrays.layers.push_back(std::move(layer));
      return {};
    }
    case atom::mode::other_type:
    case atom::mode::other_name:
    case atom::mode::member_differs:
    case atom::mode::element_differs:
    case atom::mode::longer:
    case atom::mode::shorter: return constant_difference(*this, to).apply(next.what);
    case atom::mode::nothing: made.types = 0; return {};
  }
  return {};
}

/// A limit of the number of members needs to know which names may still come, so dependencies become choices.
bool expander::choose_dependencies(branch& of) {
  auto& objects = of.made.objects;
  if ((of.made.types & object_type) == 0 || objects.most == ~std::uint64_t{0}) return false;
  for (const auto& each : objects.dependent)
    if (each.required_value != no_value)
      of.forks.push_back({{{{each.name_value, atom::mode::absent}, root_scope}},
                          {{{each.name_value, atom::mode::object_present}, root_scope},
                           {{each.required_value, atom::mode::object_present}, root_scope}}});
  return std::erase_if(objects.dependent, [](const auto& each) { return each.required_value != no_value; }) > 0;
}

/// A value that fails a schema does so by one of its keywords. Where the failure of a keyword is not supported, that
/// choice is left out: then fewer values are accepted, and none that is invalid. Not where the question is whether a
/// value exists.
bool expander::may_drop(const atom& what, const error& why) {
  const bool negative = what.how == atom::mode::not_schema || what.how == atom::mode::not_keyword ||
                        what.how == atom::mode::not_equal || what.how == atom::mode::match_fails ||
                        what.how == atom::mode::member_fails || what.how == atom::mode::other_name;
  if (!negative || depth_ > 0 || why.kind != error_kind::unsupported) return false;
  notes_.add(what.value, "values that are valid only because this fails are not accepted");
  if (!dropped_) dropped_ = why;
  return true;
}

result<void> expander::add_formats(alternative& to) {
  const auto& tree = document_.tree();
  if (formats_ == format_rule::annotation || (to.types & string_type) == 0) return {};
  for (const auto& each : to.formats) {
    const std::string& name = tree[each.value].text;
    if (!is_standard_format(name)) {
      notes_.add(each.value, "the format " + std::string(utf8_prefix(name, 64)) + " is not known and not enforced");
      if (each.negated) to.types = 0;
      continue;
    }
    if (each.negated && !document_.is_at_least(first_draft_of(name))) {  // it fails only where it is enforced
      notes_.add(each.value, "values that are valid only because this fails are not accepted");
      to.types = 0;
      return {};
    }
    const bool automatic = formats_ == format_rule::automatic;
    if (automatic && keyword_values(document_).is_alone(each.value))
      return error{error_kind::unsupported,
                   tree.pointer(each.value) +
                       ": a format alone is an assertion for some validators and an annotation for others; add "
                       "\"type\": \"string\"",
                   "format"};
    const auto index = languages_.format(name, automatic, each.negated);
    if (!index) return error{index.error().kind, tree.pointer(each.value) + ": " + index.error().message, "format"};
    if (each.negated && languages_[*index].most != pattern_language::no_limit)  // a part of the format
      return error{error_kind::unsupported, tree.pointer(each.value) + ": a negated " + name + " is not supported",
                   "format"};
    if (is_narrowed_format(name)) notes_.add(each.value, "only a part of the format " + name + " is accepted");
    to.strings.patterns.push_back({*index, each.negated});
  }
  return {};
}

/// Adds what unevaluatedProperties and unevaluatedItems say to the layers: it concerns what no keyword of its schema,
/// and of the subschemas that were applied in place, evaluates.
result<void> expander::add_unevaluated(branch& to) const {
  const auto is_inside = [&](std::uint32_t scope, std::uint32_t of) {
    for (; scope != no_parent; scope = to.scopes[scope])
      if (scope == of) return true;
    return false;
  };
  // Inner ones first: what they evaluate, outer ones need not.
  auto all = to.made.rest;
  std::ranges::sort(all, std::greater(), &alternative::unevaluated::scope);
  for (const auto& rest : all) {
    if (rest.items) {
      array_rules::layer made;
      bool everything = false;
      for (const auto& layer : to.made.arrays.layers) {
        if (!is_inside(layer.scope, rest.scope)) continue;
        everything = everything || layer.evaluates_all;
        made.prefix.resize(std::max(made.prefix.size(), layer.prefix.size()));
      }
      for (const auto& each : to.made.arrays.contains)
        if (is_inside(each.scope, rest.scope))
          return error{
              error_kind::unsupported,
              document_.tree().pointer(rest.what.value) + ": unevaluatedItems beside contains is not supported",
              "unevaluatedItems"};
      if (everything) continue;
      made.rest = rest.what;
      made.evaluates_all = true;
      made.scope = rest.scope;
      to.made.arrays.layers.push_back(std::move(made));
    } else {
      object_rules::layer made;
      bool everything = false;
      for (const auto& layer : to.made.objects.layers) {
        if (!is_inside(layer.scope, rest.scope)) continue;
        everything = everything || layer.rest;
        for (const auto& [name, ignored] : layer.names) made.names.emplace_back(name, std::nullopt);
        for (const auto& [pattern, ignored] : layer.patterns) made.patterns.emplace_back(pattern, std::nullopt);
      }
      if (everything) continue;
      std::ranges::sort(made.names, {}, [](const auto& each) { return each.first; });
      made.rest = rest.what;
      made.scope = rest.scope;
      to.made.objects.layers.push_back(std::move(made));
    }
  }
  return {};
}

result<void> expander::finish(branch& done) {
  if (const auto added = add_formats(done.made); !added) return added;
  return add_unevaluated(done);
}

result<bool> expander::may_hold(const atom_set& set) {
  const auto key = simplified(set);
  if (const auto known = may_hold_.find(key); known != may_hold_.end()) return known->second;
  if (depth_ >= exclusion_depth_max) return true;
  ++depth_;
  const auto alternatives = expand(key);
  bool answer = !alternatives;  // what cannot be expanded here may hold; its own place reports the error
  if (alternatives)
    for (const auto& each : *alternatives) {
      const auto held = may_hold(each);
      if (held && !*held) continue;
      answer = true;
      break;
    }
  --depth_;
  if (!alternatives && alternatives.error().kind == error_kind::too_large) return alternatives.error();
  may_hold_.emplace(key, answer);
  return answer;
}

/// Looks for contradictions in properties that must be present, and in strings that are listed.
result<bool> expander::may_hold(const alternative& each) {
  auto types = each.types;
  if (each.strings.included && (types & string_type) != 0) {
    const auto fits = [&](std::string_view text) {
      if (std::ranges::find(each.strings.excluded, text) != each.strings.excluded.end()) return false;
      for (const auto& pattern : each.strings.patterns) {
        const auto language = languages_.whole(pattern.language);
        if (language && ((*language)->match(text) != 0) == pattern.negated) return false;
      }
      return true;
    };
    if (std::ranges::none_of(*each.strings.included, fits)) types &= static_cast<std::uint8_t>(~string_type);
  }
  if (each.numbers_included &&
      std::ranges::none_of(*each.numbers_included, [&](const decimal& n) { return each.numbers.accepts(n); }))
    types &= static_cast<std::uint8_t>(~number_type);
  if (types != object_type) return types != 0;
  for (const auto name : each.objects.required) {
    if (!work_.spend(1 + each.objects.layers.size())) return too_much_work(work_);
    atom_set value;
    for (const auto& layer : each.objects.layers) {
      const auto [first, last] = std::ranges::equal_range(layer.names, name, {}, [](const auto& n) { return n.first; });
      for (auto at = first; at != last; ++at)
        if (at->second) value.push_back(*at->second);
      if (first == last && layer.patterns.empty() && layer.rest) value.push_back(*layer.rest);
    }
    if (value.empty()) continue;
    for (const auto& one : value)
      if (one.how == atom::mode::nothing) return false;
    const auto held = may_hold(value);
    if (!held || !*held) return held;
  }
  return true;
}

}  // namespace skein::grammar
