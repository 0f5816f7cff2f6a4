#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace skein::protocol {

/// The English name of a language that a client names by its code ("zh-CN"); what is no code that is known stays as it
/// is, since it may be a name.
[[nodiscard]] std::string language_name(std::string_view code);

/// The same, or nothing where neither a code nor a name is known. Names may have more words beside that of a language
/// ("Simplified Chinese", "Portuguese (Brazil)").
[[nodiscard]] std::optional<std::string> known_language(std::string_view named);

/// The code of the language that a text is probably in, by its script alone: kana ja, hangul ko, Han zh-CN, Cyrillic
/// ru, Arabic ar, and all else en.
[[nodiscard]] std::string_view guess_language(std::string_view text);

}  // namespace skein::protocol
