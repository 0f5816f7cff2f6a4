#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace skein::protocol {

/// The English name of the language with this code ("zh-CN"). Unknown codes are returned unchanged, because they may be
/// names.
[[nodiscard]] std::string language_name(std::string_view code);

/// The same, or nullopt if neither code nor name is known. Names may have additional words ("Simplified Chinese",
/// "Portuguese (Brazil)").
[[nodiscard]] std::optional<std::string> known_language(std::string_view named);

/// Guesses the language of a text from its script: kana ja, hangul ko, Han zh-CN, Cyrillic ru, Arabic ar, all others
/// en. Returns the code.
[[nodiscard]] std::string_view guess_language(std::string_view text);

}  // namespace skein::protocol
