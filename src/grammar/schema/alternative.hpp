#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/text/number_automaton.hpp"

namespace skein::grammar {

/// A condition on a value: one value of the schema's text, and how it is meant. Ordered, so that a set of atoms names a
/// combination of subschemas.
struct atom {
  enum class mode : std::uint8_t {
    schema,           ///< a subschema holds
    not_schema,       ///< it does not hold
    equal,            ///< the value equals this JSON value
    not_equal,        ///< it does not
    not_keyword,      ///< the keyword with this value, alone, does not hold
    absent,           ///< no object with this name; the name is a string value, or the key of a member
    object_absent,    ///< an object without this name
    object_present,   ///< an object with this name
    property_fails,   ///< an object with this member of `properties`, whose value does not satisfy its schema
    member_fails,     ///< an object with a member of these `properties` that need not be there, whose value fails
    absent_or_fails,  ///< an object without this member of `properties`, or one whose value does not satisfy its schema
    match_fails,      ///< an object with a name of this member of `patternProperties`, whose value does not satisfy it
    element_fails,    ///< an array with this element of `prefixItems`, which does not satisfy its schema
    other_type,       ///< the value has another type than this JSON value
    other_name,       ///< an object with a name that this JSON value does not have
    member_differs,   ///< an object with a member of this name, whose value does not equal this JSON value
    element_differs,  ///< an array with an element at this place, which does not equal this JSON value
    longer,           ///< an array with more elements than this JSON value
    shorter,          ///< an array with fewer elements
    nothing,          ///< never holds
  };
  std::uint32_t value = 0;
  mode how = mode::schema;

  friend auto operator<=>(const atom&, const atom&) = default;
};

/// Sorted, without duplicates.
using atom_set = std::vector<atom>;

enum type_bit : std::uint8_t {
  null_type = 1,
  true_type = 2,
  false_type = 4,
  number_type = 8,
  string_type = 16,
  array_type = 32,
  object_type = 64,
  every_type = 127,
};

struct string_rules {
  std::uint64_t least = 0, most = ~std::uint64_t{0};  ///< code points
  struct pattern {
    std::uint32_t language;  ///< index into the compiler's list
    bool negated;
    friend auto operator<=>(const pattern&, const pattern&) = default;
  };
  std::vector<pattern> patterns;
  std::optional<std::vector<std::string_view>> included;
  std::vector<std::string_view> excluded;
};

struct array_rules {
  std::uint64_t least = 0, most = ~std::uint64_t{0};
  struct layer {
    std::vector<std::optional<atom>> prefix;
    std::optional<atom> rest;
    bool evaluates_all = false;  ///< for unevaluatedItems
    std::uint32_t scope = 0;
  };
  std::vector<layer> layers;
  struct contained {
    atom what;
    std::uint64_t least = 1, most = ~std::uint64_t{0};
    std::uint32_t scope = 0;
  };
  std::vector<contained> contains;
  bool unique = false;
};

struct object_rules {
  std::uint64_t least = 0, most = ~std::uint64_t{0};
  struct layer {
    std::vector<std::pair<std::string_view, std::optional<atom>>> names;
    std::vector<std::pair<std::uint32_t, std::optional<atom>>> patterns;  ///< index into the compiler's list
    std::optional<atom> rest;
    std::uint32_t scope = 0;
  };
  std::vector<layer> layers;
  std::vector<std::string_view> required, forbidden;
  std::vector<atom> names;  ///< propertyNames
  struct dependency {
    std::string_view name, required;
    std::uint32_t name_value, required_value;  ///< for atoms; json_tree::none if they cannot name it
  };
  std::vector<dependency> dependent;
  /// Each: an object has a name for which all of this holds, and whose value satisfies `value`.
  struct witness {
    std::vector<std::string_view> unlisted;  ///< it is none of these
    std::vector<std::uint32_t> unmatched;    ///< it matches none of these patterns
    std::optional<std::uint32_t> pattern;    ///< it matches this one
    std::optional<atom> name;                ///< it satisfies this as a string
    std::optional<atom> value;
    std::vector<std::pair<std::string_view, atom>> members;  ///< if any: it is one of these, with its own `value`
  };
  static constexpr std::size_t witnesses_max = 8;
  std::vector<witness> beyond;
};

/// A conjunction of conditions, sorted by the type of value that they apply to. A combination of subschemas is a list
/// of alternatives: a value is valid if one of them accepts it.
struct alternative {
  std::uint8_t types = every_type;
  number_rules numbers;
  std::optional<std::vector<decimal>> numbers_included;
  string_rules strings;
  array_rules arrays;
  object_rules objects;
  struct unevaluated {
    atom what;
    std::uint32_t scope;
    bool items;
  };
  std::vector<unevaluated> rest;
  struct format {
    std::uint32_t value;
    bool negated;
  };
  std::vector<format> formats;  ///< not judged yet
};

}  // namespace skein::grammar
