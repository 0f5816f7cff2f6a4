#include "model/files/file_bytes.hpp"

#include <simdjson.h>

namespace skein::model {
namespace {

constexpr std::string_view digits = "0123456789abcdef";

}  // namespace

error damaged(std::uint64_t offset, std::string_view what) {
  return {error_kind::bad_file, "at byte " + std::to_string(offset) + ": " + std::string(what), {}};
}

std::string printable(std::string_view text) {
  constexpr std::size_t longest = 80;
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

void append_vocabulary_line(std::size_t id, std::string_view bytes, std::string& out) {
  (out += std::to_string(id)) += " b'";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\'' && c != '\\')
      out += c;
    else
      (out += "\\x") += {digits[byte >> 4], digits[byte & 15]};
  }
  ((out += "' ") += std::to_string(bytes.size())) += '\n';
}

bool valid_utf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

}  // namespace skein::model
