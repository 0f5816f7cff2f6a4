// UTF-8 by the table of the Unicode standard: what a text begins with, and where it may be cut.
#include "base/utf8.hpp"

#include <boost/test/unit_test.hpp>

using namespace skein;

namespace {

using kind = utf8_head::kind;

}  // namespace

BOOST_AUTO_TEST_CASE(every_character_is_whole_and_its_parts_are_incomplete) {
  for (char32_t code = 0; code <= 0x10ffff; ++code) {
    if (!is_scalar_value(code)) continue;
    std::string character;
    append_utf8(code, character);
    const utf8_head whole = first_character(character + '\x80');
    BOOST_REQUIRE(whole.what == kind::character && whole.bytes == character.size());
    for (std::size_t bytes = 1; bytes < character.size(); ++bytes) {
      const utf8_head part = first_character(character.substr(0, bytes));
      BOOST_REQUIRE(part.what == kind::incomplete && part.bytes == bytes);
      const utf8_head broken = first_character(character.substr(0, bytes) + 'x');
      BOOST_REQUIRE(broken.what == kind::invalid && broken.bytes == bytes);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_can_not_be_a_character_is_invalid) {
  for (const char* text : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                           "\xf4\x90\x80\x80", "\xf5", "\xff"}) {
    const utf8_head head = first_character(text);
    BOOST_TEST((head.what == kind::invalid));
    BOOST_TEST(head.bytes == 1u);
    BOOST_TEST(!is_utf8(text));
  }
}

BOOST_AUTO_TEST_CASE(a_text_is_its_characters) {
  BOOST_TEST(is_utf8(""));
  BOOST_TEST(is_utf8("aé你😀"));
  BOOST_TEST(!is_utf8("aé\xe4\xbd"));
  BOOST_TEST(utf8_length("aé你😀") == 4u);
  BOOST_TEST(utf8_length("\xff\xfe") == 2u);
  BOOST_TEST(utf8_length("a\xe4\xbd") == 2u);
}

BOOST_AUTO_TEST_CASE(a_prefix_ends_between_characters) {
  BOOST_TEST(utf8_prefix("aé你", 2) == "a");
  BOOST_TEST(utf8_prefix("aé你", 3) == "aé");
  BOOST_TEST(utf8_prefix("aé你", 100) == "aé你");
}
