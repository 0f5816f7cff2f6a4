// Vocabulary files: every form of literal that Python allows here, and for every fault a message that names the line.
#include "tokenizer/world_file.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

#include "tests/tokenizer/world_lines.hpp"
#include "tokenizer/vocabulary.hpp"

namespace skein::tokenizer {
namespace {

BOOST_AUTO_TEST_SUITE(world_file_test)

BOOST_AUTO_TEST_CASE(literals) {
  const struct {
    std::string literal;
    std::string text;
  } cases[] = {
      {"'plain'", "plain"},
      {"\"it's\"", "it's"},
      {"'it\\'s \"so\"'", "it's \"so\""},
      {"' two  spaces '", " two  spaces "},
      {"'\\\\\\a\\b\\f\\n\\r\\t\\v'", "\\\a\b\f\n\r\t\v"},
      {"'\\x41\\xe9'", "A\xc3\xa9"},  // in a str \x is a code point, in bytes a byte
      {"b'\\x41\\xe9'", "A\xe9"},
      {"b\"\\xff'\"", "\xff'"},
      {"'\\u4e2d\\U0001F600'", "\xe4\xb8\xad\xf0\x9f\x98\x80"},
      {"'\\1019\\07\\0'", std::string("A9\x07\0", 4)},
      {"'\\777'", "\xc7\xbf"},
      {"b'\\377'", "\xff"},
      {"b'\\u0041'", "\\u0041"},
      {"'\\d\\\xc3\xa9'", "\\d\\\xc3\xa9"},  // unknown escapes keep the backslash
      {"'\xe4\xb8\xad\xf0\x9f\x98\x80'", "\xe4\xb8\xad\xf0\x9f\x98\x80"},
      {"'\\U0010FFFF\\ud7ff\\ue000'", "\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80"},
  };
  for (const auto& c : cases) {
    BOOST_TEST_INFO(c.literal);
    const auto list = parse_world_file("5 " + c.literal + " " + std::to_string(c.text.size()), "v");
    BOOST_TEST_REQUIRE(list.has_value());
    BOOST_TEST_REQUIRE(list->tokens.size() == 1u);
    BOOST_TEST(list->text(list->tokens[0]) == c.text);
    BOOST_TEST(list->tokens[0].id == 5);
  }
}

BOOST_AUTO_TEST_CASE(faults_name_the_line) {
  const std::string too_long(token_bytes_max + 1, 'x');
  const struct {
    std::string line;  // comes third, after lines for 'a' (id 1) and 'b' (id 2)
    std::string what;
  } cases[] = {
      {"nonsense", "not `<id> <literal> <byte count>`"},
      {"3 'c'", "not `<id> <literal> <byte count>`"},
      {" 'c' 1", "the id is not a number"},
      {"x 'c' 1", "the id is not a number"},
      {"-3 'c' 1", "the id is not a number"},
      {"3x 'c' 1", "the id is not a number"},
      {"99999999999999999999 'c' 1", "the id is not a number"},
      {"\xef\xbb\xbf"
       "3 'c' 1",
       "the id is not a number"},
      {"0 'c' 1", "id 0 is the end of text and has no line"},
      {"1048576 'c' 1", "id 1048576 is not below 1048576"},
      {"4294967295 'c' 1", "id 4294967295 is not below 1048576"},
      {"2 'c' 1", "id 2 is already used in line 2"},
      {"3 'a' 1", "the same text as line 1"},
      {"3 b'\\x61' 1", "the same text as line 1"},
      {"3 c 1", "not a quoted literal"},
      {"3  1", "not a quoted literal"},
      {"3 b 1", "not a quoted literal"},
      {"3 r'c' 1", "not a quoted literal"},
      {"3 'c 1", "the literal has no closing quote"},
      {"3 ' 1", "the literal has no closing quote"},
      {"3 'c\" 1", "the literal has no closing quote"},
      {"3 'c\\' 1", "the literal has no closing quote"},
      {"3 'c' 'd' 2", "there is text after the closing quote"},
      {"3 '''c''' 1", "there is text after the closing quote"},
      {"3 '\\x4' 1", "an escape has too few digits"},
      {"3 '\\xg1' 1", "an escape has too few digits"},
      {"3 '\\u004' 1", "an escape has too few digits"},
      {"3 '\\U0000004' 1", "an escape has too few digits"},
      {"3 '\\ud800' 3", "an escape is not a Unicode character"},
      {"3 '\\U00110000' 4", "an escape is not a Unicode character"},
      {"3 b'\\400' 1", "an escape exceeds one byte"},
      {"3 '\\N{DASH}' 1", "escapes by character name are not supported"},
      {"3 '\xff' 1", "the literal is not UTF-8"},
      {"3 '\xe4\xb8' 2", "the literal is not UTF-8"},
      {"3 b'\xc3\xa9' 2", "a bytes literal has a character that is not ASCII"},
      {"3 'c' 2", "the byte count does not match the text (1 bytes)"},
      {"3 'c' x", "the byte count does not match the text (1 bytes)"},
      {"3 'c' ", "the byte count does not match the text (1 bytes)"},
      {"3 '\xc3\xa9' 1", "the byte count does not match the text (2 bytes)"},
      {"3 '' 0", "the text is empty"},
      {"3 '" + std::string(world_line_bytes_max, 'x') + "' 1", "the line is too long for a token"},
      {"3 '" + too_long + "' 1025", "the text has more than 1024 bytes"},
  };
  for (const auto& c : cases) {
    BOOST_TEST_INFO(c.line);
    const auto refused = vocabulary::parse("1 'a' 1\n2 'b' 1\r\n" + c.line + "\n4 'd' 1\n", "v.txt");
    BOOST_TEST_REQUIRE(refused.has_error());
    BOOST_TEST((refused.error().kind == error_kind::bad_file));
    BOOST_TEST(refused.error().message == "v.txt line 3: " + c.what);
  }
}

BOOST_AUTO_TEST_CASE(a_file_without_tokens) {
  for (const std::string text : {"", "\n", "\r\n\r\n"})
    BOOST_TEST(parse_world_file(text, "v").error().message == "v: no tokens");
}

BOOST_AUTO_TEST_CASE(line_ends) {
  for (const std::string text :
       {"1 'a' 1\n2 ' ' 1\n", "1 'a' 1\r\n2 ' ' 1\r\n", "1 'a' 1\n2 ' ' 1", "\n1 'a' 1\r\n\n2 ' ' 1\r"}) {
    const auto list = parse_world_file(text, "v");
    BOOST_TEST_REQUIRE(list.has_value());
    BOOST_TEST_REQUIRE(list->tokens.size() == 2u);
    BOOST_TEST(list->text(list->tokens[0]) == " ");
    BOOST_TEST(list->text(list->tokens[1]) == "a");
  }
}

BOOST_AUTO_TEST_CASE(every_beginning_of_a_file_is_read_or_refused) {
  const std::string text = "1 'a' 1\n22 b\"\\xff \" 2\r\n3 '\\u00e9\\n' 3\n";
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto list = parse_world_file(text.substr(0, length), "v");
    if (list) BOOST_TEST(list->tokens.size() <= 3u);
    if (!list) BOOST_TEST(!list.error().message.empty());
  }
}

BOOST_AUTO_TEST_CASE(a_file_above_the_limit) {
  const std::string text(world_file_bytes_max + 1, '\n');
  BOOST_TEST((parse_world_file(text, "v").error().kind == error_kind::bad_file));
}

BOOST_AUTO_TEST_CASE(tokens_that_need_too_large_a_trie) {
  // Pairs of tokens that part at the lowest and the highest byte cost 256 places each.
  std::string text;
  token_id id = 1;
  for (int i = 0; i < 40000; ++i) {
    const std::string start{static_cast<char>(i & 255), static_cast<char>(i >> 8)};
    for (const char last : {'\x00', '\xff'}) text += test::world_line(id++, start + last);
  }
  BOOST_TEST(parse_world_file(text, "v").has_value());
  BOOST_TEST(vocabulary::parse(text, "v.txt").error().message == "v.txt: the trie of the tokens is too large");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::tokenizer
