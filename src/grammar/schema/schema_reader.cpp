#include "grammar/schema/schema_reader.hpp"

#include <algorithm>
#include <iterator>

namespace skein::grammar {
namespace {

constexpr auto none = json_tree::none;

/// The names that the schema with this keyword requires of its values, if these are objects.
atom_set required_beside(const json_tree& tree, std::uint32_t value) {
  atom_set made;
  const auto type = tree.member(tree[value].parent, "type"), names = tree.member(tree[value].parent, "required");
  const bool is_object = type != none && tree.is(type, json_kind::string) && tree[type].text == "object";
  if (!is_object || names == none || !tree.is(names, json_kind::array)) return made;
  for (const auto name : tree[names].children)
    if (tree.is(name, json_kind::string)) made.push_back({name, atom::mode::object_present});
  return made;
}

/// What tells kinds of values apart at first sight: their types, and members that must be there and have listed values.
struct kind {
  std::uint8_t types = every_type;
  std::vector<std::string_view> required;
  struct listed {
    std::string_view name;
    std::vector<std::string> values;  ///< sorted
  };
  std::vector<listed> members;
};

/// The values of const or enum, each with its type; nothing if they are no strings.
std::vector<std::string> listed_values(const json_tree& tree, std::uint32_t schema, bool has_const) {
  std::vector<std::string> made;
  const auto one = tree.member(schema, "const"), all = tree.member(schema, "enum");
  if (tree.member(schema, "$ref") != none) return made;
  if (one != none && has_const && tree.is(one, json_kind::string)) return {tree[one].text};
  if ((one != none && has_const) || all == none || !tree.is(all, json_kind::array)) return made;
  for (const auto each : tree[all].children) {
    if (!tree.is(each, json_kind::string)) return {};
    made.push_back(tree[each].text);
  }
  std::ranges::sort(made);
  return made;
}

/// Adds what a schema says, and what it refers to if that does not replace it. Other keywords only narrow the kind.
void add_kind(const schema_document& document, const keyword_values& values, std::uint32_t schema, kind& to) {
  const auto& tree = document.tree();
  for (int followed = 0; followed < 4 && schema != none && tree.is(schema, json_kind::object); ++followed) {
    const auto reference = tree.member(schema, "$ref");
    const auto target = reference != none && tree.is(reference, json_kind::string) ? document.resolve(reference)
                                                                                   : result<std::uint32_t>(none);
    const auto next = target ? *target : none;
    if (reference != none && document.ref_replaces()) {
      schema = next;
      continue;
    }
    if (const auto type = tree.member(schema, "type"); type != none)
      if (const auto types = values.types(type)) to.types &= types->types;
    const auto required = tree.member(schema, "required"), members = tree.member(schema, "properties");
    if (required != none && tree.is(required, json_kind::array))
      for (const auto name : tree[required].children) to.required.push_back(tree[name].text);
    if (members != none)
      for (const auto each : tree[members].children)
        if (auto listed = listed_values(tree, each, document.is_at_least(dialect::draft6)); !listed.empty())
          to.members.push_back({tree[each].key, std::move(listed)});
    schema = next;
  }
  std::erase_if(to.members,
                [&](const auto& each) { return std::ranges::find(to.required, each.name) == to.required.end(); });
}

bool exclude_each_other(const kind& a, const kind& b) {
  const auto types = a.types & b.types;
  if (types == 0) return true;
  if (types != object_type) return false;
  for (const auto& one : a.members)
    for (const auto& other : b.members) {
      if (one.name != other.name) continue;
      std::vector<std::string> both;
      std::ranges::set_intersection(one.values, other.values, std::back_inserter(both));
      if (both.empty()) return true;
    }
  return false;
}

}  // namespace

std::uint32_t schema_reader::inner(std::uint32_t scope) {
  to_.scopes.push_back(scope);
  return static_cast<std::uint32_t>(to_.scopes.size() - 1);
}

/// True if some unevaluatedProperties or unevaluatedItems sees what is evaluated in this scope.
bool schema_reader::is_tracked(std::uint32_t scope) const {
  for (; scope != ~std::uint32_t{0}; scope = to_.scopes[scope])
    for (const auto& rest : to_.made.rest)
      if (rest.scope == scope) return true;
  return false;
}

result<void> schema_reader::apply(std::uint32_t schema, std::uint32_t scope) {
  if (tree_.is(schema, json_kind::truth)) return {};
  if (tree_.is(schema, json_kind::falsehood)) {
    to_.made.types = 0;
    return {};
  }
  if (!tree_.is(schema, json_kind::object)) return malformed(schema, "a schema");
  const auto reference = tree_.member(schema, "$ref");
  if (reference != none && document_.ref_replaces()) return keyword(reference, scope);
  if (const auto id = tree_.member(schema, "$id");
      reference != none && id != none && schema != 0 && document_.rules() == dialect::unknown)
    return not_supported(id, "$id beside $ref in a schema without $schema, which drafts up to 7 ignore,");
  for (const char* key : {"unevaluatedItems", "unevaluatedProperties"})
    if (const auto rest = tree_.member(schema, key); rest != none && !is_ignored(rest))
      to_.made.rest.push_back({{rest, atom::mode::schema}, scope, std::string_view(key) == "unevaluatedItems"});
  for (const auto member : tree_[schema].children) {
    if (!is_assertion(tree_[member].key) || is_ignored(member)) continue;
    if (const auto done = keyword(member, scope); !done) return done;
  }
  if (const auto done = object_layer(schema, scope); !done) return done;
  return array_layer(schema, scope);
}

result<void> schema_reader::keyword(std::uint32_t value, std::uint32_t scope) {
  const auto& key = tree_[value].key;
  auto& made = to_.made;
  if (key == "type") {
    const auto types = this->types(value);
    if (!types) return types.error();
    made.types &= types->types;
    if (types->integer) {
      made.numbers.integer = true;
      if (document_.has_plain_integers(value)) made.numbers.plain = true;
    }
    return {};
  }
  if (key == "enum") return enumeration(value, scope);
  if (key == "const") return add({value, atom::mode::equal}, scope), result<void>();
  if (key == "pattern") {
    if (const auto ok = expect(value, json_kind::string, "a string"); !ok) return ok;
    const auto index = with_.languages_.pattern(tree_[value].text);
    if (!index) return error{index.error().kind, tree_.pointer(value) + ": " + index.error().message, key};
    made.strings.patterns.push_back({*index, false});
    return {};
  }
  if (key == "format") {
    if (tree_.is(value, json_kind::string)) made.formats.push_back({value, false});
    return {};
  }
  if (key == "contains") return contains(value, scope);
  if (key == "contentMediaType" || key == "contentEncoding") {
    if (is_alone(value)) return not_supported(value, key);
    with_.notes_.add(value, key + " is not enforced");
    return {};
  }
  for (const auto& part : {number_keyword(key, value), size_keyword(key, value), combining_keyword(key, value, scope),
                           object_keyword(key, value, scope)}) {
    if (!part) return part.error();
    if (*part) return {};
  }
  return {};
}

result<bool> schema_reader::number_keyword(const std::string& key, std::uint32_t value) {
  auto& numbers = to_.made.numbers;
  const bool low = key == "minimum" || key == "exclusiveMinimum", high = key == "maximum" || key == "exclusiveMaximum";
  const bool multiple = key == "multipleOf" || key == "divisibleBy";
  if (!low && !high && !multiple) return false;
  if (key.starts_with("exclusive") && tree_.is_boolean(value)) return true;  // draft 4: read with its bound
  auto number = this->number(value, with_.work_.of());
  if (!number) return number.error();
  if (multiple) {
    if (number->negative || number->is_zero()) return malformed(value, "a number above 0");
    numbers.multiples.push_back(std::move(*number));
    return true;
  }
  const bool exclusive =
      key.starts_with("exclusive") || is_exclusive_by_flag(value, low ? "exclusiveMinimum" : "exclusiveMaximum");
  if (low)
    numbers.raise_least({std::move(*number), exclusive});
  else
    numbers.lower_most({std::move(*number), exclusive});
  return true;
}

result<bool> schema_reader::size_keyword(const std::string& key, std::uint32_t value) {
  auto& made = to_.made;
  const struct {
    const char* name;
    std::uint64_t* least;
    std::uint64_t* most;
  } sizes[] = {{"Length", &made.strings.least, &made.strings.most},
               {"Items", &made.arrays.least, &made.arrays.most},
               {"Properties", &made.objects.least, &made.objects.most}};
  for (const auto& [name, least, most] : sizes) {
    const bool low = key == std::string("min") + name;
    if (!low && key != std::string("max") + name) continue;
    const auto count = this->count(value);
    if (!count) return count.error();
    if (low)
      *least = std::max(*least, *count);
    else
      *most = std::min(*most, *count);
    return true;
  }
  if (key != "uniqueItems") return false;
  if (!tree_.is_boolean(value)) return malformed(value, "a boolean");
  made.arrays.unique = made.arrays.unique || tree_.is(value, json_kind::truth);
  return true;
}

result<bool> schema_reader::combining_keyword(const std::string& key, std::uint32_t value, std::uint32_t scope) {
  if (is_reference(key)) {
    const auto target = this->target(value);
    if (!target) return target.error();
    add({*target, atom::mode::schema}, inner(scope));
    return true;
  }
  if (key == "not") return add({value, atom::mode::not_schema}, scope), true;
  if (key == "if") return condition(value, scope), true;
  if (key == "extends" || key == "disallow") {
    if (const auto done = draft3_keyword(value, scope); !done) return done.error();
    return true;
  }
  if (key != "allOf" && key != "anyOf" && key != "oneOf") return false;
  if (!tree_.is(value, json_kind::array) || tree_[value].children.empty()) return malformed(value, "a list of schemas");
  if (key == "allOf")
    for (const auto each : tree_[value].children) add({each, atom::mode::schema}, inner(scope));
  if (key == "anyOf")
    if (const auto done = any_of(value, scope); !done) return done.error();
  if (key == "oneOf")
    if (const auto done = one_of(value, scope); !done) return done.error();
  return true;
}

/// `extends` is a schema or a list of them, all of which hold; `disallow` names types.
result<void> schema_reader::draft3_keyword(std::uint32_t value, std::uint32_t scope) {
  if (tree_[value].key == "extends") {
    const std::vector<std::uint32_t> one{value};
    for (const auto each : tree_.is(value, json_kind::array) ? tree_[value].children : one)
      add({each, atom::mode::schema}, inner(scope));
    return {};
  }
  const auto types = this->types(value);
  if (!types) return not_supported(value, "disallow of schemas");
  auto left = static_cast<std::uint8_t>(every_type & ~types->types);
  if (types->integer) {
    left |= number_type;
    to_.made.numbers.not_integer = true;
  }
  to_.made.types &= left;
  return {};
}

void schema_reader::condition(std::uint32_t value, std::uint32_t scope) {
  const auto then_part = sibling(value, "then"), else_part = sibling(value, "else");
  if (then_part == none && else_part == none && !is_tracked(scope)) return;
  std::vector<expander::pending> holds{{{value, atom::mode::schema}, inner(scope)}};
  std::vector<expander::pending> fails{{{value, atom::mode::not_schema}, scope}};
  if (then_part != none) holds.push_back({{then_part, atom::mode::schema}, inner(scope)});
  if (else_part != none) fails.push_back({{else_part, atom::mode::schema}, inner(scope)});
  to_.forks.push_back({std::move(holds), std::move(fails)});
}

result<void> schema_reader::enumeration(std::uint32_t value, std::uint32_t scope) {
  if (const auto ok = expect(value, json_kind::array, "a list of values"); !ok) return ok;
  auto& made = to_.made;
  if (tree_[value].children.size() > with_.work_.of().names_max)
    return too_much("values in one enum", with_.work_.of().names_max);
  std::uint8_t types = 0;
  std::vector<std::string_view> texts;
  std::vector<decimal> numbers;
  std::vector<std::vector<expander::pending>> compound;
  for (const auto each : tree_[value].children) {
    switch (tree_[each].kind) {
      case json_kind::null: types |= null_type; break;
      case json_kind::truth: types |= true_type; break;
      case json_kind::falsehood: types |= false_type; break;
      case json_kind::string: texts.push_back(tree_[each].text); break;
      case json_kind::number: {
        auto number = this->number(each, with_.work_.of());
        if (!number) return number.error();
        numbers.push_back(std::move(*number));
        break;
      }
      default: compound.push_back({{{each, atom::mode::equal}, scope}});
    }
  }
  if (!texts.empty()) types |= string_type;
  if (!numbers.empty()) types |= number_type;
  if (!compound.empty()) {
    if (types == 0 && compound.size() == 1) {
      to_.todo.push_back(compound.front().front());
      return {};
    }
    // Each array or object is a branch; the other values share one, for which they are compared one by one.
    for (const auto each : tree_[value].children)
      if (tree_[each].children.empty() && !tree_.is(each, json_kind::array) && !tree_.is(each, json_kind::object))
        compound.push_back({{{each, atom::mode::equal}, scope}});
    to_.forks.push_back(std::move(compound));
    return {};
  }
  made.types &= types;
  const auto keep = [](auto& included, auto values) {
    if (!included) {
      included = std::move(values);
      return;
    }
    std::erase_if(*included, [&](const auto& each) { return std::ranges::find(values, each) == values.end(); });
  };
  if (!texts.empty()) keep(made.strings.included, std::move(texts));
  if (!numbers.empty()) keep(made.numbers_included, std::move(numbers));
  return {};
}

result<void> schema_reader::any_of(std::uint32_t value, std::uint32_t scope) {
  const auto& members = tree_[value].children;
  std::vector<std::vector<expander::pending>> choices;
  if (!is_tracked(scope)) {
    for (const auto each : members) choices.push_back({{{each, atom::mode::schema}, inner(scope)}});
  } else {
    // Each member that holds evaluates properties, so all sets of members are tried.
    if (members.size() > 5)
      return not_supported(value, "anyOf with more than five members beside an unevaluated keyword");
    for (unsigned set = 1; set < 1u << members.size(); ++set) {
      choices.emplace_back();
      for (std::size_t i = 0; i < members.size(); ++i)
        if (set >> i & 1) choices.back().push_back({{members[i], atom::mode::schema}, inner(scope)});
    }
  }
  to_.forks.push_back(std::move(choices));
  return {};
}

result<void> schema_reader::one_of(std::uint32_t value, std::uint32_t scope) {
  const auto& members = tree_[value].children;
  std::vector<std::vector<expander::pending>> choices;
  choices.reserve(members.size());
  for (const auto each : members) choices.push_back({{{each, atom::mode::schema}, inner(scope)}});
  const auto beside = required_beside(tree_, value);
  std::vector<kind> kinds(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (const auto& each : beside) kinds[i].required.push_back(tree_[each.value].text);
    add_kind(document_, *this, members[i], kinds[i]);
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (std::size_t k = i + 1; k < members.size(); ++k) {
      if (exclude_each_other(kinds[i], kinds[k])) continue;
      auto pair = beside;
      pair.insert(pair.end(), {{members[i], atom::mode::schema}, {members[k], atom::mode::schema}});
      const auto both = with_.may_hold(pair);
      if (!both) return both.error();
      if (!*both) continue;
      choices[i].push_back({{members[k], atom::mode::not_schema}, scope});
      choices[k].push_back({{members[i], atom::mode::not_schema}, scope});
    }
  }
  to_.forks.push_back(std::move(choices));
  return {};
}

}  // namespace skein::grammar
