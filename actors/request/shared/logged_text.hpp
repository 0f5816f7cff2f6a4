#pragma once
#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace skein::request {

/// A client's text, shortened for a log line: clients choose its length and frequency.
[[nodiscard]] inline std::string logged_text(std::string_view text) {
  constexpr std::size_t bytes_max = 256;
  const std::string_view begin = utf8_prefix(text, bytes_max);
  return std::string(begin) + (begin.size() < text.size() ? "..." : "");
}

}  // namespace skein::request
