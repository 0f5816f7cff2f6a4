// JSON Schema beyond the official suite: order and duplicates of names, white space, escapes, what is refused, and that
// a prefix of a text is accepted only if some valid text continues it.
#include <boost/test/unit_test.hpp>

#include "tests/grammar/accepts.hpp"

namespace skein::grammar {
namespace {

using test::accepts;
using test::is_prefix;
using test::refusal;
using test::schema;

constexpr const char* person =
    R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0},
  "email":{"type":"string"}},"required":["name","age"],"additionalProperties":false})";

}  // namespace

BOOST_AUTO_TEST_SUITE(schema_test)

BOOST_AUTO_TEST_CASE(names_come_in_any_order_and_once) {
  const auto made = schema(person);
  BOOST_TEST(accepts(made, R"({"name":"x","age":3})"));
  BOOST_TEST(accepts(made, R"({"age":3,"email":"e","name":"x"})"));
  BOOST_TEST(!accepts(made, R"({"age":3})"));
  BOOST_TEST(!is_prefix(made, R"({"age":3})"));
  BOOST_TEST(!is_prefix(made, R"({"age":3,"a)"));
  BOOST_TEST(!is_prefix(made, R"({"age":3,"name":"x","email":"","a)"));
  BOOST_TEST(!is_prefix(made, R"({"age":3,"name":"x","email":"",)"));
  BOOST_TEST(!is_prefix(made, R"({"b)"));
  BOOST_TEST(!is_prefix(made, R"({"age":-1)"));
}

BOOST_AUTO_TEST_CASE(patterns_have_lookarounds_and_properties) {
  const auto names = schema(R"x({"type":"object","patternProperties":{"^\\p{Lu}(?!-)":{"type":"integer"}},
    "additionalProperties":false})x");
  for (const char* const text : {R"({"A":1,"Bc-":2})", R"({"\u00c4":1})", "{\"\xc3\x84\":1}"})
    BOOST_TEST(accepts(names, text));
  for (const char* const text : {R"({"a":1})", R"({"A-":1})", R"({"\u00e4":1})"}) BOOST_TEST(!is_prefix(names, text));
  const auto both = schema(R"x({"type":"string","pattern":"\\bno\\b","not":{"pattern":"(?<!a )no"}})x");
  BOOST_TEST(accepts(both, R"("a no")"));
  BOOST_TEST(accepts(both, R"("a\u0020no!")"));
  for (const char* const text : {R"("no")", R"("a not")", R"("a no no")"}) BOOST_TEST(!accepts(both, text));
  const auto between = schema(R"x({"type":"string","pattern":"(?!\\u00e9|$)"})x");
  BOOST_TEST(accepts(between, R"("\u00e9a")"));
  BOOST_TEST(!accepts(between, "\"\xc3\xa9\""));  // no match may begin within a character
  const auto counted = schema(R"x({"type":"string","pattern":"^[ab]{9,12}(?=c)c$"})x");
  BOOST_TEST(accepts(counted, R"("aaaabbbbaaaac")"));
  for (const char* const text : {R"("aaaabbbbc")", R"("aaaabbbbaaaaac")"}) BOOST_TEST(!accepts(counted, text));
  const auto lengths = schema(R"x({"type":"string","pattern":"^(?!-)[\\p{L}-]{1,300}(?<!-)$","maxLength":4})x");
  for (const char* const text : {R"("a")", R"("a--b")"}) BOOST_TEST(accepts(lengths, text));
  for (const char* const text : {R"("")", R"("-a")", R"("a-")", R"("abcde")"}) BOOST_TEST(!accepts(lengths, text));
}

BOOST_AUTO_TEST_CASE(escapes_are_decoded) {
  const auto made =
      schema(R"({"type":"object","properties":{"k\u00e9y":{"enum":["a\"b","\ud83d\ude00"]}},"required":["k\u00e9y"],
    "additionalProperties":false})");
  BOOST_TEST(accepts(made, R"({"k\u00e9y":"a\"b"})"));
  BOOST_TEST(accepts(made, "{\"k\xc3\xa9y\":\"\\u0061\\u0022b\"}"));
  BOOST_TEST(accepts(made, R"({"\u006b\u00E9y":"\uD83D\uDE00"})"));
  BOOST_TEST(!is_prefix(made, R"({"\u00e)"));
  BOOST_TEST(!is_prefix(made, R"({"k\u00e9y":"\uD83C)"));
  BOOST_TEST(!is_prefix(schema(R"({"type":"string"})"), R"("\ud800x)"));
  BOOST_TEST(!is_prefix(schema(R"({"type":"string"})"), "\"\xff"));
}

BOOST_AUTO_TEST_CASE(lengths_count_code_points) {
  const auto made = schema(R"({"type":"string","minLength":2,"maxLength":3,"pattern":"^(ab|\u8a9e)+$"})");
  BOOST_TEST(accepts(made, "\"ab\""));
  BOOST_TEST(accepts(made, "\"\xe8\xaa\x9e\xe8\xaa\x9e\""));
  BOOST_TEST(accepts(made, "\"ab\xe8\xaa\x9e\""));
  BOOST_TEST(!accepts(made, "\"abab\""));
  BOOST_TEST(!is_prefix(made, "\"aba"));
}

BOOST_AUTO_TEST_CASE(a_least_length_alone_leaves_all_longer_texts) {
  for (const auto& [format, text] : {std::pair{"uuid", "2f5a1b4e-9c7d-4e3f-8a6b-0c1d2e3f4a5b"},
                                     {"date", "2026-11-27"},
                                     {"email", "a@example.org"},
                                     {"uri", "https://example.org/a"}}) {
    const auto made = schema(R"({"type":"object","properties":{"a":{"type":"string","minLength":1,"format":")" +
                             std::string(format) + "\"}}}");
    BOOST_TEST(accepts(made, R"({"a":")" + std::string(text) + "\"}"), format);
  }
  const auto pairs = schema(R"({"type":"string","pattern":"^([a-z]{2})+$","minLength":5})");
  for (const char* text : {"\"abcdef\"", "\"abcdefgh\""}) BOOST_TEST(accepts(pairs, text), text);
  for (const char* text : {"\"abcd\"", "\"abcde\"", "\"abcdefg\""}) BOOST_TEST(!accepts(pairs, text), text);
  const auto tail = schema(R"({"type":"string","pattern":"^[a-z]+(@[a-z]{3}[.]com)?$","minLength":2})");
  BOOST_TEST(accepts(tail, "\"abc@abc.com\""));
  BOOST_TEST(!accepts(tail, "\"a\""));
  BOOST_TEST(!refusal(R"({"type":"string","pattern":"^[a-z]{3}$","minLength":4})").empty());
}

