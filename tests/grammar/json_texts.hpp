#pragma once
#include <string>
#include <string_view>

namespace skein::test {

/// A JSON text with white space between all tokens.
inline std::string spaced(std::string_view compact) {
  std::string text = "\n";
  bool in_string = false;
  for (std::size_t i = 0; i < compact.size(); ++i) {
    const char c = compact[i];
    if (in_string) {
      text += c;
      if (c == '\\') text += compact[++i];
      if (c == '"') in_string = false;
    } else if (c == '"') {
      text += c;
      in_string = true;
    } else if (c == '{' || c == '[' || c == ',') {
      text += c + std::string("\n    ");
    } else if (c == '}' || c == ']') {
      text += std::string(" \r\n") + c;
    } else if (c == ':') {
      text += " :\t";
    } else {
      text += c;
    }
  }
  return text + "\n";
}

}  // namespace skein::test
