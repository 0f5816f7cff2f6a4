// Regular expressions of ECMA-262: what matches as a whole, and what is refused.
#include <boost/test/unit_test.hpp>

#include "tests/grammar/accepts.hpp"

namespace skein::grammar {
namespace {

using test::accepts;

struct matched {
  const char* pattern;
  std::vector<std::string> matches, others;
};
const matched patterns[] = {
    {"abc", {"abc"}, {"", "ab", "abcd"}},
    {"a|bc|", {"a", "bc", ""}, {"b", "abc"}},
    {"(a|b)*c+?d?", {"c", "abacc", "bcd"}, {"d", "ab"}},
    {"a{2,3}b{2}c{0}d{1,}", {"aabbd", "aaabbddd"}, {"abbd", "aabbcd", "aabb"}},
    {"[a-c\\d_-]+", {"a1_-c"}, {"d", ""}},
    {"[^a]", {"b", "\xe8\xaa\x9e", "\xf0\x9f\x98\x80", "\n"}, {"a", "\xe8\xaa", "bb"}},
    {".", {"x", "\xc3\xa9"}, {"\n", "\xe2\x80\xa8", "\x80"}},
    {"\\u00e9\\x41\\u{1f600}\\uD83D\\uDE00",
     {"\xc3\xa9"
      "A\xf0\x9f\x98\x80\xf0\x9f\x98\x80"},
     {"A"}},
    {"(?:x|y)(?<n>z)", {"xz", "yz"}, {"z"}},
    {"^ab$", {"ab"}, {"a", "abc"}},
    {"a^b", {}, {"ab", "a^b"}},
    {"^(?!ab)[a-c]{2}", {"aa", "ba"}, {"ab", "a"}},
    {"^(?=.*\\d)[a-z\\d]{3}", {"a1b", "123"}, {"abc"}},
    {"x{,2}", {"", "xx"}, {"xxx", "x{,2}"}},
    {"(?:a|$)*^", {""}, {"a"}},
    {"x{,}", {"x{,}"}, {"x"}},
    {"\\Aa\\Z", {"a"}, {"ab"}},
    {"a\\Zb?", {"a"}, {"ab"}},
    {"\\a", {"\a"}, {"a"}},
    {"(?i)aK[b-d_][^E]",
     {"aKb!", "Ak_x",
      "a\xe2\x84\xaa"
      "D-"},
     {"ake!", "akbe", "akbE"}},
    {"a(?i:b)c", {"abc", "aBc"}, {"aBC", "Abc"}},
    {"(?i)a(?-i:b)c", {"AbC"}, {"ABc"}},
    {"(?i:a(?=b))B", {"aB", "AB"}, {"ab"}},
    {"(?i)^(?=A)a", {"a", "A"}, {"b"}},
    {"(?s).(?-s:.)", {"\nb", "ab"}, {"a\n"}},
    {"(?m)(?:a$\\n|^b)+", {"a\nb", "b", "a\na\n"}, {"bb", "a"}},
    {"(?P<n>a)(?:b)", {"ab"}, {"a"}},
    {"[]a]+[^]b]", {"]ac", "a]]c"}, {"ab", "b"}},
    {"a[^]*", {"a]", "a"}, {"b"}},
    {"[[:alpha:]]", {"a]", ":]"}, {"b", "b]"}},
    {"[\\ud800-\\udfffa]", {"a"}, {"b", "\xed\xa0\x80"}},
    {"^(?=a)[ab]*|c", {"ab", "c"}, {"ba", "cc"}},
    {"^(?=a+$)(?!aaa).*", {"a", "aa"}, {"aaa", "ab", ""}},
    {"(?:(?!--)[a-z-])+", {"a-b", "-a-"}, {"--", "a--b"}},
    {"a(?=.*\\d)[a-z]*\\d?", {"ab1", "a1"}, {"ab", "a"}},
    {"(?:a(?=b)|b(?!b)|c)*", {"abab", "cb"}, {"a", "aab", "bb"}},
    {"(?!(?!a))a", {"a"}, {"b"}},
    {"a(?!$)b?", {"ab"}, {"a"}},
    {"a(?<=a$)b?", {"a"}, {"ab"}},
    {"(?:a(?<!a$))*b?", {"ab", "aab"}, {"a", "aa"}},
    {".*(?<=[ab])(?<!ab)", {"a", "bb"}, {"ab", "c", ""}},
    {"(?<=^|-)a(?<=(?:(?=a$))?a)", {"a"}, {"-a"}},
    {"\\bab?\\b.*", {"a", "ab-", "a b"}, {"ac", "a_"}},
    {"\\B-\\B|a\\Bb", {"-", "ab"}, {"a"}},
    {"[\\p{Lu}\\d]+\\P{L}",
     {"\xc3\x84"
      "1-",
      "A1"},
     {"a1", "1A"}},
    {"\\p{Script=Greek}\\p{gc=Nd}",
     {"\xce\xa9"
      "1"},
     {"a1", "\xce\xa9"}},
};

const char* const refused[] = {
    "(",        ")",       "a**",          "*a",      "[a",    "[b-a]",  "a{3,2}",        "\\1",
    "(?=a)*b",  "(?<=a)+", "\\b*",         "(?=a",    "\\",    "a\\",    "a{1000000000}", "((a{1000}){1000}){1000}",
    "\\p{Abc}", "\\pL",    "\\p{sc=Abc",   "(?<=a))", "\\z",   "a(?s).", "(?<!(?=[)])",   "[\\B]",
    "[\\A]",    "(?x)a",   "(?i)\xc3\xa9", "(?P=n)",  "(?P<n", "(?i",    "(?i-i-i)a",     "(?)a",
    "\xff"};

}  // namespace

BOOST_AUTO_TEST_SUITE(regex_test)

BOOST_AUTO_TEST_CASE(matches) {
  for (const auto& [pattern, matches, others] : patterns) {
    const auto made = grammar::from_regex(pattern);
    if (!made) {
      BOOST_TEST(matches.empty(), pattern << ": " << made.error().message);
      continue;
    }
    for (const auto& text : matches) BOOST_TEST(accepts(*made, text), pattern << " should match " << text);
    for (const auto& text : others) BOOST_TEST(!accepts(*made, text), pattern << " should not match " << text);
  }
}

BOOST_AUTO_TEST_CASE(refusals_have_a_reason) {
  for (const char* const pattern : refused) {
    const auto made = grammar::from_regex(pattern);
    BOOST_TEST(!made.has_value(), pattern);
    if (!made) BOOST_TEST(!made.error().message.empty());
  }
}

BOOST_AUTO_TEST_CASE(messages_name_what_is_not_known) {
  BOOST_TEST(grammar::from_regex("a(?=b\\p{Graph})").error().message ==
             "regular expression: the Unicode property Graph at offset 7 is not supported");
  BOOST_TEST(grammar::from_regex("a\\z").error().message == "regular expression: unknown escape \\z at offset 3");
}

BOOST_AUTO_TEST_CASE(lookarounds_have_limits) {
  std::string nested = "a", many;
  for (int i = 0; i < 8; ++i) nested = "(?=" + nested + ")";
  BOOST_TEST(grammar::from_regex(nested + "a").has_value());
  BOOST_TEST(!grammar::from_regex("(?=" + nested + ")a").has_value());
  BOOST_TEST(!grammar::from_regex(std::string(100'000, '(').insert(0, "(?=") + "a").has_value());
  for (int i = 0; i < 65; ++i) many += "(?!" + std::to_string(i) + "x)";
  BOOST_TEST(!grammar::from_regex(many).has_value());
}

BOOST_AUTO_TEST_CASE(nesting_needs_no_stack) {
  const std::string open(100'000, '('), close(100'000, ')');
  const auto made = grammar::from_regex(open + "a" + close);
  if (made) BOOST_TEST(accepts(*made, "a"));
}

BOOST_AUTO_TEST_CASE(choices) {
  const std::vector<std::string> texts{"yes", "no", "none"};
  const auto made = grammar::from_choices(texts).value();
  for (const auto& text : texts) BOOST_TEST(accepts(made, text));
  for (const char* text : {"", "n", "non", "nones", "maybe"}) BOOST_TEST(!accepts(made, text));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::grammar
