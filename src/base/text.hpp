#pragma once
#include <string_view>

namespace skein {

inline constexpr std::string_view blank = " \t\r\n";

/// The text without leading and trailing blanks.
[[nodiscard]] inline std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

}  // namespace skein
