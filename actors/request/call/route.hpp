#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skein::request {

/// The parts of a path that match the wildcards of `pattern`, decoded; nothing if the path does not match. Wildcards:
/// "{}" matches one part that is not empty, "{*}" at the end matches one part or more. `raw_path` is as sent, so that
/// an escaped '/' does not split a part.
[[nodiscard]] std::optional<std::vector<std::string>> match_path(std::string_view pattern, std::string_view raw_path);

/// The value of a query field, decoded ('+' is a space); nothing if it is missing.
[[nodiscard]] std::optional<std::string> query_field(std::string_view query, std::string_view name);

}  // namespace skein::request
