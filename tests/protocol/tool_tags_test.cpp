// Calls of tools inside a text: both ways to write them, what is none of them, and how an answer shows them.
#include "protocol/chat/tool_tags.hpp"

#include <boost/test/unit_test.hpp>

#include "protocol/requests/dialect.hpp"

using namespace skein::protocol;

BOOST_AUTO_TEST_SUITE(tool_tags)

BOOST_AUTO_TEST_CASE(calls_are_taken_out_of_the_text) {
  const std::string tagged =
      R"(Well. <tool_call>{"name":"add","arguments":{"a":1,"b":[2.5,null,true,"x\n"],"c":{}}}</tool_call> So.)";
  const auto found = find_tool_calls(tagged, true, true);
  BOOST_REQUIRE_EQUAL(found.calls.size(), 1u);
  BOOST_TEST(found.calls[0].name == "add");
  BOOST_TEST(found.calls[0].arguments == R"({"a":1,"b":[2.5,null,true,"x\n"],"c":{}})");
  BOOST_TEST(found.rest == "Well.  So.");
  BOOST_TEST(find_tool_calls(tagged, false, true).calls.empty());
  const auto lines =
      find_tool_calls("@@tool {\"name\":\"a\",\"arguments\":{}}\n@@tool {\"name\":\"b\",\"arguments\":{}}", true, true);
  BOOST_REQUIRE_EQUAL(lines.calls.size(), 2u);
  BOOST_TEST(lines.calls[1].name == "b");
  BOOST_TEST(lines.rest == "");
}

BOOST_AUTO_TEST_CASE(integers_beyond_64_bits_become_doubles) {
  const auto found = find_tool_calls(
      R"(@@tool {"name":"a","arguments":{"n":-36893488147419103232,"m":[18446744073709551615]}})", true, true);
  BOOST_REQUIRE_EQUAL(found.calls.size(), 1u);
  BOOST_TEST(found.calls[0].arguments == R"({"n":-3.6893488147419103e+19,"m":[18446744073709551615]})");
}

BOOST_AUTO_TEST_CASE(what_is_no_call_stays_text) {
  for (const std::string text :
       {"<tool_call>{\"name\":\"a\"}</tool_call>", "<tool_call>{\"name\":7,\"arguments\":{}}</tool_call>",
        "<tool_call>{\"name\":\"a\",\"arguments\":[]}</tool_call>", "<tool_call>{</tool_call>",
        "<tool_call>{\"name\":\"a\",\"arguments\":{}}", "@@tool nothing\n", " plain "}) {
    const auto found = find_tool_calls(text, true, true);
    BOOST_TEST(found.calls.empty());
    BOOST_TEST(found.rest == text);
  }
}

BOOST_AUTO_TEST_CASE(an_answer_shows_them_where_they_were_wanted) {
  const std::string chat = R"({"messages":[{"role":"user","content":"x"}],"enable_tool_calls":true)";
  const auto answer = [&](const std::string& more) {
    const auto request = read_request(chat + more + "}", dialects::chat, {}, {}).request;
    whole_row row;
    row.content = R"(<tool_call>{"name":"a","arguments":{"b":1}}</tool_call>)";
    return request->writer->body({"chatcmpl-7", "m", "", 1}, {row}, {}, nullptr);
  };
  BOOST_TEST(answer("").find(R"("content":null,"tool_calls":[{"id":"call_7_0","type":"function","function":)"
                             R"({"name":"a","arguments":"{\"b\":1}"}}]})") != std::string::npos);
  BOOST_TEST(answer("").find(R"("finish_reason":"tool_calls")") != std::string::npos);
  BOOST_TEST(answer(R"(,"tool_call_parser":"prefix")").find("\"tool_calls\"") == std::string::npos);
  BOOST_TEST(answer(R"(,"stream":true)").find("\"tool_calls\"") == std::string::npos);
  const auto wrong = read_request(chat + R"(,"tool_call_parser":"xml"})", dialects::chat, {}, {}).request;
  BOOST_TEST(wrong.error().field == "tool_call_parser");
}

BOOST_AUTO_TEST_SUITE_END()
