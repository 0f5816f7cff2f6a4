#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/requests/object_reader.hpp"

namespace skein::protocol {

inline constexpr std::size_t tool_name_bytes_max = 64;

/// A function that an answer may call.
struct tool {
  std::string name;  ///< of a namespace: see qualified_name
  std::string description;
  std::optional<json_value> parameters;
  std::string field;  ///< path of the parameters
  bool strict = false;
};

/// The tools of a request.
struct tool_list {
  std::vector<tool> functions;
  std::string other;  ///< path of the first tool of another type; empty: there is none
  std::string notes;  ///< says for each of these that it is left out; at most metadata_value_bytes_max
};

/// The name under which the model calls a function: "name", or "namespace/name". Names themselves have no slash.
[[nodiscard]] std::string qualified_name(std::string_view space, std::string_view name);

/// The parts of such a name; `space` is empty if it has none.
struct name_parts {
  std::string_view space, name;
};
[[nodiscard]] name_parts parts_of(std::string_view qualified);

/// The qualified name of an object with the members `name` and, if the function is of a namespace, `namespace`.
[[nodiscard]] std::string name_in(const object_reader& object);

/// Reads `tools` of the chat API, and with `namespaces` those of the Responses API, at most `functions_max` functions.
/// Reports errors to the body's fault.
[[nodiscard]] tool_list read_tool_list(const object_reader& body, bool namespaces, std::size_t functions_max);

/// The qualified names in a list of tools that was read before.
[[nodiscard]] std::vector<std::string> names_in(json_value tools);

}  // namespace skein::protocol
