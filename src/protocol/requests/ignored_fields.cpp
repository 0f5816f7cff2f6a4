#include "protocol/requests/ignored_fields.hpp"

#include <algorithm>
#include <cctype>

namespace skein::protocol {
namespace {

constexpr std::size_t names_max = 32, shown_bytes_max = 64;

void append_escaped(std::string& to, std::string_view name) {
  static constexpr char digits[] = "0123456789ABCDEF";
  for (const char c : name.substr(0, shown_bytes_max)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte < 0x80 && (std::isalnum(byte) != 0 || c == '_' || c == '-' || c == '.');
    if (plain)
      to += c;
    else
      (to += '%').append({digits[byte >> 4], digits[byte & 15]});
  }
}

}  // namespace

std::vector<std::string> asked_fields::others_of(json_value object) const {
  std::vector<std::string> others;
  for (const auto [name, value] : object.members())
    if (!names_.contains(name)) others.emplace_back(name);
  return others;
}

std::string ignored_fields_header(std::span<const std::string> names) {
  std::string header;
  for (const auto& name : names.first(std::min(names.size(), names_max))) {
    if (!header.empty()) header += ", ";
    append_escaped(header, name);
  }
  if (names.size() > names_max) header += ", ...";
  return header;
}

}  // namespace skein::protocol
