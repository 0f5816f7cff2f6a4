#include "base/utf8.hpp"

#include "base/check.hpp"

namespace skein {
namespace {

struct lead_byte {
  std::size_t length;         // of the whole character; 0: not a lead byte
  unsigned char low = 0x80;   // range of the second byte: no overlong forms, surrogates or values above U+10FFFF;
  unsigned char high = 0xbf;  // later bytes are always 80..bf
};

lead_byte classify(unsigned char lead) {
  if (lead < 0x80) return {1};
  if (lead < 0xc2) return {0};
  if (lead < 0xe0) return {2};
  if (lead == 0xe0) return {3, 0xa0, 0xbf};
  if (lead == 0xed) return {3, 0x80, 0x9f};
  if (lead < 0xf0) return {3};
  if (lead == 0xf0) return {4, 0x90, 0xbf};
  if (lead < 0xf4) return {4};
  if (lead == 0xf4) return {4, 0x80, 0x8f};
  return {0};
}

}  // namespace

utf8_head first_character(std::string_view text) {
  check(!text.empty());
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  lead_byte lead = classify(at(0));
  if (lead.length == 0) return {utf8_head::kind::invalid, 1};
  for (std::size_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {utf8_head::kind::incomplete, i};
    if (at(i) < lead.low || at(i) > lead.high) return {utf8_head::kind::invalid, i};
    lead.low = 0x80;
    lead.high = 0xbf;
  }
  return {utf8_head::kind::character, lead.length};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const utf8_head head = first_character(text);
    if (!head.is_character()) return false;
    text.remove_prefix(head.bytes);
  }
  return true;
}

std::size_t utf8_length(std::string_view text) {
  std::size_t characters = 0;
  for (; !text.empty(); ++characters) text.remove_prefix(first_character(text).bytes);
  return characters;
}

std::string_view utf8_prefix(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  while (bytes_max > 0 && (static_cast<unsigned char>(text[bytes_max]) & 0xc0) == 0x80) --bytes_max;
  return text.substr(0, bytes_max);
}

void append_utf8(char32_t code, std::string& out) {
  check(is_scalar_value(code));
  const auto tail = [&](int shift) { out.push_back(static_cast<char>(0x80 | ((code >> shift) & 0x3f))); };
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out.push_back(static_cast<char>(0xc0 | (code >> 6)));
    tail(0);
  } else if (code < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | (code >> 12)));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xf0 | (code >> 18)));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace skein
