#pragma once
#include <string>
#include <string_view>

#include "base/ids.hpp"

namespace skein::test {

/// The line of a World vocabulary file for one token, with every byte as a hexadecimal escape.
[[nodiscard]] inline std::string world_line(token_id id, std::string_view text) {
  std::string line = std::to_string(id) + " b'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    line += {'\\', 'x', "0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
  }
  return line + "' " + std::to_string(text.size()) + "\n";
}

/// Lines for all 256 single bytes, ids 1 to 256 as in the World vocabulary.
[[nodiscard]] inline std::string single_byte_lines() {
  std::string lines;
  for (int byte = 0; byte < 256; ++byte) lines += world_line(byte + 1, std::string(1, static_cast<char>(byte)));
  return lines;
}

}  // namespace skein::test
