#include <algorithm>
#include <array>

#include "grammar/schema/schema_reader.hpp"

namespace skein::grammar {
namespace {

/// Sorted.
constexpr auto assertions = std::to_array<std::string_view>({"$dynamicRef",
                                                             "$recursiveRef",
                                                             "$ref",
                                                             "additionalItems",
                                                             "additionalProperties",
                                                             "allOf",
                                                             "anyOf",
                                                             "const",
                                                             "contains",
                                                             "contentEncoding",
                                                             "contentMediaType",
                                                             "dependencies",
                                                             "dependentRequired",
                                                             "dependentSchemas",
                                                             "disallow",
                                                             "divisibleBy",
                                                             "enum",
                                                             "exclusiveMaximum",
                                                             "exclusiveMinimum",
                                                             "extends",
                                                             "format",
                                                             "if",
                                                             "items",
                                                             "maxItems",
                                                             "maxLength",
                                                             "maxProperties",
                                                             "maximum",
                                                             "minItems",
                                                             "minLength",
                                                             "minProperties",
                                                             "minimum",
                                                             "multipleOf",
                                                             "not",
                                                             "oneOf",
                                                             "pattern",
                                                             "patternProperties",
                                                             "prefixItems",
                                                             "properties",
                                                             "propertyNames",
                                                             "required",
                                                             "type",
                                                             "unevaluatedItems",
                                                             "unevaluatedProperties",
                                                             "uniqueItems"});

struct since {
  const char* keyword;
  dialect first;
};
constexpr since introduced[] = {{"allOf", dialect::draft4},
                                {"anyOf", dialect::draft4},
                                {"oneOf", dialect::draft4},
                                {"not", dialect::draft4},
                                {"multipleOf", dialect::draft4},
                                {"minProperties", dialect::draft4},
                                {"maxProperties", dialect::draft4},
                                {"const", dialect::draft6},
                                {"contains", dialect::draft6},
                                {"propertyNames", dialect::draft6},
                                {"if", dialect::draft7},
                                {"dependentRequired", dialect::draft2019},
                                {"dependentSchemas", dialect::draft2019},
                                {"unevaluatedItems", dialect::draft2019},
                                {"unevaluatedProperties", dialect::draft2019},
                                {"$recursiveRef", dialect::draft2019},
                                {"$dynamicRef", dialect::draft2020},
                                {"prefixItems", dialect::draft2020}};

}  // namespace

bool is_assertion(std::string_view keyword) { return std::ranges::binary_search(assertions, keyword); }

error keyword_values::malformed(std::uint32_t value, const std::string& expected) const {
  return {error_kind::invalid_argument, tree_.pointer(value) + ": must be " + expected, tree_[value].key};
}

error keyword_values::not_supported(std::uint32_t value, const std::string& why) const {
  return {error_kind::unsupported, tree_.pointer(value) + ": " + why + " is not supported", tree_[value].key};
}

result<std::uint64_t> keyword_values::count(std::uint32_t value) const {
  const auto read = tree_.is(value, json_kind::number) ? parse_decimal(tree_[value].text, 400) : std::nullopt;
  if (!read || read->negative || !read->is_integer()) return malformed(value, "a whole number from 0");
  if (read->point > 15) return std::uint64_t{1} << 52;
  std::uint64_t number = 0;
  for (const char c : read->whole()) number = number * 10 + static_cast<std::uint64_t>(c - '0');
  return number;
}

result<decimal> keyword_values::number(std::uint32_t value, const limits& of) const {
  if (!tree_.is(value, json_kind::number)) return malformed(value, "a number");
  auto read = parse_decimal(tree_[value].text, of.number_digits_max);
  if (!read) return malformed(value, "a number with at most " + std::to_string(of.number_digits_max) + " digits");
  return std::move(*read);
}

result<keyword_values::type_list> keyword_values::types(std::uint32_t value) const {
  static constexpr std::pair<std::string_view, std::uint8_t> names[] = {
      {"null", null_type},     {"boolean", true_type | false_type},
      {"number", number_type}, {"integer", number_type},
      {"string", string_type}, {"array", array_type},
      {"object", object_type}};
  type_list read;
  bool all_numbers = false;
  const auto add = [&](std::uint32_t name) {
    for (const auto& [known, bits] : names) {
      if (!tree_.is(name, json_kind::string) || tree_[name].text != known) continue;
      read.types |= bits;
      all_numbers = all_numbers || known == "number";
      read.integer = read.integer || known == "integer";
      return true;
    }
    if (document_.rules() != dialect::draft3 || !tree_.is(name, json_kind::string) || tree_[name].text != "any")
      return false;
    read.types = every_type;
    return all_numbers = true;
  };
  bool known = true;
  if (tree_.is(value, json_kind::array))
    for (const auto name : tree_[value].children) known = add(name) && known;
  else
    known = add(value);
  if (!known) return malformed(value, "a type of JSON or a list of them");
  read.integer = read.integer && !all_numbers;
  return read;
}

bool keyword_values::is_reference(std::string_view keyword) {
  return keyword == "$ref" || keyword == "$dynamicRef" || keyword == "$recursiveRef";
}

result<std::uint32_t> keyword_values::target(std::uint32_t value) const {
  if (const auto ok = expect(value, json_kind::string, "a string"); !ok) return ok.error();
  const auto& key = tree_[value].key;
  if (key == "$recursiveRef") return document_.resolve_recursive(value);
  return key == "$ref" ? document_.resolve(value) : document_.resolve_dynamic(value);
}

result<void> keyword_values::expect(std::uint32_t value, json_kind kind, const char* expected) const {
  if (!tree_.is(value, kind)) return malformed(value, expected);
  return {};
}

result<void> keyword_values::expect_strings(std::uint32_t list) const {
  const bool strings = tree_.is(list, json_kind::array) && std::ranges::all_of(tree_[list].children, [&](auto v) {
                         return tree_.is(v, json_kind::string);
                       });
  if (!strings) return malformed(list, "a list of strings");
  return {};
}

bool keyword_values::is_exclusive_by_flag(std::uint32_t value, const char* flag) const {
  const auto beside = sibling(value, flag);
  return beside != json_tree::none && tree_.is(beside, json_kind::truth);
}

bool keyword_values::is_required_by_draft3(std::uint32_t property) const {
  const auto required = tree_.member(property, "required");
  return document_.rules() == dialect::draft3 && required != json_tree::none && tree_.is(required, json_kind::truth);
}

bool keyword_values::is_alone(std::uint32_t keyword) const {
  if (tree_[keyword].parent != 0) return false;
  return std::ranges::none_of(tree_[0].children, [&](auto each) {
    const auto& key = tree_[each].key;
    return key != "format" && !key.starts_with("content") && is_assertion(key);
  });
}

bool keyword_values::is_ignored(std::uint32_t value) const {
  const auto& key = tree_[value].key;
  for (const auto& [keyword, first] : introduced)
    if (key == keyword) return !document_.is_at_least(first);
  if (key.starts_with("content"))  // draft 7 lets validators assert it, other drafts have it as an annotation
    return document_.rules() != dialect::draft7 && document_.rules() != dialect::unknown;
  if (key == "additionalItems") return document_.rules() == dialect::draft2020;
  const bool is_draft3 = document_.rules() == dialect::draft3;
  if (key == "divisibleBy" || key == "extends" || key == "disallow") return !is_draft3;
  if (key == "required") return is_draft3;  // object_layer reads it
  return false;
}

}  // namespace skein::grammar