BOOST_AUTO_TEST_CASE(counts_at_the_ends_of_a_match_need_no_states) {
  const auto made = schema(R"x({"type":"string","pattern":"[a-z]{2,20000}-$|^b[\\p{L}_]{1,20000}"})x");
  for (const char* const text : {R"("1ab-")", R"("abcdef-")", R"("b_")", "\"b\xc3\xa4\xc3\xa4-1\""})
    BOOST_TEST(accepts(made, text), text);
  for (const char* const text : {R"("a-")", R"("ab-1")", R"("b")", R"("ab_")"}) BOOST_TEST(!accepts(made, text), text);
  const auto ahead = schema(R"x({"type":"string","pattern":"^a(?=b{1,20000})[^]*c$"})x");
  BOOST_TEST(accepts(ahead, R"("abbc")"));
  BOOST_TEST(!accepts(ahead, R"("acbc")"));
  const auto empty = schema(R"({"type":"string","pattern":"$^"})");
  BOOST_TEST(accepts(empty, R"("")"));
  BOOST_TEST(!accepts(empty, R"("a")"));
}

BOOST_AUTO_TEST_CASE(long_limits_beside_patterns_whose_lengths_repeat) {
  const auto made = schema(
      R"({"type":"string","pattern":"^(?:[a-z]{4})*(?:[a-z]{2}==|[a-z]{3}=)?$","minLength":9000,"maxLength":21847})");
  const auto text = [](std::size_t letters, const char* tail) { return '"' + std::string(letters, 'a') + tail + '"'; };
  BOOST_TEST(accepts(made, text(9000, "")));
  BOOST_TEST(accepts(made, text(21842, "==")));
  for (const auto& wrong : {text(8996, ""), text(8998, ""), text(9001, ""), text(21848, "")})
    BOOST_TEST(!accepts(made, wrong));
  BOOST_TEST(is_prefix(made, text(21840, "").substr(0, 21841)));
  BOOST_TEST(!is_prefix(made, text(21846, "").substr(0, 21846)));  // 21,847 letters cannot be completed
  const auto odd = schema(R"({"type":"string","pattern":"^a(bb)*$","maxLength":1000000,"minLength":5})");
  BOOST_TEST(accepts(odd, '"' + ("a" + std::string(10'000, 'b')) + '"'));
  BOOST_TEST(!accepts(odd, '"' + ("a" + std::string(10'001, 'b')) + '"'));
  BOOST_TEST(!accepts(odd, R"("abb")"));
}

BOOST_AUTO_TEST_CASE(white_space_is_limited) {
  const auto made = schema(R"({"type":"array"})");
  BOOST_TEST(accepts(made, " [ 1 ,\n\t2 ] \n"));
  BOOST_TEST(!is_prefix(made, std::string(1000, ' ')));
}

BOOST_AUTO_TEST_CASE(nesting_is_limited) {
  const auto made = schema("{}");
  const std::string open(200, '['), close(200, ']');
  BOOST_TEST(accepts(made, open + close));
  BOOST_TEST(!is_prefix(made, std::string(100'000, '[')));
}

BOOST_AUTO_TEST_CASE(json_objects) {
  const auto made = grammar::json_object().value();
  BOOST_TEST(accepts(made, R"({"a":[1,-2.5e3,null,true,{"b":"\n"}]})"));
  for (const char* text : {"[]", "1", "{a:1}", "{\"a\":01}", "{\"a\":1,}", "{\"a\":'x'}"})
    BOOST_TEST(!accepts(made, text), text);
}

BOOST_AUTO_TEST_CASE(branches_of_one_of_exclude_each_other) {
  const auto made = schema(R"({"oneOf":[{"type":"object","required":["a"]},{"type":"object","required":["b"]}]})");
  BOOST_TEST(accepts(made, R"({"a":1})"));
  BOOST_TEST(accepts(made, R"({"b":1,"c":2})"));
  BOOST_TEST(!accepts(made, R"({"b":1,"a":2})"));
  BOOST_TEST(!accepts(made, "{}"));
}

BOOST_AUTO_TEST_CASE(recursive_schemas) {
  const auto made =
      schema(R"({"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#"}},"required":["v"],
    "additionalProperties":false})");
  BOOST_TEST(accepts(made, R"({"v":1,"next":{"next":{"v":3},"v":2}})"));
  BOOST_TEST(!accepts(made, R"({"v":1,"next":{"next":{"v":3}}})"));
  BOOST_TEST(refusal(R"({"type":"object","properties":{"n":{"$ref":"#"}},"required":["n"]})") ==
             "no value satisfies the schema");
}

BOOST_AUTO_TEST_CASE(host_names_have_no_punycode) {
  const std::string text = R"({"type":"string","format":"hostname"})";
  options exact;
  exact.formats = format_rule::asserted;
  BOOST_TEST(!grammar::from_json_schema(text, exact));
  const auto made = schema(text);
  const std::string longest(63, 'a');
  for (const auto& host : {std::string("a"), std::string("ab"), std::string("a-b"), std::string("a--b"),
                           std::string("www.Example.com"), std::string("1.2-3"), longest + "." + longest})
    BOOST_TEST(accepts(made, '"' + host + '"'), host);
  for (const auto& host : {std::string(), std::string("."), std::string("a."), std::string(".a"), std::string("-a"),
                           std::string("a-"), std::string("a_b"), std::string("xn--X"), std::string("ab--c"),
                           longest + "a", longest + "." + longest + "." + longest + "." + longest})
    BOOST_TEST(!accepts(made, '"' + host + '"'), host);
  // What may be a host name is not accepted as something else.
  const auto other = schema(R"({"type":"string","not":{"format":"hostname"}})");
  BOOST_TEST(accepts(other, R"("a b")"));
  for (const char* const host : {R"("a.b")", R"("xn--X")"}) BOOST_TEST(!accepts(other, host));
}

BOOST_AUTO_TEST_CASE(formats_without_a_type_and_unknown_formats) {
  const auto made = schema(R"({"properties":{"a":{"format":"ipv4"},"b":{"type":"string","format":"color"},
    "c":{"type":"string","format":"regex"}}})");
  for (const char* const text : {R"({"a":"1.2.3.4"})", R"({"a":5,"b":"?"})", R"({"c":"^(?:a|[a-d]{2,3})+\\.$"})",
                                 R"({"c":"([a-z0-9_-]+(\\s\\d)?)*"})", "{}"})
    BOOST_TEST(accepts(made, text), text);
  for (const char* const text : {R"({"a":"x"})", R"({"c":"("})", R"({"c":"a**"})", R"({"c":"[a-Z]"})",
                                 R"({"c":"a{3,2}"})", R"({"c":"\\"})", R"({"c":"(?<=a+)b"})", R"-({"c":")"})-"})
    BOOST_TEST(!accepts(made, text), text);
  const std::vector<std::string> notes{"/properties/b/format: the format color is not known and not enforced",
                                       "/properties/c/format: only a part of the format regex is accepted"};
  BOOST_TEST(made->notes() == notes, boost::test_tools::per_element());
  BOOST_TEST(refusal(R"({"format":"ipv4"})").starts_with("/format: "));
  BOOST_TEST(refusal(R"({"contentEncoding":"base64"})").starts_with("/contentEncoding: "));
  BOOST_TEST(schema(R"({"type":"string","contentEncoding":"base64"})")->notes().size() == 1u);
}

BOOST_AUTO_TEST_CASE(what_all_schemas_share_can_be_prepared) {
  BOOST_TEST(grammar::prepare().has_value());
  options how;
  how.bounds = limits_to_generate();
  BOOST_TEST(grammar::prepare(how).has_value());
}

BOOST_AUTO_TEST_CASE(keywords_beside_references) {
  const std::string rest = R"("properties":{"a":{"$ref":"#/definitions/b","maximum":9,"description":"d"}},
    "definitions":{"b":{"type":"integer","minimum":1}}})";
  for (const char* const begin :
       {"{", R"({"$schema":"https://json-schema.org/draft/2019-09/schema",)",
        R"({"$schema":"https://json-schema.org/draft-07/schema#",)", R"({"$schema":"http://example.com/mine",)"}) {
    const auto made = schema(begin + rest);
    BOOST_TEST(accepts(made, R"({"a":9})"));
    for (const char* const text : {R"({"a":10})", R"({"a":0})"}) BOOST_TEST(!accepts(made, text), begin);
  }
  const auto old = schema(R"({"$schema":"http://json-schema.org/draft-07/schema#",)" + rest);
  BOOST_TEST(accepts(old, R"({"a":10})"));
  BOOST_TEST(!accepts(old, R"({"a":0})"));
}

BOOST_AUTO_TEST_CASE(metaschemas_of_the_standard) {
  for (const int draft : {4, 6, 7}) {
    const auto name = "http://json-schema.org/draft-0" + std::to_string(draft) + "/schema#";
    const auto made = schema(R"({"properties":{"s":{"$ref":")" + name + R"("},"t":{"$ref":")" + name +
                             R"(/definitions/stringArray"}}})");
    for (const char* const text : {R"({"s":{"type":["null","string"],"minLength":1}})", R"({"t":["a"]})",
                                   R"({"s":{"properties":{"a":{"items":[{"enum":[1]}]}},"pattern":"^a"}})"})
      BOOST_TEST(accepts(made, text), text);
    for (const char* const text : {R"({"s":{"type":"strin"}})", R"({"s":{"minLength":-1}})", R"({"t":["a","a"]})",
                                   R"({"s":{"properties":{"a":{"items":[{"enum":1}]}}}})", R"({"s":{"pattern":"("}})"})
      BOOST_TEST(!accepts(made, text), text);
    const char* const bound = R"({"s":{"maximum":1,"exclusiveMaximum":true}})";
    BOOST_TEST(accepts(made, bound) == (draft == 4));
    BOOST_TEST(accepts(made, R"({"s":false})") == (draft > 4));
    BOOST_TEST(accepts(made, R"({"s":{"if":1}})") == (draft < 7));
    BOOST_TEST(accepts(made, R"({"s":{"maxLength":1}})"));
    BOOST_TEST(accepts(made, R"({"s":{"maxLength":1.0}})") == (draft > 4));
  }
  // A document of an older draft does not know the keywords of a later one.
  BOOST_TEST(!refusal(R"({"$schema":"http://json-schema.org/draft-04/schema#",
    "$ref":"http://json-schema.org/draft-07/schema#"})")
                  .empty());
}

BOOST_AUTO_TEST_CASE(integers_of_draft_4_have_no_fraction) {
  const std::string rest = R"("properties":{"a":{"type":"integer"},"b":{"type":"integer","enum":[1,2]},
    "c":{"type":"integer","minimum":1}}})";
  for (const char* const draft : {"03", "04", "06"}) {
    const auto made =
        schema(R"({"$schema":"http://json-schema.org/draft-)" + std::string(draft) + R"(/schema#",)" + rest);
    BOOST_TEST(accepts(made, R"({"a":0,"b":1,"c":2})"));
    for (const char* const text : {R"({"a":1.0})", R"({"b":1.0})", R"({"c":1.0})", R"({"a":1e1})"})
      BOOST_TEST(accepts(made, text) == (std::string_view(draft) == "06"), draft << text);
  }
}

BOOST_AUTO_TEST_CASE(dialects) {
  const auto with = [](const std::string& uri, const std::string& rest) {
    return schema(R"({"$schema":")" + uri + "\"," + rest + "}");
  };
  const std::string bound = R"("minimum":1,"exclusiveMinimum":true)";
  for (const char* const uri :
       {"http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-04/schema",
        "https://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-04/hyper-schema#",
        "http://json-schema.org/draft-03/schema#", "http://json-schema.org/schema#", "",
        "iglu:com.acme/a/jsonschema/1-0-0"}) {
    const auto made = with(uri, bound);
    BOOST_TEST(accepts(made, "2"), uri);
    BOOST_TEST(!accepts(made, "1"), uri);
    BOOST_TEST(made->notes().size() == (std::string_view(uri).starts_with("iglu") ? 1u : 0u), uri);
  }
  BOOST_TEST(refusal(R"({"$schema":"http://example.com/2020-12/mine"})").starts_with("/$schema: "));
  const auto third = with("http://json-schema.org/draft-03/schema#",
                          R"("properties":{"a":{"type":"any","required":true},"b":{"type":"number","divisibleBy":3}},
    "extends":{"disallow":"array"},"dependencies":{"b":"c"},"minProperties":9)");
  for (const char* const text : {R"({"a":[]})", R"({"a":1,"b":6,"c":0})", "5"}) BOOST_TEST(accepts(third, text), text);
  for (const char* const text : {"{}", R"({"a":1,"b":6})", R"({"a":1,"b":5,"c":0})", "[]"})
    BOOST_TEST(!accepts(third, text), text);
  const std::string tuple = R"("items":[{"type":"string"}],"additionalItems":false)";
  BOOST_TEST(!accepts(with("https://json-schema.org/draft/2019-09/schema", tuple), R"(["a",1])"));
  const auto again = with("https://json-schema.org/draft/2019-09/schema",
                          R"("$recursiveAnchor":true,"properties":{"v":{"type":"integer"},"n":{"$recursiveRef":"#"}})");
  BOOST_TEST(accepts(again, R"({"n":{"n":{"v":1}}})"));
  BOOST_TEST(!accepts(again, R"({"n":{"n":{"v":"x"}}})"));
}

BOOST_AUTO_TEST_CASE(negated_conditions_on_members) {
  const auto rest = schema(R"({"type":"object","not":{"properties":{"a":{}},"patternProperties":{"^x":{}},
    "additionalProperties":{"type":"string"}}})");
  for (const char* const text : {R"({"b":1})", R"({"a":1,"c":"s","b":[]})"}) BOOST_TEST(accepts(rest, text), text);
  for (const char* const text : {"{}", R"({"b":"s"})", R"({"a":1,"xb":1})"}) BOOST_TEST(!accepts(rest, text), text);
  const auto pattern = schema(R"({"if":{"patternProperties":{"^x":{"type":"string"}}},"then":{"required":["q"]},
    "type":"object"})");
  for (const char* const text : {R"({"xb":1})", R"({"q":0})", R"({"xa":"s","xb":1,"c":"s"})"})
    BOOST_TEST(accepts(pattern, text), text);
  for (const char* const text : {"{}", R"({"xa":"s"})", R"({"b":1})"}) BOOST_TEST(!accepts(pattern, text), text);
  const auto names =
      schema(R"({"not":{"propertyNames":{"pattern":"^a"}},"type":"object","properties":{"b":{"type":"null"}}})");
  for (const char* const text : {R"({"c":1})", R"({"b":null,"a":1})", R"({"":1})"})
    BOOST_TEST(accepts(names, text), text);
  for (const char* const text : {"{}", R"({"ab":1})", R"({"b":1})"}) BOOST_TEST(!accepts(names, text), text);
  const auto one = schema(R"({"oneOf":[{"type":"object","additionalProperties":{"type":"string"}},
    {"type":"object","additionalProperties":{"type":"integer"}}]})");
  for (const char* const text : {R"({"a":"s"})", R"({"a":1,"b":2})"}) BOOST_TEST(accepts(one, text), text);
  for (const char* const text : {"{}", R"({"a":1,"b":"s"})", R"({"a":true})"}) BOOST_TEST(!accepts(one, text), text);
}

BOOST_AUTO_TEST_CASE(choices_that_are_not_supported_are_left_out) {
  const auto made = schema(R"({"oneOf":[{"required":["a"],"properties":{"a":{"type":"string"}}},
    {"properties":{"c":{"uniqueItems":true}},"required":["c"]}],"type":"object"})");
  for (const char* const text : {R"({"a":"s"})", R"({"c":[1]})", R"({"c":[1],"a":2})"})
    BOOST_TEST(accepts(made, text), text);
  for (const char* const text : {R"({"a":"s","c":[1]})", "{}", R"({"a":"s","c":[1,1]})"})  // the last one is valid
    BOOST_TEST(!accepts(made, text), text);
  BOOST_TEST(made->notes().size() == 1u);
}

