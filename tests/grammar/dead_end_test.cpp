// Random walks over allowed tokens never reach a state in which nothing is allowed, and what they write is valid.
#include <boost/test/unit_test.hpp>
#include <random>
#include <regex>
#include <set>

#include "tests/grammar/accepts.hpp"
#include "tests/grammar/small_index.hpp"

namespace skein::grammar {
namespace {

using test::accepts;
using test::is_prefix;
using test::schema;
using test::schema_to_generate;

constexpr int steps_max = 400;

/// A text of allowed tokens, which prefers those that end something or begin a character of several bytes. Empty if it
/// does not end within the limit.
std::string walked(const std::shared_ptr<const grammar>& of, const std::shared_ptr<const vocabulary_index>& index,
                   std::mt19937& random) {
  matcher m(of, index);
  std::vector<std::uint32_t> allowed(index->words());
  std::vector<std::string_view> all, some;
  std::string text;
  for (int step = 0; step < steps_max; ++step) {
    if (m.is_finished() || (m.is_complete() && random() % 4 == 0)) return text;
    m.fill_mask(allowed);
    const auto wanted = random() % 3;
    all.clear();
    some.clear();
    for (std::uint32_t id = 0; id < index->vocabulary().size(); ++id) {
      const auto token = index->vocabulary().text(static_cast<token_id>(id));
      if ((allowed[id / 32] >> (id % 32) & 1) == 0 || token.empty()) continue;
      all.push_back(token);
      const auto last = static_cast<unsigned char>(token.back());
      if (wanted == 0 ? token.find_first_of("\"]},") != token.npos : wanted == 1 && last >= 0x80) some.push_back(token);
    }
    if (all.empty()) {
      BOOST_ERROR("a dead end after " << text);
      return {};
    }
    const auto& from = some.empty() ? all : some;
    const auto token = from[random() % from.size()];
    text += token;
    BOOST_REQUIRE_MESSAGE(m.accept(token), text);
  }
  return {};
}

/// Walks with whole tokens and with single bytes. Returns the texts that ended.
std::vector<std::string> walks(const std::string& text, unsigned count = 12) {
  const auto of = schema_to_generate(text), exact = schema(text);
  std::vector<std::string> made;
  BOOST_TEST_CONTEXT(text) {
    for (unsigned seed = 0; seed < count; ++seed) {
      std::mt19937 random(seed);
      const auto out = walked(of, seed % 2 == 0 ? test::small_index() : test::bytes_index(), random);
      if (out.empty()) continue;
      BOOST_TEST(accepts(exact, out), out);
      made.push_back(out);
    }
    BOOST_TEST(!made.empty());
  }
  return made;
}

std::string pattern_schema(const std::string& pattern, const std::string& more) {
  return R"({"type":"string","pattern":")" + pattern + "\"," + more + "}";
}

/// The number of different names in an object of numbers, without escape sequences.
std::size_t names_in(const std::string& text) {
  static const std::regex quoted("\"[^\"]*\"");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), quoted), end; at != end; ++at) names.insert(at->str());
  return names.size();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(dead_end_test)

