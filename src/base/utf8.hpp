#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace skein {

/// What a byte string begins with, by the table of well-formed UTF-8 in the Unicode standard (no overlong forms, no
/// surrogates, nothing above U+10FFFF).
struct utf8_head {
  enum class kind {
    character,   ///< a whole character of `bytes` bytes
    incomplete,  ///< all that is there (`bytes`, 1 to 3) could still become a character
    invalid,     ///< `bytes` (1 to 3) can not: the longest start of a character, or else one byte
  };
  kind what;
  std::size_t bytes;  ///< what is no character is to be replaced by one U+FFFD

  [[nodiscard]] bool is_character() const { return what == kind::character; }
};

/// `text` must not be empty.
[[nodiscard]] utf8_head first_character(std::string_view text);

[[nodiscard]] bool is_utf8(std::string_view text);

/// Characters (code points) of a text; a part that is no UTF-8 counts as one.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

/// The longest start of a valid text that has at most `bytes_max` bytes and ends between characters.
[[nodiscard]] std::string_view utf8_prefix(std::string_view text, std::size_t bytes_max);

/// Appends the character; `code` must be a Unicode scalar value (checked): at most U+10FFFF and no surrogate.
void append_utf8(char32_t code, std::string& out);

[[nodiscard]] constexpr bool is_scalar_value(char32_t code) {
  return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

}  // namespace skein