BOOST_AUTO_TEST_CASE(one_of_knows_what_is_required_beside_it) {
  const auto made = schema(R"({"type":"object","required":["t"],"oneOf":[
    {"properties":{"t":{"const":"a"},"v":{"items":{"type":"string"}}}},
    {"properties":{"t":{"const":"b"},"v":{"items":{"type":"string"},"uniqueItems":true,"contains":{"minLength":1}}}}]})");
  BOOST_TEST(made->notes().empty());
  for (const char* const text : {R"({"t":"a","v":[]})", R"({"t":"b","v":["x"]})"})
    BOOST_TEST(accepts(made, text), text);
  for (const char* const text : {R"({"t":"b","v":[]})", R"({"v":[]})"}) BOOST_TEST(!accepts(made, text), text);
}

/// Numbers of nodes and alternatives, which the time to compile follows.
BOOST_AUTO_TEST_CASE(large_schemas_stay_small) {
  std::string kinds, choices, conditions, optional;
  for (int i = 0; i < 60; ++i) {
    const std::string n = std::to_string(i), comma = i > 0 ? "," : "";
    kinds += comma + "\"k" + n + R"(":{"type":"object","properties":{"kind":{"enum":["k)" + n +
             R"("]},"child":{"$ref":"#/definitions/any"}},"required":["kind"]})";
    choices += comma + R"({"$ref":"#/definitions/k)" + n + "\"}";
    if (i >= 14) continue;
    conditions += comma + R"({"if":{"properties":{"k":{"const":)" + n + R"(}}},"then":{"required":["r)" + n + "\"]}}";
    optional += comma + R"({"properties":{"a)" + n + R"(":{"type":"string"}},"required":["a)" + n + "\"]}";
  }
  options how;
  how.bounds.nodes_max = 80;
  how.bounds.steps_max = 60'000;
  const auto one = grammar::from_json_schema(
      R"({"definitions":{"any":{"oneOf":[)" + choices + "]}," + kinds + R"(},"$ref":"#/definitions/any"})", how);
  BOOST_REQUIRE(one.has_value());
  BOOST_TEST(accepts(*one, R"({"kind":"k7","child":{"kind":"k59"}})"));
  BOOST_TEST(!accepts(*one, R"({"kind":"k7","child":{"kind":"k60"}})"));
  const auto kind = schema(R"({"type":"object","required":["k"],"properties":{"k":{"type":"integer","maximum":13}},
    "allOf":[)" + conditions +
                           "]}");
  for (const char* const text : {R"({"k":3,"r3":0})", R"({"k":-1})"}) BOOST_TEST(accepts(kind, text), text);
  for (const char* const text : {R"({"k":3,"r4":0})", R"({"r3":0})"}) BOOST_TEST(!accepts(kind, text), text);
  const auto exactly = schema(R"({"type":"object","oneOf":[)" + optional + "]}");
  for (const char* const text : {R"({"a3":""})", R"({"a4":0,"a3":""})"}) BOOST_TEST(accepts(exactly, text), text);
  for (const char* const text : {R"({"a3":"","a4":""})", "{}", R"({"a3":1})"})
    BOOST_TEST(!accepts(exactly, text), text);
}