BOOST_AUTO_TEST_CASE(patterns_with_limits_of_length) {
  for (const auto& text : {
           R"({"type":"object","properties":{"file":)" + pattern_schema(R"(^.*\\.(jpg|png)$)", R"("maxLength":16)") +
               R"(},"required":["file"],"additionalProperties":false})",
           pattern_schema("^[^@]+@[^@]+\\\\.[a-z]{2,3}$", R"("maxLength":14)"),
           pattern_schema("x.*x.*x", R"("maxLength":12)"),
           pattern_schema("x", R"("maxLength":6)"),
           pattern_schema("x$", R"("maxLength":6)"),
           pattern_schema("^[a-z\\u00e9]*xyz$", R"("maxLength":6)"),
           pattern_schema("\\\\d{3}$", R"("maxLength":8)"),
           pattern_schema("#[0-9a-f]{6}", R"("maxLength":10)"),
           pattern_schema("(?=.*[A-Z])(?=.*\\\\d)", R"("maxLength":8)"),
           pattern_schema("^(a|\\u00e9{0,2})$", R"("minLength":2)"),
           pattern_schema("^(a{0,9}|[\\u00e0-\\u00eb]{0,2}x?)$", R"("minLength":5)"),
           pattern_schema("^([^a]{3})*b$", R"("minLength":4,"maxLength":9)"),
           pattern_schema("^([\\ud83d\\ude00-\\ud83d\\ude0f]{2}|\\u4e00.?)+$", R"("minLength":3,"maxLength":4)"),
           pattern_schema("^(.{3}|a.{4}|.b{6})+$", R"("minLength":3,"maxLength":5)"),
           std::string(R"({"type":"string","maxLength":6,"not":{"pattern":"^[^z]*$"}})"),
           std::string(R"({"type":"string","maxLength":6,"allOf":[{"pattern":"q"},{"pattern":"j"}]})"),
           std::string(R"({"type":"string","format":"email","maxLength":12})"),
       })
    walks(text);
}

/// Bytes of a character are refused when no character that begins with them leaves enough room.
BOOST_AUTO_TEST_CASE(characters_of_several_bytes_before_the_end) {
  const auto end = schema(pattern_schema("^.*xyz$", R"("maxLength":5)"));
  BOOST_TEST(is_prefix(end, "\"a\xc3\xa9"));
  BOOST_TEST(!is_prefix(end, "\"ab\xc3"));
  BOOST_TEST(!is_prefix(end, "\"ab\xf0"));
  BOOST_TEST(is_prefix(end, "\"a\xf0\x9f\x98\x80xyz\""));
  // After two characters only U+E9 is one of those that may be last.
  const auto last = schema(pattern_schema("^[a\\u00e9]{3}$|^.*b$", R"("maxLength":3)"));
  BOOST_TEST(is_prefix(last, "\"aa\xc3\xa9"));
  BOOST_TEST(!is_prefix(last, "\"aa\xc3\xa8"));
  BOOST_TEST(!is_prefix(last, "\"aa\xc4"));
  BOOST_TEST(is_prefix(last, "\"a\xc4"));
  // Where the answers are kept for each length.
  const auto steps = schema(pattern_schema("^(..)*(xyz)?$", R"("minLength":5,"maxLength":7)"));
  BOOST_TEST(is_prefix(steps, "\"aaaa\xc3\xa9\xc3"));
  BOOST_TEST(!is_prefix(steps, "\"aaaaaa\xc3"));
  BOOST_TEST(is_prefix(steps, "\"aaaaxyz\""));
}

/// Within 24 bytes a number comes to an end that its bounds and multiples allow.
BOOST_AUTO_TEST_CASE(numbers_end) {
  const auto check = [](const std::string& rules, std::size_t bytes_max) {
    const auto made = walks("{" + rules + "}");
    BOOST_TEST(made.size() == 12u, rules);
    for (auto text : made) {
      std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; });
      BOOST_TEST(text.size() <= bytes_max, text << " for " << rules);
    }
  };
  for (const char* const multiple : {"2", "7", "60", "365", "1000", "1024", "2500", "9973"})
    check(R"("type":"integer","multipleOf":)" + std::string(multiple), 24);
  for (const char* const multiple : {"0.125", "0.001", "9.99"})
    check(R"("type":"number","multipleOf":)" + std::string(multiple), 24);
  check(R"("type":"integer","multipleOf":9973,"minimum":1)", 24);
  check(R"("type":"integer","not":{"multipleOf":7})", 24);
  check(R"("type":"number")", 24);
  check(R"("type":"number","exclusiveMinimum":0,"maximum":0.001)", 24);
  const std::string large = "1000000000000000000000000000007";
  check(R"("type":"integer","minimum":)" + large, large.size());
  check(R"("enum":[5,)" + large + "]", large.size());
  const auto both = schema_to_generate(R"({"anyOf":[{"const":)" + large + R"(},{"type":"integer","maximum":99}]})");
  BOOST_TEST(accepts(both, large));
  BOOST_TEST(accepts(both, "99"));
}

