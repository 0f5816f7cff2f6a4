#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace skein {

/// The first character of a byte string, by the table of well-formed UTF-8 in the Unicode standard (no overlong forms,
/// no surrogates, nothing above U+10FFFF).
struct utf8_head {
  enum class kind {
    character,   ///< a complete character of `bytes` bytes
    incomplete,  ///< the whole string (`bytes`, 1 to 3) is the start of a character
    invalid,     ///< ill formed: `bytes` (1 to 3) is the longest start of a character, or one byte
  };
  kind what;
  std::size_t bytes;  ///< unless a character, replace these by one U+FFFD

  [[nodiscard]] bool is_character() const { return what == kind::character; }
};

/// `text` must not be empty.
[[nodiscard]] utf8_head first_character(std::string_view text);

[[nodiscard]] bool is_utf8(std::string_view text);

/// Number of code points; each ill-formed sequence (utf8_head) counts as one.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

/// The longest prefix of valid UTF-8 that has at most `bytes_max` bytes and ends at a character boundary.
[[nodiscard]] std::string_view utf8_prefix(std::string_view text, std::size_t bytes_max);

/// Appends a character; `code` must be a Unicode scalar value (checked): at most U+10FFFF and not a surrogate.
void append_utf8(char32_t code, std::string& out);

[[nodiscard]] constexpr bool is_scalar_value(char32_t code) {
  return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

}  // namespace skein
