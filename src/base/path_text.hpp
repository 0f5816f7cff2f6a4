#pragma once
#include <algorithm>
#include <string_view>

#include "base/utf8.hpp"

/// Checks of a URL's path after percent-decoding.
namespace skein {

/// UTF-8 without control characters.
[[nodiscard]] inline bool is_printable_utf8(std::string_view text) {
  return is_utf8(text) && std::ranges::none_of(text, [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; });
}

/// Whether a segment of the path is "." or "..", which clients and proxies resolve. `path` must begin with a slash.
[[nodiscard]] inline bool has_dot_segment(std::string_view path) {
  while (!path.empty()) {
    path.remove_prefix(1);  // the '/'
    const std::string_view segment = path.substr(0, path.find('/'));
    if (segment == "." || segment == "..") return true;
    path.remove_prefix(segment.size());
  }
  return false;
}

}  // namespace skein
