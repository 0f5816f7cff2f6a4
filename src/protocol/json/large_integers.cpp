#include "protocol/json/large_integers.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>

namespace skein::protocol {
namespace {

/// True for an integer that json_document refuses.
bool is_large(std::string_view number) {
  const auto digits = number.substr(number.starts_with('-') ? 1 : 0);
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) return false;
  const auto fits = [&](auto value) {
    return std::from_chars(number.data(), number.data() + number.size(), value).ec == std::errc();
  };
  return !fits(std::int64_t{}) && !fits(std::uint64_t{});
}

/// The same text with an exponent after integers of more digits.
std::string with_exponents(std::string_view text) {
  std::string made;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
      ++at;
    } else {
      constexpr std::string_view number = "+-.0123456789Ee";
      at = std::min(text.find_first_not_of(number, at), text.size());
      at += at == begin ? 1 : 0;
    }
    const auto part = text.substr(begin, at - begin);
    made += part;
    if (is_large(part)) made += "e0";
  }
  return made;
}

}  // namespace

result<json_document> parse_with_large_integers(std::string_view text) {
  auto made = json_document::parse(text, written_json);
  return made ? std::move(made) : json_document::parse(with_exponents(text), written_json);
}

}  // namespace skein::protocol