/// Each took seconds or gigabytes when only the number of combinations was limited.
BOOST_AUTO_TEST_CASE(many_conditions_at_one_place_are_too_much_work) {
  std::string dependent, conditions, lengths;
  for (int i = 0; i < 3000; ++i) {
    const std::string n = std::to_string(i), comma = i > 0 ? "," : "";
    dependent += comma + "\"a" + n + R"(":["b"])";
    lengths += comma + R"({"anyOf":[{"minLength":)" + n + R"(},{"maxLength":9}]})";
    if (i >= 2400) continue;
    conditions += comma + R"({"if":{"properties":{"a)" + n + R"(":{"const":1}},"required":["a)" + n +
                  R"("]},"then":{"required":["b)" + n + "\"]}}";
  }
  for (const std::string& text :
       {R"({"type":"object","maxProperties":5,"dependentRequired":{)" + dependent + "}}",
        R"({"type":"object","allOf":[)" + conditions + "]}", R"({"type":"string","allOf":[)" + lengths + "]}"}) {
    const auto made = grammar::from_json_schema(text, {});
    BOOST_REQUIRE(!made.has_value());
    BOOST_TEST(made.error().message.find("compilation steps") != std::string::npos, made.error().message);
  }
}

BOOST_AUTO_TEST_CASE(one_of_with_the_same_reference_twice) {
  const auto made = schema(R"({"type":"object","oneOf":[{"required":["b"]},{"$ref":"#/$defs/p"},{"$ref":"#/$defs/p"}],
    "$defs":{"p":{"required":["a"]}}})");
  BOOST_TEST(accepts(made, R"({"b":1})"));
  for (const char* const text : {R"({"a":1})", R"({"a":1,"b":1})", "{}"}) BOOST_TEST(!accepts(made, text), text);
}

