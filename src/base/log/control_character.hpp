#pragma once
#include <optional>
#include <string_view>

/// Characters that a terminal may execute instead of displaying.
namespace skein {

/// The code point of one UTF-8 character if it is a control character: C0, DEL, C1, a line or paragraph separator, or
/// one that changes the direction of the surrounding text. nullopt for all others.
[[nodiscard]] inline std::optional<char32_t> control_character(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(character[i])); };
  if (character.size() == 1 && (byte(0) < 0x20 || byte(0) == 0x7f)) return byte(0);
  char32_t code = 0;
  if (character.size() == 2) code = (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
  if (character.size() == 3) code = (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
  const bool c1 = code >= 0x80 && code < 0xa0;
  const bool turns = code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
                     (code >= 0x2066 && code <= 0x2069);
  const bool separates = code == 0x2028 || code == 0x2029;
  if (c1 || turns || separates) return code;
  return std::nullopt;
}

}  // namespace skein
