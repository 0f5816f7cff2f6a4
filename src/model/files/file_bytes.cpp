#include "model/files/file_bytes.hpp"

#include <simdjson.h>

namespace skein::model {

error damaged(std::uint64_t offset, std::string_view what) {
  return {error_kind::bad_file, "at byte " + std::to_string(offset) + ": " + std::string(what), {}};
}

std::string printable(std::string_view text) {
  constexpr std::size_t longest = 80;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "'";
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f)
      out += c;
    else
      (out += "\\x") += {digits[byte >> 4], digits[byte & 15]};
  }
  return out += text.size() > longest ? "...'" : "'";
}

bool valid_utf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

}  // namespace skein::model
