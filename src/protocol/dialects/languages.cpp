#include "protocol/dialects/languages.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace skein::protocol {
namespace {

using entry = std::pair<std::string_view, std::string_view>;

/// ISO 639-1, and longer codes that are in common use.
constexpr std::array<entry, 168> names{{
    {"aa", "Afar"},      {"ab", "Abkhazian"},   {"ae", "Avestan"},    {"af", "Afrikaans"},     {"ak", "Akan"},
    {"am", "Amharic"},   {"an", "Aragonese"},   {"ar", "Arabic"},     {"as", "Assamese"},      {"av", "Avaric"},
    {"ay", "Aymara"},    {"az", "Azerbaijani"}, {"ba", "Bashkir"},    {"be", "Belarusian"},    {"bg", "Bulgarian"},
    {"bi", "Bislama"},   {"bm", "Bambara"},     {"bn", "Bengali"},    {"bo", "Tibetan"},       {"br", "Breton"},
    {"bs", "Bosnian"},   {"ca", "Catalan"},     {"ce", "Chechen"},    {"ch", "Chamorro"},      {"co", "Corsican"},
    {"cr", "Cree"},      {"cs", "Czech"},       {"cv", "Chuvash"},    {"cy", "Welsh"},         {"da", "Danish"},
    {"de", "German"},    {"dv", "Divehi"},      {"dz", "Dzongkha"},   {"ee", "Ewe"},           {"el", "Greek"},
    {"en", "English"},   {"eo", "Esperanto"},   {"es", "Spanish"},    {"et", "Estonian"},      {"eu", "Basque"},
    {"fa", "Persian"},   {"ff", "Fulah"},       {"fi", "Finnish"},    {"fil", "Filipino"},     {"fj", "Fijian"},
    {"fo", "Faroese"},   {"fr", "French"},      {"fy", "Frisian"},    {"ga", "Irish"},         {"gd", "Gaelic"},
    {"gl", "Galician"},  {"gn", "Guarani"},     {"gu", "Gujarati"},   {"gv", "Manx"},          {"ha", "Hausa"},
    {"haw", "Hawaiian"}, {"he", "Hebrew"},      {"hi", "Hindi"},      {"hmn", "Hmong"},        {"hr", "Croatian"},
    {"ht", "Haitian"},   {"hu", "Hungarian"},   {"hy", "Armenian"},   {"ia", "Interlingua"},   {"id", "Indonesian"},
    {"ig", "Igbo"},      {"is", "Icelandic"},   {"it", "Italian"},    {"iu", "Inuktitut"},     {"ja", "Japanese"},
    {"jv", "Javanese"},  {"ka", "Georgian"},    {"kk", "Kazakh"},     {"kl", "Greenlandic"},   {"km", "Khmer"},
    {"kn", "Kannada"},   {"ko", "Korean"},      {"ks", "Kashmiri"},   {"ku", "Kurdish"},       {"kv", "Komi"},
    {"kw", "Cornish"},   {"ky", "Kyrgyz"},      {"la", "Latin"},      {"lb", "Luxembourgish"}, {"lg", "Ganda"},
    {"ln", "Lingala"},   {"lo", "Lao"},         {"lt", "Lithuanian"}, {"lv", "Latvian"},       {"mg", "Malagasy"},
    {"mi", "Maori"},     {"mk", "Macedonian"},  {"ml", "Malayalam"},  {"mn", "Mongolian"},     {"mr", "Marathi"},
    {"ms", "Malay"},     {"mt", "Maltese"},     {"my", "Burmese"},    {"nb", "Bokmal"},        {"ne", "Nepali"},
    {"nl", "Dutch"},     {"nn", "Nynorsk"},     {"no", "Norwegian"},  {"nv", "Navajo"},        {"ny", "Chichewa"},
    {"oc", "Occitan"},   {"om", "Oromo"},       {"or", "Odia"},       {"os", "Ossetian"},      {"pa", "Punjabi"},
    {"pi", "Pali"},      {"pl", "Polish"},      {"ps", "Pashto"},     {"pt", "Portuguese"},    {"qu", "Quechua"},
    {"rm", "Romansh"},   {"rn", "Rundi"},       {"ro", "Romanian"},   {"ru", "Russian"},       {"rw", "Kinyarwanda"},
    {"sa", "Sanskrit"},  {"sc", "Sardinian"},   {"sd", "Sindhi"},     {"se", "Sami"},          {"sg", "Sango"},
    {"si", "Sinhala"},   {"sk", "Slovak"},      {"sl", "Slovenian"},  {"sm", "Samoan"},        {"sn", "Shona"},
    {"so", "Somali"},    {"sq", "Albanian"},    {"sr", "Serbian"},    {"ss", "Swati"},         {"st", "Sotho"},
    {"su", "Sundanese"}, {"sv", "Swedish"},     {"sw", "Swahili"},    {"ta", "Tamil"},         {"te", "Telugu"},
    {"tg", "Tajik"},     {"th", "Thai"},        {"ti", "Tigrinya"},   {"tk", "Turkmen"},       {"tl", "Tagalog"},
    {"tn", "Tswana"},    {"to", "Tongan"},      {"tr", "Turkish"},    {"ts", "Tsonga"},        {"tt", "Tatar"},
    {"tw", "Twi"},       {"ty", "Tahitian"},    {"ug", "Uyghur"},     {"uk", "Ukrainian"},     {"ur", "Urdu"},
    {"uz", "Uzbek"},     {"ve", "Venda"},       {"vi", "Vietnamese"}, {"vo", "Volapuk"},       {"wa", "Walloon"},
    {"wo", "Wolof"},     {"xh", "Xhosa"},       {"yi", "Yiddish"},    {"yo", "Yoruba"},        {"yue", "Cantonese"},
    {"za", "Zhuang"},    {"zh", "Chinese"},     {"zu", "Zulu"},
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

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c; });
  return small;
}

bool within(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

}  // namespace

std::string language_name(std::string_view code) {
  const std::string small = in_small_letters(code.substr(0, code.find_first_of("-_")));
  const auto found = std::ranges::find(names, std::string_view(small), &entry::first);
  return std::string(found == names.end() ? code : found->second);
}

std::optional<std::string> known_language(std::string_view named) {
  std::string name = language_name(named);
  if (name != named) return name;
  std::string_view rest = named;
  while (!rest.empty()) {
    const std::size_t size = std::min(rest.find_first_of(" ()-_,"), rest.size());
    const std::string word = in_small_letters(rest.substr(0, size));
    if (std::ranges::any_of(names, [&](const entry& e) { return in_small_letters(e.second) == word; })) return name;
    rest.remove_prefix(std::min(size + 1, rest.size()));
  }
  return std::nullopt;
}

std::string_view guess_language(std::string_view text) {
  std::uint32_t han = 0, cyrillic = 0, arabic = 0, hangul = 0, other = 0;
  while (!text.empty()) {
    const char32_t c = next_character(text);
    if (within(c, 0x3040, 0x30ff)) return "ja";  // no other language uses kana
    han += within(c, 0x3400, 0x9fff) || within(c, 0xf900, 0xfaff) || within(c, 0x20000, 0x3ffff);
    hangul += within(c, 0xac00, 0xd7a3) || within(c, 0x1100, 0x11ff);
    cyrillic += within(c, 0x400, 0x52f);
    arabic += within(c, 0x600, 0x6ff) || within(c, 0x750, 0x77f);
    other += within(c | 32, 'a', 'z') || within(c, 0xc0, 0x24f);
  }
  // One Han character counts as one word of letters.
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
