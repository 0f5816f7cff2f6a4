// The UTF-8 assembler against an independent definition: a list of all 1,112,064 characters. At each place the longest
// beginning of any character counts; if it is whole it is kept, if it is not and the text goes on it becomes one
// U+FFFD. Cutting the stream anywhere changes nothing.
#include "tokenizer/detokenizer.hpp"

#include <boost/test/unit_test.hpp>
#include <string>
#include <unordered_set>

#include "base/utf8.hpp"
#include "tests/support/random_cases.hpp"

namespace skein::tokenizer {
namespace {

BOOST_AUTO_TEST_SUITE(detokenizer_test)

const std::string replacement = "\xef\xbf\xbd";

struct all_characters {
  std::unordered_set<std::string> whole;
  std::unordered_set<std::string> beginnings;  // shorter than the character

  all_characters() {
    for (char32_t code = 0; code <= 0x10ffff; ++code) {
      if (!is_scalar_value(code)) continue;
      std::string character;
      append_utf8(code, character);
      for (std::size_t n = 1; n < character.size(); ++n) beginnings.insert(character.substr(0, n));
      whole.insert(std::move(character));
    }
  }
};

struct assembled {
  std::string text;
  std::size_t dropped = 0;
  bool operator==(const assembled&) const = default;
};

std::ostream& operator<<(std::ostream& out, const assembled& a) { return out << a.text << " -" << a.dropped; }

assembled slowly_assembled(const std::string& bytes) {
  static const all_characters characters;
  assembled made;
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t longest = 0;
    bool is_whole = false;
    for (std::size_t n = 1; n <= 4 && at + n <= bytes.size(); ++n) {
      is_whole = characters.whole.contains(bytes.substr(at, n));
      if (is_whole || characters.beginnings.contains(bytes.substr(at, n))) longest = n;
      if (is_whole) break;
    }
    if (is_whole) {
      made.text += bytes.substr(at, longest);
    } else if (longest > 0 && at + longest == bytes.size()) {
      made.dropped = longest;
    } else {
      made.text += replacement;
      longest = std::max<std::size_t>(longest, 1);
    }
    at += longest;
  }
  return made;
}

assembled in_two_pieces(const std::string& bytes, std::size_t cut) {
  utf8_assembler assembler;
  assembled made;
  assembler.push(std::string_view(bytes).substr(0, cut), made.text);
  assembler.push(std::string_view(bytes).substr(cut), made.text);
  made.dropped = assembler.finish();
  return made;
}

BOOST_AUTO_TEST_CASE(known_texts) {
  const struct {
    std::string bytes;
    assembled expected;
  } cases[] = {
      {"", {"", 0}},
      {"plain", {"plain", 0}},
      {"\xe4\xb8\xad\xf0\x9f\x98\x80\xc3\xa9", {"\xe4\xb8\xad\xf0\x9f\x98\x80\xc3\xa9", 0}},
      {"a\xf0\x9f\x98", {"a", 3}},
      {"a\xf0\x9f\x98z", {"a" + replacement + "z", 0}},
      {"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41",  // overlong forms: Unicode standard, table 3-8
       {replacement + replacement + replacement + replacement + replacement + replacement + replacement + replacement +
            "A",
        0}},
      {"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41",  // surrogates: table 3-9
       {replacement + replacement + replacement + replacement + replacement + replacement + replacement + replacement +
            "A",
        0}},
      {"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42",  // above U+10FFFF: table 3-10
       {replacement + replacement + replacement + replacement + replacement + "A" + replacement + replacement + "B",
        0}},
      {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41",  // characters cut short: table 3-11
       {replacement + replacement + replacement + replacement + "A", 0}},
  };
  for (const auto& c : cases)
    for (std::size_t cut = 0; cut <= c.bytes.size(); ++cut) BOOST_TEST(in_two_pieces(c.bytes, cut) == c.expected);
}

BOOST_AUTO_TEST_CASE(every_pair_of_bytes_in_front_of_others) {
  for (int first = 0; first < 256; ++first)
    for (int second = 0; second < 256; ++second)
      for (const std::string tail : {"", "\x80", "\xbf\x80", "\x80\x80\x80", "a"}) {
        const std::string bytes = std::string{static_cast<char>(first), static_cast<char>(second)} + tail;
        BOOST_TEST_REQUIRE(in_two_pieces(bytes, 1) == slowly_assembled(bytes));
      }
}

BOOST_AUTO_TEST_CASE(random_bytes_cut_anywhere) {
  test::random_cases random;
  const std::string tricky = "a\x80\x8f\x90\x9f\xa0\xbf\xc2\xe0\xe4\xed\xf0\xf4\xff";
  for (int i = 0; i < 3000; ++i) {
    const std::string bytes = random.text(random.below(12), tricky);
    const assembled expected = slowly_assembled(bytes);
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) BOOST_TEST_REQUIRE(in_two_pieces(bytes, cut) == expected);

    utf8_assembler one_by_one;
    assembled made;
    for (const char byte : bytes) {
      one_by_one.push({&byte, 1}, made.text);
      BOOST_TEST_REQUIRE(one_by_one.held() <= 3u);
    }
    made.dropped = one_by_one.finish();
    BOOST_TEST_REQUIRE(made == expected);
    BOOST_TEST_REQUIRE(one_by_one.held() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(characters_leave_as_soon_as_they_are_whole) {
  utf8_assembler assembler;
  std::string out;
  assembler.push("x\xe4\xb8", out);
  BOOST_TEST(out == "x");
  BOOST_TEST(assembler.held() == 2u);
  assembler.push("\xad", out);
  BOOST_TEST(out == "x\xe4\xb8\xad");
  BOOST_TEST(assembler.held() == 0u);
}

BOOST_AUTO_TEST_CASE(a_finished_assembler_begins_anew) {
  utf8_assembler assembler;
  std::string out;
  assembler.push("\xe4\xb8", out);
  BOOST_TEST(assembler.finish() == 2u);
  assembler.push("\xad", out);
  BOOST_TEST(out == replacement);
}

BOOST_AUTO_TEST_CASE(long_texts) {
  std::string text;
  while (text.size() < (8 << 20)) text += "goose \xf0\x9f\xaa\xbf ";
  BOOST_TEST((in_two_pieces(text, 7) == assembled{text, 0}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::tokenizer
