#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skein::request {

/// The parts of a path that a pattern leaves open, decoded; nothing when the path is another. `pattern` is a path whose
/// parts may be "{}", any one part that is not empty, or at its end "{*}", one part or more. `raw_path` is as sent, so
/// that an escaped '/' belongs to its part.
[[nodiscard]] std::optional<std::vector<std::string>> match_path(std::string_view pattern, std::string_view raw_path);

/// The value of a field of a query, decoded ('+' is a space); nothing when it is not there.
[[nodiscard]] std::optional<std::string> query_field(std::string_view query, std::string_view name);

}  // namespace skein::request
