// Grammars of calls: each function has its own schema, with its own draft, identifiers, errors and notes, and the
// answer has one, too. What is not supported relaxes its own part alone.
#include "grammar/call_grammar.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/grammar/accepts.hpp"

namespace skein::grammar::call_grammars {
namespace {

using test::accepts;
using test::is_prefix;

using functions = std::vector<call_schemas::function>;

constexpr std::string_view any = R"({"type":"object"})";
constexpr std::string_view digit = R"({"type":"object","properties":{"a":{"type":"integer","minimum":0,"maximum":9}},
  "required":["a"],"additionalProperties":false})";
constexpr std::string_view unsupported = R"x({"type":"object","properties":{"b":{"pattern":"(a)\\1"}}})x";

std::shared_ptr<const grammar> calls(functions list, std::size_t most = 1, std::optional<schema_part> answer = {}) {
  auto made = compile_calls({std::move(list), most, answer}, {});
  BOOST_REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().message));
  return std::move(*made);
}

error refused(functions list, std::optional<schema_part> answer = {}, const options& how = {}) {
  const auto made = compile_calls({std::move(list), 1, answer}, how);
  BOOST_REQUIRE(!made.has_value());
  return made.error();
}

std::string call(std::string_view name, std::string_view arguments) {
  return "{\"name\":\"" + std::string(name) + "\",\"arguments\":" + std::string(arguments) + "}";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(call_grammar_test)

BOOST_AUTO_TEST_CASE(names_come_first) {
  const auto made = calls({{"f", {any, "", "x"}}});
  const std::string inner = R"({"arguments":1,"name":2})";
  BOOST_TEST(accepts(made, call("f", inner)));
  BOOST_TEST(accepts(made, call("f", R"({"x":{"arguments":{},"name":""}})")));
  for (const char* const text : {R"({"arguments":{},"name":"f"})", R"({"name":"g","arguments":{}})", R"({"name":"f"})",
                                 R"({"name":"f","arguments":[]})", R"({"name":"f","arguments":{},"x":1})", "[]"})
    BOOST_TEST(!accepts(made, text));
  matcher m(made, test::bytes_index());
  BOOST_REQUIRE(m.accept("{\""));
  BOOST_TEST(m.would_accept("n"));
  BOOST_TEST(!m.would_accept("a"));
  BOOST_TEST(!m.would_accept("\\u0061"));
}

BOOST_AUTO_TEST_CASE(each_function_has_its_own_schema) {
  const std::string_view other = R"({"$defs":{"t":{"enum":["x"]}},"properties":{"a":{"$ref":"#/$defs/t"}}})";
  const auto made = calls({{"digit", {digit, "", "0"}}, {"other", {other, "", "1"}}, {"digits", {digit, "", "2"}}});
  BOOST_TEST(accepts(made, call("digit", R"({"a":3})")));
  BOOST_TEST(accepts(made, call("digits", R"({"a":3})")));
  BOOST_TEST(accepts(made, call("other", R"({"a":"x","b":[{}]})")));
  for (const auto& text : {call("digit", "{}"), call("digit", R"({"a":10})"), call("other", R"({"a":3})"),
                           call("digit", R"({"a":"x"})"), "[" + call("digit", R"({"a":3})") + "]"})
    BOOST_TEST(!accepts(made, text), text);
}

BOOST_AUTO_TEST_CASE(lists_and_answers) {
  const std::string one = call("f", R"({"a":3})");
  const auto made =
      calls({{"f", {digit, "", "x"}}}, 2, schema_part{R"({"enum":["yes",[7],{"a":{"b":1}},5]})", "", "y"});
  for (const auto& text : {one, "[" + one + "]", "[" + one + "," + one + "]", std::string(R"("yes")"),
                           std::string("[7]"), std::string(R"({"a":{"b":1}})"), std::string("5")})
    BOOST_TEST(accepts(made, text), text);
  for (const auto& text : {"[" + one + "," + one + "," + one + "]", std::string("[]"), "[7," + one + "]",
                           std::string(R"({"a":{"b":2}})"), call("f", "{}"), std::string("true")})
    BOOST_TEST(!accepts(made, text), text);
}

// Each part as it would be alone.
BOOST_AUTO_TEST_CASE(parts_have_their_own_draft_and_identifiers) {
  const std::string_view draft7 = R"({"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":
    {"t":{"$ref":"#/definitions/t","maximum":1}},"required":["t"],"definitions":{"t":{"type":"integer","minimum":5}}})";
  const std::string_view named = R"({"$id":"https://x.org/s","type":"object","properties":
    {"t":{"$ref":"https://x.org/s#/$defs/t"},"u":{"$ref":"#"}},"$defs":{"t":{"type":"boolean"}}})";
  const std::string_view recursive = R"({"type":["object","null"],"properties":{"l":{"$ref":"#"}},
    "additionalProperties":false})";
  const auto made = calls({{"d", {draft7, "", "0"}}, {"i", {named, "", "1"}}, {"r", {recursive, "", "2"}}});
  BOOST_TEST(accepts(made, call("d", R"({"t":7})")));  // draft 7 ignores what is beside $ref
  BOOST_TEST(!accepts(made, call("d", R"({"t":4})")));
  BOOST_TEST(accepts(made, call("i", R"({"t":true,"u":{"t":false}})")));
  BOOST_TEST(!accepts(made, call("i", R"({"t":true,"u":{"t":1}})")));
  BOOST_TEST(accepts(made, call("r", R"({"l":{"l":null}})")));
  BOOST_TEST(!accepts(made, call("r", "null")));
  const auto answered = calls({{"d", {draft7, "", "0"}}}, 1, schema_part{named, "", "1"});
  BOOST_TEST(accepts(answered, R"({"t":true,"u":{"t":false}})"));
  BOOST_TEST(!accepts(answered, R"({"t":1})"));
}

