// Grammars of rules in the syntax of llama.cpp.
#include <boost/test/unit_test.hpp>

#include "tests/grammar/accepts.hpp"

namespace skein::grammar {
namespace {

using test::accepts;

constexpr const char* arithmetic = R"rules(# an expression
root  ::= expr "\n"?
expr  ::= term ([-+*/] term)*
term  ::= num | ("(" ws
          expr ")" ws)  # groups may span lines
num   ::= [0-9]{1,3} ws
ws    ::= [ \t]*
)rules";

std::string around(std::size_t count, const char* open, const char* middle, const char* close) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text.append(open);
  text.append(middle);
  for (std::size_t i = 0; i < count; ++i) text.append(close);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gbnf_test)

BOOST_AUTO_TEST_CASE(expressions) {
  const auto made = grammar::from_gbnf(arithmetic).value();
  for (const char* text : {"1", "12+3", "(1 +2 )*3", "((((1))))\n"}) BOOST_TEST(accepts(made, text), text);
  for (const char* text : {"", "+", "1234", "(1", "1)", "1\n\n"}) BOOST_TEST(!accepts(made, text), text);
}

BOOST_AUTO_TEST_CASE(what_is_repeated_zero_times_is_left_out) {
  for (const char* rules : {"root ::= \"x\" a{0}\na ::= \"b\"", "root ::= \"x\" (a | \"c\" a){0}\na ::= \"b\" a?"}) {
    const auto made = grammar::from_gbnf(rules).value();
    BOOST_TEST(accepts(made, "x"));
    BOOST_TEST(!accepts(made, "xb"));
  }
}

BOOST_AUTO_TEST_CASE(characters) {
  const auto made = grammar::from_gbnf("root ::= \"\\x41\\u00e9\" [^\\]a-c] . ").value();
  BOOST_TEST(accepts(made,
                     "A\xc3\xa9"
                     "d\xe8\xaa\x9e"));
  BOOST_TEST(!accepts(made,
                      "A\xc3\xa9"
                      "bx"));
  BOOST_TEST(!accepts(made, "A\xc3\xa9]x"));
}

BOOST_AUTO_TEST_CASE(a_long_list_needs_no_stack) {
  const auto made = grammar::from_gbnf("root ::= \"a\" root | \"b\"").value();
  BOOST_TEST(accepts(made, around(10'000, "a", "b", "")));
}

BOOST_AUTO_TEST_CASE(nesting_has_a_limit) {
  const auto made = grammar::from_gbnf("root ::= \"(\" root \")\" | \"x\"").value();
  BOOST_TEST(accepts(made, around(100, "(", "x", ")")));
  BOOST_TEST(!accepts(made, around(10'000, "(", "x", ")")));
}

BOOST_AUTO_TEST_CASE(ambiguous_rules_are_followed_in_parallel) {
  const auto made = grammar::from_gbnf("root ::= pair | other\npair ::= \"a\"* \"b\"\nother ::= \"a\"* \"c\"").value();
  BOOST_TEST(accepts(made, "aaab"));
  BOOST_TEST(accepts(made, "aaac"));
}

BOOST_AUTO_TEST_CASE(too_many_alternatives_are_an_error) {
  const auto choice_of = [](std::string head, std::string_view end, int count) {
    for (int i = 1; i < count; ++i) head += "\"a\" | ";
    return head + "\"a\"" + std::string(end);
  };
  for (const auto& made :
       {grammar::from_gbnf(choice_of("root ::= ", "", 9'000)), grammar::from_kbnf(choice_of("start::=", ";", 9'000))}) {
    BOOST_REQUIRE(!made.has_value());
    BOOST_CHECK(made.error().kind == error_kind::too_large);
    BOOST_TEST(made.error().message.find("alternatives at the beginning") != std::string::npos, made.error().message);
  }
  const auto later = grammar::from_gbnf(choice_of("root ::= \"x\" more\nmore ::= ", "", 9'000)).value();
  BOOST_TEST(!accepts(later, "xa"));  // the answer ends there
  BOOST_TEST(accepts(grammar::from_gbnf(choice_of("root ::= ", "", 1'500)).value(), "a"));
}

BOOST_AUTO_TEST_CASE(refusals) {
  for (const char* text :
       {"", "root ::= a", "root ::= root \"a\"", "root ::= a \"x\"\na ::= b?\nb ::= a", "root = x", "root ::= (\"a\"",
        "root ::= \"a", "root ::= [a", "a ::= \"x\"", "root ::= \"a\"\nroot ::= \"b\"", "root ::= \"a\"{3,1}",
        "root ::= (\"a\"{1000}){1000}", "root ::= e? root \"x\"\ne ::= \"y\""}) {
    const auto made = grammar::from_gbnf(text);
    BOOST_TEST(!made.has_value(), text);
    if (!made) BOOST_TEST(!made.error().message.empty());
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::grammar
