#pragma once
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "protocol/json/json.hpp"

namespace skein::protocol {

/// Appends a value with a line for each member and element, indented by two spaces a level. A value that would take
/// more than `bytes_max` is written without lines and indentation: nested lists of numbers can grow 60 times.
void indent_json(std::string& out, json_value value, std::size_t bytes_max = std::numeric_limits<std::size_t>::max());

/// The same for a value that json_stream wrote; its numbers stay as they are.
void indent_json(std::string& out, std::string_view compact, std::size_t bytes_max);

/// The limit for a JSON text of a client.
[[nodiscard]] constexpr std::size_t indented_bytes_max(std::size_t bytes) { return 8 * bytes + 1024; }

}  // namespace skein::protocol
