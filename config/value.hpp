#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace skein::config {

/// A setting's value, whatever its key.
using value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>>;

/// "a boolean", "an integer", "a number", "a text", "a list of texts": the type of a value, for messages.
[[nodiscard]] std::string_view type_name(const value& v);

/// Reads a value as flags and environment variables write it, of the same type as `like`: true/false/1/0, numbers in
/// decimal, texts as they are, lists with commas between the entries. Nothing when the text is not of that type.
[[nodiscard]] std::optional<value> parse_value(std::string_view text, const value& like);

/// The value as TOML writes it.
[[nodiscard]] std::string to_toml(const value& v);
[[nodiscard]] std::string quoted_text(std::string_view text);

}  // namespace skein::config
