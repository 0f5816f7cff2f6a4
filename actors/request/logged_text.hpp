#pragma once
#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace skein::request {

/// A text of a client, as far as a line of the log has it: the client decides how long it is, and how often it comes.
[[nodiscard]] inline std::string logged_text(std::string_view text) {
  constexpr std::size_t bytes_max = 256;
  const std::string_view begin = utf8_prefix(text, bytes_max);
  return std::string(begin) + (begin.size() < text.size() ? "..." : "");
}

}  // namespace skein::request
