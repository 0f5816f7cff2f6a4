// Rules in the syntax of ai00's bnf_schema (KBNF).
#include <boost/test/unit_test.hpp>

#include "tests/grammar/accepts.hpp"

namespace skein::grammar {
namespace {

using test::accepts;

struct rules_with_texts {
  std::string rules;
  std::vector<std::string> right, wrong;  // right empty: refused
};

error refusal_of(std::string_view rules) {
  const auto made = grammar::from_kbnf(rules);
  BOOST_REQUIRE_MESSAGE(!made.has_value(), rules);
  return made.error();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kbnf_test)

BOOST_AUTO_TEST_CASE(every_form) {
  const std::vector<rules_with_texts> rows{
      {"start::='yes' | 'no';", {"yes", "no"}, {"", "y", "yesno"}},
      {"start ::= \"A\";\nstart ::= \"B\" 'C';", {"A", "BC"}, {"B", "AB"}},
      {"(* first *) start (* a *) ::= (\"A\"|\"B\") 'C' (* b *) ;(* last *)", {"AC", "BC"}, {"C", "AB"}},
      {"start ::= 'a' ['b' ['c']] \"d\"?;", {"a", "ab", "abc", "ad", "abcd"}, {"acd", "d"}},
      {"start ::= {'a'|'c'} 'b' x* (y)+; x ::= 'x'; y ::= 'y' | 'z';", {"by", "accbxxyz"}, {"b", "ab", "yx"}},
      {"start ::= '\\t\\n\\r\\\"\\'\\\\' \"你好\";", {"\t\n\r\"'\\你好"}, {"t"}},
      {"start ::= '(' start ')' | 'x';", {"x", "((x))"}, {"(x", "x)"}},
      {"start ::= #'[a-c]+\\\\d' #\"\\d?\" ';';", {"a1;", "abc12;"}, {"a;", "d1;", "a123;"}},
      {"start ::= (#'a|bc') {#'a|bc'} '.';", {"a.", "abcbca."}, {"b.", "."}},
      {"start ::= #ex'</a>' '</a>';", {"</a>", "x < y</a>"}, {"x</a>y</a>", "x"}},
      {"start ::= except!('\\n\\n')'\\n\\n';", {"\n\n", "a\nb\n\n", "\n\n\n"}, {"a\n\nb\n\n", "a\n"}},
      {"start ::= 'a' except!(\".+\") '.';", {"a.", "ab+."}, {"a.+."}},
      // Rules that begin with themselves.
      {"start ::= start 'b' | 'a' | start 'c' 'd' | start;", {"a", "ab", "acd", "abbcdb"}, {"", "b", "ac"}},
      {"start ::= list ';'; list ::= list ',' item | item; item ::= 'x' | '[' list ']';",
       {"x;", "x,x,x;", "[x,[x]],x;"},
       {",;", "x,;", "[;"}},
      {"start ::= start? 'a'; start ::= 'b';", {}, {}},
      {"a_1 ::= 'x'; start ::= a_1 A; A ::= 'y';", {"xy"}, {"x"}},
  };
  for (const auto& [rules, right, wrong] : rows) {
    const auto made = grammar::from_kbnf(rules);
    if (right.empty()) {
      BOOST_TEST(!made.has_value(), rules);
      continue;
    }
    BOOST_REQUIRE_MESSAGE(made.has_value(), rules + ": " + (made ? "" : made.error().message));
    for (const auto& text : right) BOOST_TEST(accepts(*made, text), rules << " " << text);
    for (const auto& text : wrong) BOOST_TEST(!accepts(*made, text), rules << " " << text);
  }
}

BOOST_AUTO_TEST_CASE(a_text_ends_as_soon_as_it_is_complete) {
  const auto finished = [](const auto& made, std::string_view text) {
    matcher m(made, test::bytes_index());
    return m.accept(text) && m.is_finished();
  };
  BOOST_TEST(finished(grammar::from_kbnf("start ::= 'A'{'A'};").value(), "A"));
  BOOST_TEST(!finished(grammar::from_gbnf("root ::= \"A\" \"A\"*").value(), "A"));
}

BOOST_AUTO_TEST_CASE(a_list_with_left_recursion_needs_no_stack) {
  const auto made = grammar::from_kbnf("start ::= list '.'; list ::= list 'a' | 'b';").value();
  BOOST_TEST(accepts(made, "b" + std::string(10'000, 'a') + "."));
}

// Every call of `a` reads on in three ways, so the stacks of "</a></a>..." multiply.
BOOST_AUTO_TEST_CASE(too_many_stacks_are_told_from_a_wrong_text) {
  options small;
  small.bounds.stacks_max = 64;
  const std::string rules =
      "start ::= #ex'</a>' '</a>' (a | b)+; a ::= #ex'</a>' '</a>' (a | b)+; a ::= 'a'; b ::= a a*;";
  matcher ambiguous(grammar::from_kbnf(rules, small).value(), test::bytes_index());
  std::size_t read = 0;
  while (read < 100 && ambiguous.accept("</a>")) ++read;
  BOOST_TEST(read > 0u);
  BOOST_TEST(read < 100u);
  BOOST_TEST(ambiguous.overflowed());
  BOOST_TEST(!ambiguous.would_accept("</a>"));
  BOOST_TEST(ambiguous.overflowed());

  matcher clear(grammar::from_kbnf("start ::= 'ab';").value(), test::bytes_index());
  BOOST_TEST(!clear.accept("b"));
  BOOST_TEST(!clear.overflowed());
}

BOOST_AUTO_TEST_CASE(errors_name_the_line) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "start is missing"},
      {"begin ::= 'a';", "start is missing"},
      {"start ::= x;", "the rule x is used but missing"},
      {"start ::= 'a'", "expected ; at the end"},
      {"start = 'a';", "line 1: expected ::="},
      {"\n\n1x ::= 'a';", "line 3: expected the name of a rule"},
      {"start ::= ('a';", "unterminated group"},
      {"start ::= ('a'];", "unmatched ]"},
      {"start ::= 'a');", "unmatched )"},
      {"start ::= 'a;", "unterminated text"},
      {"start ::= '\\q';", "unknown escape"},
      {"start ::= '\\", "unknown escape"},
      {"start ::= 'a' (* b ;", "unterminated comment"},
      {"start ::= 'a' ! ;", "unexpected character"},
      {"start ::= #'(';", "line 1: regular expression"},
      {"start ::= #a;", "expected a regular expression in quotes"},
      {"start ::= #e'a';", "#e is not supported"},
      {"start ::= #substrs'a';", "#substrs is not supported"},
      {"start ::= #'(a)\\\\1';", "not supported"},
      {"start ::= except!(x); x ::= 'a';", "except! of anything but a text is not supported"},
      {"start ::= except!('a', 50);", "except! with a length is not supported"},
      {"start ::= except!('');", "empty text"},
      {"start ::= except 'a';", "the rule except is used but missing"},
      {"start ::= a 'x'; a ::= b | 'y'; b ::= a 'z';", "left-recursive"},
      {"start ::= start ['b'] | 'a';", "repeats what may be empty"},
      {"start ::= start 'a';", "start is missing"},
      {"start ::= '\xff';", "ill-formed UTF-8"},
  };
  for (const auto& [rules, message] : rows) {
    const auto why = refusal_of(rules);
    BOOST_TEST(why.message.find(message) != std::string::npos, rules << ": " << why.message);
  }
  options small;
  small.bounds.steps_max = 2000;
  const auto big = grammar::from_kbnf("start ::= #'[a-z]{200}' #'[a-z]{200}';", small);
  BOOST_REQUIRE(!big.has_value());
  BOOST_TEST((big.error().kind == error_kind::too_large));
  small.bounds.source_bytes_max = 10;
  BOOST_TEST((grammar::from_kbnf("start ::= 'abcdef';", small).error().kind == error_kind::too_large));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::grammar