BOOST_AUTO_TEST_CASE(one_of_objects_with_optional_members) {
  std::string branches;
  for (int i = 0; i < 7; ++i) {
    branches += i > 0 ? ",{" : "{";
    branches += R"("type":"object","properties":{)";
    for (int k = 0; k < 8; ++k)
      branches += std::string(k > 0 ? "," : "") + "\"p" + std::to_string(i + k) + R"(":{"type":")" +
                  (i % 2 == 0 ? "string" : "integer") + "\"}";
    branches += "}}";
  }
  const auto made = schema(R"({"oneOf":[)" + branches + "]}");
  // Only the third branch, of p2 to p9, is left.
  BOOST_TEST(accepts(made, R"({"p1":1,"p3":"","p5":"","p9":"","p10":0,"p12":""})"));
  for (const char* const text : {R"({"p7":true})", R"({"p3":"","p5":""})", "{}"})
    BOOST_TEST(!accepts(made, text), text);
  const auto two = schema(R"({"oneOf":[{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}},
    {"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"minimum":1}}},
    {"type":"object","properties":{"c":{"type":"integer"},"d":{"type":"null"}},"required":["d"]}]})");
  for (const char* const text : {R"({"a":""})", R"({"b":0,"c":2})", R"({"a":"","b":"","c":0})",
                                 R"({"d":null,"a":1,"c":0})", R"({"d":1,"c":0})", R"({"d":null,"a":1,"b":"","c":2})"})
    BOOST_TEST(accepts(two, text), text);
  for (const char* const text : {"{}", R"({"c":1})", R"({"a":"","b":0,"c":1})", R"({"d":null,"a":"","c":1})",
                                 R"({"d":null,"c":1})", R"({"a":true})"})
    BOOST_TEST(!accepts(two, text), text);
}