/// The last digit that fits makes the number a multiple.
BOOST_AUTO_TEST_CASE(numbers_at_the_limit_of_length) {
  const auto of = schema_to_generate(R"({"type":"integer","multipleOf":1000})");
  const std::string digits = "111111111111111111111";
  BOOST_TEST(accepts(of, digits + "000"));
  BOOST_TEST(!is_prefix(of, digits + "1"));
  BOOST_TEST(!is_prefix(of, digits + "0000"));
  const auto different = schema_to_generate(R"({"type":"array","items":{"type":"integer"},"uniqueItems":true})");
  const std::string item = digits + "111";
  BOOST_TEST(is_prefix(different, "[" + item + "," + digits + "112]"));
  BOOST_TEST(!is_prefix(different, "[" + item + "," + item));
}

/// Arrays and objects in which a value or name seems possible that leaves no room for what must follow.
BOOST_AUTO_TEST_CASE(items_and_names_that_leave_no_room) {
  const auto array = [](const std::string& rules) { return R"({"type":"array",)" + rules + "}"; };
  const auto object = [](const std::string& rules) { return R"({"type":"object",)" + rules + "}"; };
  const std::string null = R"({"type":"null"})", text = R"({"type":"string","maxLength":2})";
  for (
      const auto& each : {
          array(
              R"("prefixItems":[{"type":"integer","minimum":0,"maximum":20}],"items":{"enum":["a","b"]},"contains":{"const":12},"maxItems":3)"),
          array(
              R"("prefixItems":[{"type":"integer","minimum":0,"maximum":9}],"items":{"enum":["a","b"]},"contains":{"type":"integer","minimum":5})"),
          array(
              R"("prefixItems":[{"enum":[1,2]},{"enum":[1,2]},{"const":1},{"const":1}],"items":false,"minItems":4,"contains":{"const":1},"maxContains":3)"),
          array(
              R"("prefixItems":[{"enum":[1,2]},{"enum":[1,2]},true,{"const":2}],"items":{"enum":[1,2]},"contains":{"const":1},"minContains":2,"maxContains":2,"minItems":3,"maxItems":5)"),
          array(R"("items":{"enum":[1,2]},"contains":{"const":1},"minContains":3,"maxItems":4)"),
          array(R"("items":{"enum":["a","b","c"]},"minItems":3,"uniqueItems":true)"),
          array(R"("items":{"type":"integer","minimum":-1,"maximum":1},"minItems":3,"uniqueItems":true)"),
          object(R"("properties":{"a":{"type":"integer"}},"patternProperties":{"^[a-c]$":)" + text +
                 R"(},"additionalProperties":false,"minProperties":2)"),
          object(R"("properties":{"a":{"type":"integer"}},"patternProperties":{"^[ab]":)" + text +
                 R"(},"additionalProperties":false,"minProperties":1)"),
          object(R"("properties":{"a":true,"bb":true},"patternProperties":{"^(a|b{1,2})$":)" + null +
                 R"(,"^x-":true},"additionalProperties":false,"minProperties":1)"),
          object(R"("properties":{"abc":)" + null + R"(},"patternProperties":{"^[a-z]{3}$":)" + null +
                 R"(},"additionalProperties":false,"minProperties":1)"),
          object(R"("propertyNames":{"pattern":"^a{1,2}$"},"minProperties":2,"additionalProperties":)" + null),
          object(R"("propertyNames":{"enum":["a","b"]},"minProperties":2,"additionalProperties":)" + null),
          object(
              R"("propertyNames":{"pattern":"x.*x","maxLength":5},"minProperties":1,"maxProperties":1,"additionalProperties":)" +
              null),
      })
    walks(each, 40);
  for (const auto& each :
       {array(R"("items":{"const":false},"minItems":3,"uniqueItems":true)"),
        array(R"("items":{"type":"boolean"},"minItems":3,"uniqueItems":true)"),
        array(R"("items":{"enum":["a","b"]},"minItems":3,"uniqueItems":true)"),
        array(R"("items":{"enum":[1,1.0,2]},"minItems":3,"uniqueItems":true)"),
        array(R"("items":{"enum":[1,2]},"contains":{"const":1},"minContains":2,"uniqueItems":true)"),
        array(R"("items":{"const":1},"contains":{"const":1},"maxContains":2,"minItems":3)"),
        array(R"("prefixItems":[{"const":1}],"items":{"const":2},"contains":{"const":1},"minContains":2)"),
        object(R"("properties":{"a":{"type":"integer"}},"patternProperties":{"^[a-c]$":)" + text +
               R"(},"additionalProperties":false,"minProperties":3)"),
        object(R"("propertyNames":{"enum":["a","b"]},"minProperties":3,"additionalProperties":)" + null),
        object(R"("propertyNames":{"pattern":"^a{1,2}$"},"minProperties":3)"),
        object(R"("propertyNames":{"pattern":"^[a-z]{2}$"},"minProperties":677)")}) {
    options how;
    how.bounds = limits_to_generate();
    const auto made = grammar::from_json_schema(each, how);
    BOOST_TEST(!made, each);
    if (!made) BOOST_TEST(made.error().message == "no value satisfies the schema", each);
  }
  // A name that is listed has occurred already, or has no value.
  const auto seen =
      schema(R"({"properties":{"abc":true},"patternProperties":{"^[a-z]{3}$":true},"additionalProperties":false})");
  BOOST_TEST(is_prefix(seen, R"({"abc":1,"abd")"));
  BOOST_TEST(!is_prefix(seen, R"({"abc":1,"abc)"));
}

/// A name that occurs twice counts once.
BOOST_AUTO_TEST_CASE(names_that_are_not_listed_count_once) {
  struct numbers_by_name {
    const char* rules;
    std::size_t least, most;
  };
  for (const auto& [rules, least, most] : {
           numbers_by_name{R"("propertyNames":{"pattern":"^[xy]$"},"minProperties":2,"maxProperties":2)", 2, 2},
           {R"("propertyNames":{"pattern":"^[a-z]{2}$"},"minProperties":3)", 3, 99},
           {R"("propertyNames":{"pattern":"^[ab]+$"},"minProperties":3,"maxProperties":4)", 3, 4},
           {R"("propertyNames":{"pattern":"^[a-c]*$"},"required":["a"],"minProperties":3)", 3, 99},
           {R"("propertyNames":{"pattern":"^[a-c]*$"},"required":["a"],"minProperties":2)", 2, 99},
       }) {
    const auto made = walks(R"({"type":"object","additionalProperties":{"type":"integer","minimum":0,"maximum":9},)" +
                                std::string(rules) + "}",
                            60);
    for (const auto& text : made) {
      if (text.find('\\') != text.npos) continue;
      BOOST_TEST(names_in(text) >= least, text << " for " << rules);
      BOOST_TEST(names_in(text) <= most, text << " for " << rules);
    }
  }
  const auto any = schema(R"({"type":"object","minProperties":2})");
  BOOST_TEST(accepts(any, R"({"a":1,"b":2})"));
  BOOST_TEST(accepts(any, R"({"a":1,"a":1,"b":[{}]})"));
  BOOST_TEST(!accepts(any, R"({"a":1,"a":2})"));
  BOOST_TEST(!accepts(any, R"({"a":1,"\u0061":2})"));
  BOOST_TEST(
      accepts(schema(R"({"items":{"minProperties":2},"uniqueItems":true})"), R"([{"a":1,"b":2},{"a":1,"b":3}])"));
  BOOST_TEST(
      !accepts(schema(R"({"items":{"minProperties":2},"uniqueItems":true})"), R"([{"a":1,"b":2},{"b":2,"a":1}])"));
  const auto two = schema(R"({"type":"object","minProperties":2,"maxProperties":2})");
  BOOST_TEST(accepts(two, R"({"a":1,"a":2,"b":1})"));
  BOOST_TEST(!is_prefix(two, R"({"a":1,"b":2,)"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::grammar
