// The negation of a schema is a choice: one of its keywords fails. A keyword for one type fails only for values of that
// type, so each choice also fixes the type.
#include <algorithm>

#include "grammar/schema/schema_reader.hpp"

namespace skein::grammar {
namespace {

constexpr auto no_member = json_tree::none;

}  // namespace

void negation_reader::choose(const std::vector<std::vector<atom>>& choices) {
  std::vector<std::vector<expander::pending>> fork;
  for (const auto& choice : choices) {
    fork.emplace_back();
    for (const auto& each : choice) fork.back().push_back({each, no_scope});
  }
  if (fork.empty())
    to_.made.types = 0;
  else
    to_.forks.push_back(std::move(fork));
}

void negation_reader::only(std::uint8_t types) { to_.made.types &= types; }

/// True for subschemas that hold for every value at first sight.
bool negation_reader::never_fails(std::uint32_t value) const {
  return tree_.is(value, json_kind::truth) || (tree_.is(value, json_kind::object) && tree_[value].children.empty());
}

result<void> negation_reader::negate_schema(std::uint32_t schema) {
  if (tree_.is(schema, json_kind::falsehood)) return {};
  if (never_fails(schema)) return only(0), result<void>();
  if (!tree_.is(schema, json_kind::object)) return malformed(schema, "a schema");
  const auto reference = tree_.member(schema, "$ref");
  if (reference != no_member && document_.ref_replaces()) return negate_keyword(reference);
  std::vector<std::vector<atom>> choices;
  const auto names = tree_.member(schema, "required"), values = tree_.member(schema, "properties");
  const bool together = names != no_member && !is_ignored(names) && expect_strings(names) && values != no_member &&
                        tree_.is(values, json_kind::object);
  if (together) {
    // That a member must be there and must satisfy a schema is one condition, not two.
    std::vector<std::string_view> required;
    for (const auto name : tree_[names].children) {
      required.push_back(tree_[name].text);
      if (tree_.member(values, tree_[name].text) == no_member) choices.push_back({{name, atom::mode::object_absent}});
    }
    for (const auto each : tree_[values].children)
      if (std::ranges::find(required, tree_[each].key) != required.end())
        choices.push_back({{each, atom::mode::absent_or_fails}});
    add_failing_members(values, choices);
  }
  for (const auto member : tree_[schema].children)
    if (together && (member == names || member == values))
      continue;
    else if (is_assertion(tree_[member].key) && !is_ignored(member))
      choices.push_back({{member, atom::mode::not_keyword}});
  choose(choices);
  return {};
}

result<void> negation_reader::negate_keyword(std::uint32_t value) {
  const auto& key = tree_[value].key;
  auto& made = to_.made;
  if (key == "type") {
    const auto types = this->types(value);
    if (!types) return types.error();
    auto left = static_cast<std::uint8_t>(every_type & ~types->types);
    if (types->integer) {
      left |= number_type;
      made.numbers.not_integer = true;
    }
    only(left);
    return {};
  }
  if (key == "const") return require({value, atom::mode::not_equal}), result<void>();
  if (key == "enum") {
    if (const auto ok = expect(value, json_kind::array, "a list of values"); !ok) return ok;
    for (const auto each : tree_[value].children) require({each, atom::mode::not_equal});
    return {};
  }
  if (key == "pattern" || key == "format") {
    if (const auto ok = expect(value, json_kind::string, "a string"); !ok) return ok;
    only(string_type);
    if (key == "format") return made.formats.push_back({value, true}), result<void>();
    const auto index = with_.languages_.pattern(tree_[value].text);
    if (!index) return error{index.error().kind, tree_.pointer(value) + ": " + index.error().message, key};
    made.strings.patterns.push_back({*index, true});
    return {};
  }
  for (const auto& part : {negate_number(key, value), negate_size(key, value), negate_combination(key, value),
                           negate_object(key, value), negate_array(key, value)}) {
    if (!part) return part.error();
    if (*part) return {};
  }
  return not_supported(value, "to negate " + key);
}

result<bool> negation_reader::negate_number(const std::string& key, std::uint32_t value) {
  auto& numbers = to_.made.numbers;
  const bool low = key == "minimum" || key == "exclusiveMinimum", high = key == "maximum" || key == "exclusiveMaximum";
  const bool multiple = key == "multipleOf" || key == "divisibleBy";
  if (!low && !high && !multiple) return false;
  if (tree_.is_boolean(value)) return only(0), true;
  only(number_type);
  auto number = this->number(value, with_.work_.of());
  if (!number) return number.error();
  if (multiple) {
    if (number->negative || number->is_zero()) return malformed(value, "a number above 0");
    numbers.not_multiples.push_back(std::move(*number));
    return true;
  }
  const bool exclusive =
      key.starts_with("exclusive") || is_exclusive_by_flag(value, low ? "exclusiveMinimum" : "exclusiveMaximum");
  if (low)
    numbers.lower_most({std::move(*number), !exclusive});
  else
    numbers.raise_least({std::move(*number), !exclusive});
  return true;
}

result<bool> negation_reader::negate_size(const std::string& key, std::uint32_t value) {
  auto& made = to_.made;
  const struct {
    const char* name;
    std::uint8_t type;
    std::uint64_t* least;
    std::uint64_t* most;
  } sizes[] = {{"Length", string_type, &made.strings.least, &made.strings.most},
               {"Items", array_type, &made.arrays.least, &made.arrays.most},
               {"Properties", object_type, &made.objects.least, &made.objects.most}};
  for (const auto& [name, type, least, most] : sizes) {
    const bool low = key == std::string("min") + name;
    if (!low && key != std::string("max") + name) continue;
    const auto count = this->count(value);
    if (!count) return count.error();
    only(low && *count == 0 ? 0 : type);
    if (low && *count > 0)
      *most = std::min(*most, *count - 1);
    else
      *least = std::max(*least, *count + 1);
    return true;
  }
  return false;
}

result<bool> negation_reader::negate_combination(const std::string& key, std::uint32_t value) {
  const auto& members = tree_[value].children;
  if (is_reference(key)) {
    const auto target = this->target(value);
    if (!target) return target.error();
    // A circle of references that leads back here without another keyword holds for every value.
    const atom made{with_.referred(*target), atom::mode::not_schema};
    if (to_.applied.contains(made)) return only(0), true;
    require(made);
    return true;
  }
  if (key == "not") return require({value, atom::mode::schema}), true;
  if (key == "if") {
    const auto then_part = sibling(value, "then"), else_part = sibling(value, "else");
    std::vector<std::vector<atom>> choices;
    if (then_part != no_member) choices.push_back({{value, atom::mode::schema}, {then_part, atom::mode::not_schema}});
    if (else_part != no_member)
      choices.push_back({{value, atom::mode::not_schema}, {else_part, atom::mode::not_schema}});
    choose(choices);
    return true;
  }
  if (key != "allOf" && key != "anyOf" && key != "oneOf") return false;
  if (const auto ok = expect(value, json_kind::array, "a list of schemas"); !ok) return ok.error();
  std::vector<std::vector<atom>> choices;
  if (key == "allOf")
    for (const auto each : members) choices.push_back({{each, atom::mode::not_schema}});
  if (key != "allOf") choices.emplace_back();
  if (key != "allOf")
    for (const auto each : members) choices.front().push_back({each, atom::mode::not_schema});
  if (key == "oneOf")
    for (std::size_t i = 0; i < members.size(); ++i)
      for (std::size_t k = i + 1; k < members.size(); ++k)
        choices.push_back({{members[i], atom::mode::schema}, {members[k], atom::mode::schema}});
  if (choices.size() > 4096) return not_supported(value, "to negate a oneOf with this many members");
  choose(choices);
  return true;
}

result<bool> negation_reader::negate_object(const std::string& key, std::uint32_t value) {
  std::vector<std::vector<atom>> choices;
  if (key == "required") {
    if (const auto ok = expect_strings(value); !ok) return ok.error();
    for (const auto name : tree_[value].children) choices.push_back({{name, atom::mode::object_absent}});
    choose(choices);
    return true;
  }
  if (key == "properties") {
    if (const auto ok = expect(value, json_kind::object, "an object"); !ok) return ok.error();
    for (const auto each : tree_[value].children)
      if (is_required_by_draft3(each)) choices.push_back({{each, atom::mode::object_absent}});
    add_failing_members(value, choices);
    choose(choices);
    return true;
  }
  if (key == "additionalProperties") {
    if (never_fails(value)) return only(0), true;
    object_rules::witness made;
    const auto names = sibling(value, "properties"), patterns = sibling(value, "patternProperties");
    if (names != no_member)
      for (const auto each : tree_[names].children) made.unlisted.push_back(tree_[each].key);
    if (patterns != no_member)
      for (const auto each : tree_[patterns].children) {
        const auto index = name_pattern(each);
        if (!index) return index.error();
        made.unmatched.push_back(*index);
      }
    if (!tree_.is(value, json_kind::falsehood)) made.value = atom{value, atom::mode::not_schema};
    return add_witness(value, std::move(made));
  }
  if (key == "patternProperties") {
    if (const auto ok = expect(value, json_kind::object, "an object"); !ok) return ok.error();
    for (const auto each : tree_[value].children)
      if (!never_fails(each)) choices.push_back({{each, atom::mode::match_fails}});
    choose(choices);
    return true;
  }
  if (key == "propertyNames") {
    if (never_fails(value)) return only(0), true;
    object_rules::witness made;
    if (!tree_.is(value, json_kind::falsehood)) made.name = atom{value, atom::mode::not_schema};
    return add_witness(value, std::move(made));
  }
  if (key == "dependentRequired") {
    if (const auto ok = expect(value, json_kind::object, "an object"); !ok) return ok.error();
    for (const auto each : tree_[value].children) {
      if (const auto ok = expect_strings(each); !ok) return ok.error();
      for (const auto name : tree_[each].children)
        choices.push_back({{each, atom::mode::object_present}, {name, atom::mode::object_absent}});
    }
    choose(choices);
    return true;
  }
  return false;
}

result<std::uint32_t> negation_reader::name_pattern(std::uint32_t member) {
  const auto index = with_.languages_.pattern(tree_[member].key);
  if (!index)
    return error{index.error().kind, tree_.pointer(member) + ": " + index.error().message, "patternProperties"};
  return *index;
}

/// The members of `properties` that may fail and that are not also among those that `required` beside it names: that
/// they are absent or fail is one condition.
std::vector<std::uint32_t> negation_reader::failing_members(std::uint32_t properties) const {
  const auto required = sibling(properties, "required");
  const bool has_required = required != no_member && !is_ignored(required) && expect_strings(required);
  std::vector<std::uint32_t> made;
  for (const auto each : tree_[properties].children) {
    const auto is_name = [&](auto name) { return tree_[name].text == tree_[each].key; };
    if (!never_fails(each) && !(has_required && std::ranges::any_of(tree_[required].children, is_name)))
      made.push_back(each);
  }
  return made;
}

/// One choice for all of them together, so that there are not too many.
void negation_reader::add_failing_members(std::uint32_t properties, std::vector<std::vector<atom>>& to) const {
  const auto members = failing_members(properties);
  if (members.size() == 1) to.push_back({{members.front(), atom::mode::property_fails}});
  if (members.size() > 1) to.push_back({{properties, atom::mode::member_fails}});
}

result<void> negation_reader::member_fails(std::uint32_t properties) {
  object_rules::witness made;
  for (const auto each : failing_members(properties))
    made.members.emplace_back(tree_[each].key, atom{each, atom::mode::not_schema});
  if (const auto added = add_witness(properties, std::move(made)); !added) return added.error();
  return {};
}

/// A member of patternProperties fails: a name matches it, and the value does not satisfy its schema.
result<void> negation_reader::match_fails(std::uint32_t member) {
  object_rules::witness made;
  const auto index = name_pattern(member);
  if (!index) return index.error();
  made.pattern = *index;
  if (!tree_.is(member, json_kind::falsehood)) made.value = atom{member, atom::mode::not_schema};
  if (const auto added = add_witness(member, std::move(made)); !added) return added.error();
  return {};
}

result<bool> negation_reader::add_witness(std::uint32_t value, object_rules::witness made) {
  auto& all = to_.made.objects.beyond;
  if (all.size() == object_rules::witnesses_max)
    return not_supported(value, "to negate this beside that many other negations of the same object");
  only(object_type);
  all.push_back(std::move(made));
  return true;
}

result<bool> negation_reader::negate_array(const std::string& key, std::uint32_t value) {
  auto& arrays = to_.made.arrays;
  if (key == "uniqueItems" && tree_.is(value, json_kind::falsehood)) return only(0), true;
  if (key == "prefixItems" || (key == "items" && tree_.is(value, json_kind::array))) {
    if (const auto ok = expect(value, json_kind::array, "a list of schemas"); !ok) return ok.error();
    std::vector<std::vector<atom>> choices;
    for (const auto each : tree_[value].children)
      if (!never_fails(each)) choices.push_back({{each, atom::mode::element_fails}});
    choose(choices);
    return true;
  }
  if (key == "items" || key == "additionalItems") {
    if (never_fails(value) || key == "additionalItems") {
      if (never_fails(value)) return only(0), true;
      return false;
    }
    if (const auto prefix = sibling(value, "prefixItems"); prefix != no_member && !is_ignored(prefix)) return false;
    only(array_type);
    arrays.contains.push_back({{value, atom::mode::not_schema}, 1, ~std::uint64_t{0}, no_scope});
    return true;
  }
  if (key == "contains") {
    if (document_.is_at_least(dialect::draft2019) &&
        (sibling(value, "minContains") != no_member || sibling(value, "maxContains") != no_member))
      return false;
    only(array_type);
    array_rules::layer none_matches;
    none_matches.rest = atom{value, atom::mode::not_schema};
    none_matches.scope = no_scope;
    arrays.layers.push_back(std::move(none_matches));
    return true;
  }
  return false;
}

}  // namespace skein::grammar