BOOST_AUTO_TEST_CASE(dependencies_beside_a_limit_of_members) {
  const auto made = schema(R"({"maxProperties":2,"dependentRequired":{"b":["c"]}})");
  for (const char* const text : {R"({"b":1,"c":2})", R"({"x":1,"y":2})"}) BOOST_TEST(accepts(made, text), text);
  for (const char* const text : {R"({"b":1})", R"({"b":1,"c":2,"d":3})"}) BOOST_TEST(!accepts(made, text), text);
  BOOST_TEST(!is_prefix(made, R"({"x":1,"b":)"));
}

BOOST_AUTO_TEST_CASE(branches_of_one_of_that_are_integers_in_other_words) {
  const auto made = schema(R"({"properties":{"a":{"type":"number","multipleOf":1},
    "b":{"oneOf":[{"type":"number","multipleOf":1},{"type":"integer","minimum":2},{"type":"boolean"}]}}})");
  for (const char* const each : {R"({"a":1,"b":1})", R"({"b":true})"}) BOOST_TEST(accepts(made, each), each);
  for (const char* const each : {R"({"b":10})", R"({"b":2.0})", R"({"b":0.5})"}) BOOST_TEST(!accepts(made, each), each);
}

BOOST_AUTO_TEST_CASE(constants_that_are_arrays_or_objects_are_negated) {
  const auto made = schema(R"({"not":{"enum":[{"a":1,"b":{"c":[]}},["x",2],[],{}]}})");
  for (const char* const text : {R"({"a":1})", R"({"a":1,"b":{"c":[1]}})", R"({"b":{"c":[]},"a":1,"d":0})", R"(["x"])",
                                 R"(["x",3])", R"(["x",2,1])", "1", R"({"a":2,"b":{"c":[]}})", R"({"a":1,"b":{}})"})
    BOOST_TEST(accepts(made, text), text);
  for (const char* const text : {R"({"a":1,"b":{"c":[]}})", R"({"b":{"c":[]},"a":1.0})", R"(["x",2])", "[]", "{}"})
    BOOST_TEST(!accepts(made, text), text);
  const auto one =
      schema(R"({"oneOf":[{"enum":[{"a":1},["a"],"a"]},{"type":"object"},{"type":"array","maxItems":1}]})");
  for (const char* const text : {R"("a")", R"({"a":2})", "{}", "[]", R"(["b"])"}) BOOST_TEST(accepts(one, text), text);
  for (const char* const text : {R"({"a":1})", R"(["a"])", R"("b")"}) BOOST_TEST(!accepts(one, text), text);
}

