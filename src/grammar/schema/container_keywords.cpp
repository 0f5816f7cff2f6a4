// The keywords of objects and arrays.
#include <algorithm>

#include "grammar/schema/schema_reader.hpp"

namespace skein::grammar {
namespace {

constexpr auto missing = json_tree::none;

/// The list of `required` of a schema that says nothing else about an object; otherwise `missing`.
std::uint32_t only_required(const json_tree& tree, std::uint32_t schema) {
  const auto is_other = [&](std::uint32_t each) {
    const auto& key = tree[each].key;
    if (key == "type") return !tree.is(each, json_kind::string) || tree[each].text != "object";
    return key != "required" && (is_assertion(key) || key == "$id");
  };
  if (!tree.is(schema, json_kind::object) || std::ranges::any_of(tree[schema].children, is_other)) return missing;
  const auto names = tree.member(schema, "required");
  return names != missing && tree.is(names, json_kind::array) ? names : missing;
}

}  // namespace

result<bool> schema_reader::object_keyword(const std::string& key, std::uint32_t value, std::uint32_t scope) {
  auto& objects = to_.made.objects;
  if (key == "required") {
    if (tree_.is_boolean(value)) return not_supported(value, "required as a boolean, as in draft 3,");
    if (const auto ok = expect_strings(value); !ok) return ok.error();
    for (const auto name : tree_[value].children) objects.required.push_back(tree_[name].text);
    return true;
  }
  if (key == "propertyNames") {
    objects.names.push_back({value, atom::mode::schema});
    return true;
  }
  if (key == "dependentRequired" || key == "dependentSchemas" || key == "dependencies") {
    if (const auto done = dependencies(value, scope); !done) return done.error();
    return true;
  }
  return false;
}

result<void> schema_reader::dependencies(std::uint32_t value, std::uint32_t scope) {
  if (const auto ok = expect(value, json_kind::object, "an object"); !ok) return ok;
  for (const auto each : tree_[value].children) {
    const auto required = only_required(tree_, each);
    const bool is_list = tree_.is(each, json_kind::array) && tree_[value].key != "dependentSchemas";
    if (is_list || required != missing) {
      const auto names = is_list ? each : required;
      if (const auto ok = expect_strings(names); !ok) return ok;
      for (const auto name : tree_[names].children)
        to_.made.objects.dependent.push_back({tree_[each].key, tree_[name].text, each, name});
    } else if (tree_.is(each, json_kind::string) && document_.rules() == dialect::draft3) {
      to_.made.objects.dependent.push_back({tree_[each].key, tree_[each].text, each, missing});
    } else {
      to_.forks.push_back({{{{each, atom::mode::absent}, scope}},
                           {{{each, atom::mode::object_present}, scope}, {{each, atom::mode::schema}, inner(scope)}}});
    }
  }
  return {};
}

result<void> schema_reader::object_layer(std::uint32_t schema, std::uint32_t scope) {
  const auto names = tree_.member(schema, "properties"), patterns = tree_.member(schema, "patternProperties"),
             rest = tree_.member(schema, "additionalProperties");
  if (names == missing && patterns == missing && rest == missing) return {};
  object_rules::layer layer;
  layer.scope = scope;
  if (names != missing) {
    if (const auto ok = expect(names, json_kind::object, "an object"); !ok) return ok;
    for (const auto each : tree_[names].children) {
      layer.names.emplace_back(tree_[each].key, atom{each, atom::mode::schema});
      if (is_required_by_draft3(each)) to_.made.objects.required.push_back(tree_[each].key);
    }
  }
  if (patterns != missing) {
    if (const auto ok = expect(patterns, json_kind::object, "an object"); !ok) return ok;
    for (const auto each : tree_[patterns].children) {
      const auto index = with_.languages_.pattern(tree_[each].key);
      if (!index)
        return error{index.error().kind, tree_.pointer(each) + ": " + index.error().message, "patternProperties"};
      layer.patterns.emplace_back(*index, atom{each, atom::mode::schema});
    }
  }
  if (rest != missing) layer.rest = atom{rest, atom::mode::schema};
  std::ranges::sort(layer.names, {}, [](const auto& each) { return each.first; });
  to_.made.objects.layers.push_back(std::move(layer));
  return {};
}

result<void> schema_reader::array_layer(std::uint32_t schema, std::uint32_t scope) {
  auto prefix = tree_.member(schema, "prefixItems"), items = tree_.member(schema, "items");
  if (prefix != missing && is_ignored(prefix)) prefix = missing;
  if (items != missing && tree_.is(items, json_kind::array)) {
    if (document_.rules() == dialect::draft2020)
      return not_supported(items, "a list of schemas, which was renamed to prefixItems,");
    prefix = items;
    items = tree_.member(schema, "additionalItems");
  }
  if (prefix == missing && items == missing) return {};
  array_rules::layer layer;
  layer.scope = scope;
  if (prefix != missing) {
    if (const auto ok = expect(prefix, json_kind::array, "a list of schemas"); !ok) return ok;
    if (tree_[prefix].children.size() > with_.work_.of().names_max)
      return too_much("items in one prefixItems", with_.work_.of().names_max);
    for (const auto each : tree_[prefix].children) layer.prefix.push_back(atom{each, atom::mode::schema});
  }
  if (items != missing) {
    layer.rest = atom{items, atom::mode::schema};
    layer.evaluates_all = true;
  }
  to_.made.arrays.layers.push_back(std::move(layer));
  return {};
}

result<void> schema_reader::contains(std::uint32_t value, std::uint32_t scope) {
  array_rules::contained made{{value, atom::mode::schema}};
  made.scope = scope;
  const auto least = sibling(value, "minContains"), most = sibling(value, "maxContains");
  if (document_.is_at_least(dialect::draft2019)) {
    if (least != missing) {
      const auto count = this->count(least);
      if (!count) return count.error();
      made.least = *count;
    }
    if (most != missing) {
      const auto count = this->count(most);
      if (!count) return count.error();
      made.most = *count;
    }
  }
  if (made.least > made.most) {
    to_.made.types &= static_cast<std::uint8_t>(~array_type);
    return {};
  }
  if (made.least > 0 || made.most != ~std::uint64_t{0} || is_tracked(scope)) to_.made.arrays.contains.push_back(made);
  return {};
}

}  // namespace skein::grammar
