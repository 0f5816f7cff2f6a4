#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace skein::config {

/// Value of a setting of any type.
using value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>>;

/// Type of a value for messages: "a boolean", "an integer", "a number", "a string", "a list of strings".
[[nodiscard]] std::string_view type_name(const value& v);

/// Parses a value of a flag or environment variable, of the same type as `like`: true/false/1/0, decimal numbers,
/// strings as they are, lists with commas between the entries. nullopt if the text is not of that type.
[[nodiscard]] std::optional<value> parse_value(std::string_view text, const value& like);

/// The value as TOML writes it.
[[nodiscard]] std::string to_toml(const value& v);
[[nodiscard]] std::string quoted_text(std::string_view text);

}  // namespace skein::config
