// Counts within patterns, and limits of length beside them, against std::regex for all short texts.
#include <boost/test/unit_test.hpp>
#include <regex>
#include <set>

#include "tests/grammar/accepts.hpp"

namespace skein::grammar {
namespace {

using test::accepts;
using test::refusal;
using test::schema;

/// All texts over these letters with at most `length` of them.
std::vector<std::string> texts(std::string_view letters, std::size_t length) {
  std::vector<std::string> made{""};
  for (std::size_t i = 0; i < made.size(); ++i)
    if (made[i].size() < length)
      for (const char letter : letters) made.push_back(made[i] + letter);
  return made;
}

std::string schema_of(const std::string& pattern, const std::string& more = {}) {
  std::string text = R"({"type":"string","pattern":")";
  for (const char c : pattern) text.append(c == '\\' ? "\\" : "") += c;
  return text + '"' + more + '}';
}

bool begins_string(const std::shared_ptr<const grammar>& of, const std::string& text) {
  matcher m(of, test::bytes_index());
  return m.accept('"' + text);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(counted_pattern_test)

BOOST_AUTO_TEST_CASE(copies_of_what_is_repeated_accept_the_same_texts) {
  const auto all = texts("ab-", 7);
  for (const char* const pattern : {"^a[ab]{0,3}b{1,2}$",
                                    "^[ab]+[ab-]*[ab]{1,4}$",
                                    "^(a[ab]{0,2}-){1,3}b$",
                                    "^((a|b-){2,3}-?){1,2}$",
                                    "^(a*b?){2,4}-$",
                                    "^([ab]{2,}-){2,}$",
                                    "a[ab]{0,2}-[ab]{3}$",
                                    "(b[ab-]{0,2})$",
                                    "^[ab]{1,3}-?(.{1,3}-)?$",
                                    "([ab]{2,3}-){2}",
                                    "(?=^.{2,4}$)[ab]+-[ab]+",
                                    "^(?=.{3,5}$)[ab]+(-[ab]+)*$",
                                    "^(?!.{2,4}$)[ab-]*$",
                                    "(a[ab]{1,2}){2}$",
                                    "(-?)([ab]([ab-]){0,2})a$",
                                    "^(?=.*-)(?=.{2,3}$)[ab-]+$",
                                    "^(?=.{2,3}$|a)b?[ab-]+$",
                                    "(^|a{1,3})-b",
                                    "(a|b{1,2}){2,3}--",
                                    "(?=^.{3}$)a|b-",
                                    "^(-{0,2}a){1,3}b{0,2}(?=b)b$",
                                    "[ab]{2,4}\\b-",
                                    "((a{1,2}b){0,2}-)+$"}) {
    const std::regex expected(pattern);
    const auto made = schema(schema_of(pattern));
    for (const auto& text : all)
      BOOST_TEST(accepts(made, '"' + text + '"') == std::regex_search(text, expected), pattern << " and " << text);
  }
}

BOOST_AUTO_TEST_CASE(lengths_beside_patterns) {
  const auto all = texts("ab", 8);
  for (const char* const pattern : {"^(a{3}|b)?ab{0,4}$", "^(ab)*$", "^(a|bb)*a{2,4}$", "^(|a{3,})$", "^(a|bbb)+$", "b",
                                    "^a{2}(|b{3})[ab]{0,2}$", "^(aab|aabb|aabbbbb)?$", "^[ab]*$"}) {
    const std::regex expected(pattern);
    for (std::size_t least = 0; least < 6; ++least)
      for (std::size_t most = least; most < 8; most += 2) {
        std::set<std::string> valid, begun;
        for (const auto& text : all) {
          if (text.size() < least || text.size() > most || !std::regex_search(text, expected)) continue;
          valid.insert(text);
          for (std::size_t k = 0; k <= text.size(); ++k) begun.insert(text.substr(0, k));
        }
        const auto text_of_schema =
            schema_of(pattern, ",\"minLength\":" + std::to_string(least) + ",\"maxLength\":" + std::to_string(most));
        BOOST_TEST_CONTEXT(text_of_schema) {
          if (valid.empty()) {
            BOOST_TEST(refusal(text_of_schema) == "no value satisfies the schema");
            continue;
          }
          const auto made = schema(text_of_schema);
          for (const auto& text : all) {
            BOOST_TEST(accepts(made, '"' + text + '"') == valid.contains(text), text);
            BOOST_TEST(begins_string(made, text) == begun.contains(text), text);
          }
        }
      }
  }
}

// Each of these needs more steps or states than are allowed if equivalent states are not found early.
BOOST_AUTO_TEST_CASE(counts_in_the_middle_of_patterns_compile) {
  for (const auto& [pattern, limits] :
       {std::pair{"^arn:aws(-cn)?:sagemaker:[a-z0-9-]{9,16}:[0-9]{12}:model-package/[\\S]{1,2048}$",
                  R"(,"minLength":1,"maxLength":2048)"},
        {"role/(([!-~]+/){1,511})?[A-Za-z0-9+=,.@_/-]{1,64}$", ""},
        {"[a-zA-Z][a-zA-Z0-9_]{0,99}-[a-zA-Z0-9]{10}", ""},
        {"^[/]+([^~]*(~[01])*){1,512}$", ""},
        {"(arn:[0-9]{12}/)?([a-z0-9]([a-z0-9-]){0,62})(?<!-)$", R"(,"maxLength":170)"},
        {"^s3://([a-z0-9][a-z0-9-.]{1,61}[a-z0-9])/?((.{1,1024})/)?$", ""}})
    BOOST_TEST(refusal(schema_of(pattern, limits)) == "", pattern);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::grammar
