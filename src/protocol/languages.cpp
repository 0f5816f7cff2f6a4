#include "protocol/languages.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace skein::protocol {
namespace {

using entry = std::pair<std::string_view, std::string_view>;

constexpr std::array<entry, 40> names{{
    {"ar", "Arabic"},     {"bg", "Bulgarian"},  {"bn", "Bengali"},   {"cs", "Czech"},     {"da", "Danish"},
    {"de", "German"},     {"el", "Greek"},      {"en", "English"},   {"es", "Spanish"},   {"et", "Estonian"},
    {"fa", "Persian"},    {"fi", "Finnish"},    {"fr", "French"},    {"he", "Hebrew"},    {"hi", "Hindi"},
    {"hr", "Croatian"},   {"hu", "Hungarian"},  {"id", "Indonesian"}, {"it", "Italian"},  {"ja", "Japanese"},
    {"ko", "Korean"},     {"lt", "Lithuanian"}, {"lv", "Latvian"},   {"ms", "Malay"},     {"nl", "Dutch"},
    {"no", "Norwegian"},  {"pl", "Polish"},     {"pt", "Portuguese"}, {"ro", "Romanian"}, {"ru", "Russian"},
    {"sk", "Slovak"},     {"sl", "Slovenian"},  {"sv", "Swedish"},   {"th", "Thai"},      {"tr", "Turkish"},
    {"uk", "Ukrainian"},  {"ur", "Urdu"},       {"vi", "Vietnamese"}, {"yue", "Cantonese"}, {"zh", "Chinese"},
}};

char32_t next_character(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  char32_t character = size == 1 ? first : first & (0xffu >> (size + 1));
  for (std::size_t i = 1; i < size && i < text.size(); ++i)
    character = character << 6 | (static_cast<unsigned char>(text[i]) & 0x3fu);
  text.remove_prefix(std::min(size, text.size()));
  return character;
}

bool within(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

}  // namespace

std::string language_name(std::string_view code) {
  std::string small(code.substr(0, code.find_first_of("-_")));
  std::ranges::transform(small, small.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c; });
  const auto found = std::ranges::find(names, std::string_view(small), &entry::first);
  return std::string(found == names.end() ? code : found->second);
}

std::string_view guess_language(std::string_view text) {
  std::uint32_t han = 0, cyrillic = 0, arabic = 0, hangul = 0, other = 0;
  while (!text.empty()) {
    const char32_t c = next_character(text);
    if (within(c, 0x3040, 0x30ff)) return "ja";  // kana stand in no other language
    han += within(c, 0x3400, 0x9fff) || within(c, 0xf900, 0xfaff) || within(c, 0x20000, 0x3ffff);
    hangul += within(c, 0xac00, 0xd7a3) || within(c, 0x1100, 0x11ff);
    cyrillic += within(c, 0x400, 0x52f);
    arabic += within(c, 0x600, 0x6ff) || within(c, 0x750, 0x77f);
    other += within(c | 32, 'a', 'z') || within(c, 0xc0, 0x24f);
  }
  // A sign of Han says as much as a word of letters.
  constexpr std::uint32_t letters_a_word = 4;
  const std::array<std::pair<std::uint32_t, std::string_view>, 5> seen{{
      {other, "en"},
      {han * letters_a_word, "zh-CN"},
      {hangul * letters_a_word, "ko"},
      {cyrillic, "ru"},
      {arabic, "ar"},
  }};
  return std::ranges::max_element(seen, {}, &std::pair<std::uint32_t, std::string_view>::first)->second;
}

}  // namespace skein::protocol