BOOST_AUTO_TEST_CASE(what_is_not_supported_relaxes_its_part_alone) {
  const schema_part loose{unsupported, any, "tools[1].parameters"};
  const auto made =
      calls({{"digit", {digit, any, "tools[0].parameters"}}, {"free", loose}}, 1, schema_part{digit, "true", "answer"});
  BOOST_TEST(accepts(made, call("free", R"({"b":[]})")));
  BOOST_TEST(!accepts(made, call("digit", "{}")));
  BOOST_TEST(!accepts(made, R"({"a":10})"));
  BOOST_REQUIRE_EQUAL(made->notes().size(), 1u);
  BOOST_TEST(made->notes()[0].starts_with("tools[1].parameters: the schema is not enforced: /properties/b/pattern: "));
  const auto answered = calls({{"digit", {digit, any, "0"}}}, 1, schema_part{unsupported, "true", "answer"});
  BOOST_TEST(accepts(answered, "[1]"));
  BOOST_REQUIRE_EQUAL(answered->notes().size(), 1u);
  BOOST_TEST(answered->notes()[0].starts_with("answer: the schema is not enforced: /properties/b/pattern: "));
  const auto annotated = calls({{"f", {R"({"properties":{"a":{"format":"colour"}}})", "", "tools[0].parameters"}}});
  BOOST_REQUIRE_EQUAL(annotated->notes().size(), 1u);
  BOOST_TEST(annotated->notes()[0].starts_with("tools[0].parameters: /properties/a/format: "));
}

BOOST_AUTO_TEST_CASE(errors_name_their_part) {
  const call_schemas::function right{"f", {digit, any, "zero"}};
  const auto of = [&](std::string_view schema, std::string_view relaxed = "") {
    return refused({right, {"g", {schema, relaxed, "one"}}});
  };
  BOOST_TEST(of(unsupported).field == "one");
  BOOST_TEST((of(unsupported).kind == error_kind::unsupported));
  BOOST_TEST(of(unsupported).message.starts_with("/properties/b/pattern: "));
  for (const std::string_view schema :
       {R"({"properties":{"a":{"type":"objct"}}})", R"({"properties":{"a":{"minLength":-1}}})", "{", "false",
        R"({"type":"object","properties":{"a":false},"required":["a"]})", R"({"type":"string"})"}) {
    BOOST_TEST(of(schema, any).field == "one");
    BOOST_TEST((of(schema, any).kind == error_kind::invalid_argument));
  }
  BOOST_TEST(of(R"({"properties":{"a":{"type":"objct"}}})").message.starts_with("/properties/a/type: "));
  for (const std::string_view schema : {R"({"type":"integer","minimum":3,"maximum":2})", "{", "false"})
    BOOST_TEST(refused({right}, schema_part{schema, "true", "answer"}).field == "answer");
}

BOOST_AUTO_TEST_CASE(limits_hold_for_all_parts_together) {
  const functions two{{"f", {digit, any, "zero"}}, {"g", {digit, any, "one"}}};
  options how;
  how.bounds.source_bytes_max = digit.size();
  auto why = refused(two, {}, how);
  BOOST_TEST((why.kind == error_kind::too_large));
  BOOST_TEST(why.field == "");
  how.bounds.source_bytes_max = digit.size() - 1;
  BOOST_TEST(refused(two, {}, how).field == "zero");
  how = {};
  how.bounds.nodes_max = 4;
  BOOST_TEST((refused(two, {}, how).kind == error_kind::too_large));
  how = {};
  std::uint64_t steps = 1;  // that one part takes
  for (how.bounds.steps_max = steps; !compile_calls({{two.front()}, 1, {}}, how); how.bounds.steps_max = steps) ++steps;
  why = refused(two, {}, how);
  BOOST_TEST((why.kind == error_kind::too_large));
  BOOST_TEST(why.field == "one");
  how = {};
  how.bounds.alternatives_max = 1;
  BOOST_TEST((refused(two, {}, how).kind == error_kind::too_large));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::grammar::call_grammars