BOOST_AUTO_TEST_CASE(formats_of_later_drafts_are_not_negated) {
  const std::string rest = R"("oneOf":[{"type":"string","maxLength":5},{"type":"string","format":"uuid"}]})";
  const auto old = schema(R"({"$schema":"http://json-schema.org/draft-04/schema#",)" + rest);
  const auto recent = schema(R"({"$schema":"https://json-schema.org/draft/2020-12/schema",)" + rest);
  for (const auto& made : {old, recent}) BOOST_TEST(accepts(made, R"("2f5a1b4e-9c7d-4e3f-8a6b-0c1d2e3f4a5b")"));
  BOOST_TEST(!accepts(old, R"("a")"));  // where the format is not known, both branches hold
  BOOST_TEST(accepts(recent, R"("a")"));
}

BOOST_AUTO_TEST_CASE(dependencies_that_only_require_names) {
  std::string text = R"({"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{)";
  for (const char name : std::string("abcdefghijklmnopqrst"))
    text += std::string("\"") + name + R"(":{"type":"object","required":[")" + name + name + R"("],"title":"x"},)";
  const auto made = schema(text + R"("u":{"required":["v"],"properties":{"w":{"type":"null"}}}}})");
  for (const char* const each : {"{}", "1", R"({"a":1,"aa":2,"w":3})", R"({"u":1,"v":2,"w":null,"t":1,"tt":1})"})
    BOOST_TEST(accepts(made, each), each);
  for (const char* const each : {R"({"a":1})", R"({"a":1,"bb":2})", R"({"u":1,"v":2,"w":3})", R"({"u":1})"})
    BOOST_TEST(!accepts(made, each), each);
}

BOOST_AUTO_TEST_CASE(refusals_name_the_keyword) {
  BOOST_TEST(refusal(R"({"properties":{"a":{"$ref":"http://x/y"}}})").starts_with("/properties/a/$ref: "));
  BOOST_TEST(refusal(R"({"properties":{"a":{"pattern":"(x)\\1"}}})").starts_with("/properties/a/pattern: "));
  BOOST_TEST(refusal(R"({"not":{"uniqueItems":true}})").starts_with("/not/uniqueItems: "));
  BOOST_TEST(refusal(R"({"minLength":-1})").starts_with("/minLength: "));
  BOOST_TEST(refusal(R"({"type":"strin"})").starts_with("/type: "));
  BOOST_TEST(refusal(R"({"a":1,"a":2})").find("twice") != std::string::npos);
  BOOST_TEST(refusal(std::string(5'000, '[')).find("levels") != std::string::npos);
  for (const char* text :
       {"", "{", "{\"a\"}", "[1,]", "{\"a\":1,}", "nul", "\"\\ud800\"", "1 2", "{\"type\":5}", "{\"not\":3}"})
    BOOST_TEST(!refusal(text).empty(), text);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::grammar
