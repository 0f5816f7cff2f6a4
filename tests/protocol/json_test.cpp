// The JSON reader: what it refuses (size, depth, repeated names, text that is not JSON anywhere in the document), and
// that its views give back what the text says.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "protocol/json/json.hpp"

namespace skein::protocol {
namespace {

std::string nested(std::size_t depth) { return std::string(depth, '[') + "1" + std::string(depth, ']'); }

std::string field_of_refusal(const std::string& text) {
  const auto document = json_document::parse(text, {});
  BOOST_REQUIRE_MESSAGE(!document.has_value(), text);
  BOOST_TEST((document.error().kind == error_kind::invalid_argument));
  return document.error().field;
}

BOOST_AUTO_TEST_SUITE(json)

BOOST_AUTO_TEST_CASE(views_give_back_the_text) {
  const auto document =
      json_document::parse(R"({"a":[1,-2,3.5,"x",true,null,{}],"b":{"c":18446744073709551615,"d":2.0},"e":""})", {});
  BOOST_REQUIRE(document.has_value());
  const auto root = document->root();
  BOOST_TEST(root.is(json_kind::object));

  std::vector<json_value> elements;
  for (const auto element : root.member("a")->elements()) elements.push_back(element);
  BOOST_REQUIRE(elements.size() == 7u);
  BOOST_TEST(*elements[0].integer() == 1);
  BOOST_TEST(*elements[1].number() == -2.0);
  BOOST_TEST(*elements[2].number() == 3.5);
  BOOST_TEST(!elements[2].integer().has_value());
  BOOST_TEST(*elements[3].text() == "x");
  BOOST_TEST(*elements[4].boolean());
  BOOST_TEST(elements[5].is(json_kind::null));
  BOOST_TEST(elements[6].is(json_kind::object));

  std::vector<std::string> names;
  for (const auto member : root.members()) names.emplace_back(member.name);
  BOOST_TEST(names == (std::vector<std::string>{"a", "b", "e"}));

  const auto b = *root.member("b");
  BOOST_TEST(!b.member("c")->integer().has_value());
  BOOST_TEST(*b.member("c")->unsigned_integer() == ~0ull);
  BOOST_TEST(*b.member("d")->integer() == 2);
  BOOST_TEST(!b.member("e").has_value());
  BOOST_TEST(!elements[0].member("x").has_value());
  BOOST_TEST(root.member("e")->text()->empty());
  BOOST_TEST(!root.member("a")->is_empty_array());
}

BOOST_AUTO_TEST_CASE(depth_has_a_limit) {
  BOOST_TEST(json_document::parse(nested(64), {}).has_value());
  BOOST_TEST(!json_document::parse(nested(65), {}).has_value());
  BOOST_TEST(!json_document::parse(std::string(1u << 20, '['), {}).has_value());
  std::string objects = "1";
  for (int i = 0; i < 64; ++i) objects = "{\"a\":" + objects + "}";
  BOOST_TEST(json_document::parse(objects, {}).has_value());
  BOOST_TEST(!json_document::parse("[" + objects + "]", {}).has_value());
}

BOOST_AUTO_TEST_CASE(size_has_a_limit) {
  const auto refused = json_document::parse("[1,2]", {.bytes_max = 4, .depth_max = 64});
  BOOST_REQUIRE(!refused.has_value());
  BOOST_TEST((refused.error().kind == error_kind::too_large));
  BOOST_TEST(json_document::parse("[1,2]", {.bytes_max = 5, .depth_max = 64}).has_value());
}

BOOST_AUTO_TEST_CASE(a_name_may_stand_once_at_any_depth) {
  BOOST_TEST(field_of_refusal(R"({"a":1,"b":2,"a":3})") == "a");
  BOOST_TEST(field_of_refusal(R"({"b":{"a":1,"a":1}})") == "b.a");
  BOOST_TEST(field_of_refusal(R"([0,[{"x":[{"y":{"z":1,"\u007a":1}}]}]])") == "[1][0].x[0].y.z");
  BOOST_TEST(field_of_refusal(R"({"":1,"":2})").empty());
  BOOST_TEST(json_document::parse(R"([{"a":1},{"a":2,"b":{"a":3}}])", {}).has_value());

  std::string deepest = R"({"k":1,"k":2})";
  for (int i = 0; i < 63; ++i) deepest = "[" + deepest + "]";
  BOOST_TEST(field_of_refusal(deepest).ends_with("[0].k"));

  const std::string long_name(1000, 'n');
  BOOST_TEST(field_of_refusal("{\"" + long_name + "\":1,\"" + long_name + "\":1}") == std::string(64, 'n'));
}

BOOST_AUTO_TEST_CASE(many_names) {
  std::string object = "{";
  for (int i = 0; i < 100000; ++i) object += "\"" + std::to_string(i) + "\":0,";
  BOOST_TEST(json_document::parse(object + "\"last\":0}", {}).has_value());
  BOOST_TEST(field_of_refusal(object + "\"500\":0}") == "500");
}

BOOST_AUTO_TEST_CASE(nothing_is_no_document) {
  BOOST_TEST(!json_document::parse({}, {}).has_value());
  BOOST_TEST(!json_document::parse("", {}).has_value());
  BOOST_TEST(!json_document::parse(" \n", {}).has_value());
  BOOST_TEST(!json_document::parse("\xef\xbb\xbf", {}).has_value());
}

BOOST_AUTO_TEST_CASE(a_byte_order_mark_may_come_first) {
  const auto document = json_document::parse("\xef\xbb\xbf{\"a\":1}", {});
  BOOST_REQUIRE(document.has_value());
  BOOST_TEST(document->root().member("a")->integer().value() == 1);
  BOOST_TEST(!json_document::parse("\xef\xbb\xbf\xef\xbb\xbf{}", {}).has_value());
}

BOOST_AUTO_TEST_CASE(a_refusal_says_what_is_wrong_with_a_value) {
  const auto why = [](const char* text) { return json_document::parse(text, {}).error().message; };
  BOOST_TEST(why(R"({"a":"\ud83d"})") == "Invalid JSON: a string has an invalid escape or an unpaired surrogate");
  BOOST_TEST(why(R"({"a":18446744073709551616})") ==
             "Invalid JSON: a number is malformed or does not fit into 64 bits");
}

BOOST_AUTO_TEST_CASE(damage_in_unread_data_is_found) {
  for (const char* text : {R"({"a":1,"x":[1,2 bad }})", R"({"a":1,"x":"\ud800"})", R"({"a":1} ,)", R"({"a":1}{"b":2})",
                           "{\"a\":1,\"x\":\"\xff\"}", R"({"a":01})", R"({"a":1.})", R"({"a":'1'})", R"({a:1})"})
    BOOST_TEST(field_of_refusal(text).empty());
}

BOOST_AUTO_TEST_CASE(a_document_can_move) {
  auto document = json_document::parse(R"({"a":"text"})", {});
  BOOST_REQUIRE(document.has_value());
  const json_document moved = std::move(*document);
  BOOST_TEST(*moved.root().member("a")->text() == "text");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::protocol
