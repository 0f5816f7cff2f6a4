#pragma once
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace skein::supervisor {

/// The value of an environment variable; empty if it is not set.
[[nodiscard]] inline std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

/// A decimal number that fits the type and is not negative.
template <typename Integer>
[[nodiscard]] std::optional<Integer> number(std::string_view text) {
  Integer value = 0;
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (trouble != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace skein::supervisor
