#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "grammar/automata/limits.hpp"

namespace skein::grammar {

enum class json_kind : std::uint8_t { null, truth, falsehood, number, string, array, object };

/// A parsed JSON text as a flat list of values; the first is the root. Unlike the JSON of the protocol it keeps the
/// digits of numbers, which bounds need exactly, and knows the parent of each value, which JSON pointers need.
struct json_tree {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct value {
    json_kind kind = json_kind::null;
    std::uint32_t parent = none;
    std::uint32_t place = 0;              ///< index in the parent
    std::string key;                      ///< name in the parent, if that is an object
    std::string text;                     ///< string: decoded; number: as written
    std::vector<std::uint32_t> children;  ///< elements or members, in order
  };
  std::vector<value> values;

  [[nodiscard]] const value& operator[](std::uint32_t at) const { return values[at]; }
  [[nodiscard]] bool is(std::uint32_t at, json_kind kind) const { return values[at].kind == kind; }
  [[nodiscard]] bool is_boolean(std::uint32_t at) const {
    return is(at, json_kind::truth) || is(at, json_kind::falsehood);
  }
  /// The member of an object; none if it has no such member or is not an object.
  [[nodiscard]] std::uint32_t member(std::uint32_t object, std::string_view name) const;
  /// The member of an object with that name, or the element of an array with that index.
  [[nodiscard]] std::uint32_t child(std::uint32_t of, std::string_view name) const;
  /// The JSON pointer of a value; "" for the root.
  [[nodiscard]] std::string pointer(std::uint32_t at) const;
};

/// Errors: invalid_argument if the text is not JSON in UTF-8, has a duplicate name or a lone surrogate; too_large.
[[nodiscard]] result<json_tree> parse_json_tree(std::string_view text, const limits& of);

}  // namespace skein::grammar
