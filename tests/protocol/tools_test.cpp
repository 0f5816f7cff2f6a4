// Tools of a request: what the model reads of them, what its answer must match, and histories with calls.
#include <boost/test/unit_test.hpp>

#include "protocol/chat/call_splitter.hpp"
#include "protocol/chat/chat_template.hpp"
#include "protocol/requests/dialect.hpp"

using namespace skein;
using namespace skein::protocol;

namespace {

const std::string base = R"({"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"1+1?"}])";
const std::string tools =
    R"(,"tools":[{"type":"function","function":{"name":"add","description":"Adds.","parameters":{"$schema":"x","type":"object",
       "properties":{"a":{"type":"integer"}},"required":["a"]}}},{"type":"function","function":{"name":"now"}}])";

generation_request read(const std::string& more, const std::string& body = base) {
  auto found = read_request(body + more + "}", dialects::chat, {}, {});
  const std::string complaint = found.request ? "" : found.request.error().message;
  BOOST_REQUIRE_MESSAGE(found.request.has_value(), complaint);
  return std::move(*found.request);
}

error refused(const std::string& more, const std::string& body = base) {
  const auto found = read_request(body + more + "}", dialects::chat, {}, {});
  BOOST_REQUIRE(!found.request.has_value());
  return found.request.error();
}

std::string prompt_of(const generation_request& r) { return render_chat(r.messages, r.think, r.style); }

}  // namespace

BOOST_AUTO_TEST_SUITE(tools_of_requests)

BOOST_AUTO_TEST_CASE(the_model_reads_the_tools) {
  const auto r = read(tools);
  BOOST_TEST(
      prompt_of(r) ==
      "System: Be kind.\nTools:\n"
      R"([{"name":"add","description":"Adds.","arguments":{"a":{"type":"integer"}}},{"name":"now","arguments":{}}])"
      "\n\nUser: 1+1?\n\nAssistant: <think>\n</think");
  BOOST_REQUIRE(r.constraint.has_value());
  BOOST_TEST(r.constraint->marks.size() == call_marks().size());
  BOOST_TEST(r.stop.size() > 0u);  // free text still ends with its turn
  BOOST_TEST(!r.calls_at_once);
  BOOST_TEST(*r.tool_names == (std::vector<std::string>{"add", "now"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_required_call_opens_the_answer) {
  for (
      const auto choice :
      {R"("required")", R"({"type":"function","function":{"name":"add"}})",
       R"({"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"add"}}]}})"}) {
    const auto r = read(tools + ",\"tool_choice\":" + choice);
    BOOST_TEST(prompt_of(r).ends_with("\nReturn only a JSON function call.\n\nUser: 1+1?\n\nAssistant: ```json"));
    BOOST_TEST(r.calls_at_once);
    BOOST_TEST(r.constraint->marks.empty());
    BOOST_TEST((r.constraint->after == answer_form::direct));
    BOOST_TEST(r.stop.empty());
    BOOST_TEST(r.constraint->text.find("\"const\":\"add\"") != std::string::npos);
    const bool all = std::string_view(choice) == "\"required\"";
    BOOST_TEST((r.constraint->text.find("\"const\":\"now\"") != std::string::npos) == all);
  }
}

BOOST_AUTO_TEST_CASE(one_call_or_several) {
  BOOST_TEST(read(tools).constraint->text.find("\"array\"") != std::string::npos);
  BOOST_TEST(read(tools + R"(,"parallel_tool_calls":false)").constraint->text.find("\"array\"") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(no_tools_no_change) {
  for (const auto more :
       {R"(,"tool_choice":"none")", R"(,"tools":[])", R"(,"tool_choice":"auto")", R"(,"tools":null)"}) {
    const auto r = read(more);
    BOOST_TEST(!r.constraint.has_value());
    BOOST_TEST(r.messages.size() == 2u);
  }
  BOOST_TEST(read(tools + R"(,"tool_choice":"none")").messages.size() == 2u);
}

BOOST_AUTO_TEST_CASE(histories_have_calls_and_results) {
  const auto r = read("", R"({"messages":[{"role":"user","content":"1+1?"},
    {"role":"assistant","content":"So:","tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}}]},
    {"role":"tool","tool_call_id":"c1","content":"{\"sum\":2}"},
    {"role":"assistant","tool_calls":[{"id":"c2","type":"function","function":{"name":"now","arguments":""}}]},
    {"role":"tool","content":"plain"}])");
  BOOST_TEST(prompt_of(r) ==
             "User: 1+1?\n\nAssistant: So:\n```json\n{\"name\":\"add\",\"arguments\":{\"a\":1}}\n```\n\n"
             "User: Function output:\n{\"sum\":2}\n\nAssistant: ```json\n{\"name\":\"now\",\"arguments\":{}}\n```\n\n"
             "Observation: plain\n\nAssistant: <think>\n</think");
}

BOOST_AUTO_TEST_CASE(bad_tools_are_refused_by_name) {
  const auto tool = [](const std::string& inner) {
    return R"(,"tools":[{"type":"function","function":{)" + inner + "}}]";
  };
  BOOST_TEST(refused(R"(,"tools":{})").field == "tools");
  BOOST_TEST(refused(R"(,"tools":[5])").field == "tools[0]");
  BOOST_TEST(refused(R"(,"tools":[{"type":"web_search"}])").field == "tools[0].type");
  BOOST_TEST(refused(tool(R"("name":"a b")")).field == "tools[0].function.name");
  BOOST_TEST(refused(tool("")).field == "tools[0].function.name");
  BOOST_TEST(refused(tool(R"("name":"a","parameters":[])")).field == "tools[0].function.parameters");
  BOOST_TEST(refused(R"(,"tools":[{"type":"function","name":"a"},{"type":"function","name":"a"}])").field == "tools");
  BOOST_TEST(refused(R"(,"tool_choice":"required")").field == "tool_choice");
  BOOST_TEST(refused(tools + R"(,"tool_choice":"sometimes")").field == "tool_choice");
  BOOST_TEST(refused(tools + R"(,"tool_choice":{"type":"function","function":{"name":"x"}})").field == "tool_choice");
  BOOST_TEST(refused(tools + R"(,"tool_choice":{"type":"custom"})").field == "tool_choice.type");
  BOOST_TEST(refused(tools + R"(,"regex":"a")").field == "regex");
  BOOST_TEST(refused(R"(,"functions":[{"name":"a"}])").field == "functions");
  const auto history = [](const std::string& calls) {
    return R"({"messages":[{"role":"assistant","tool_calls":)" + calls + "}]";
  };
  BOOST_TEST(refused("", history("5")).field == "messages[0].tool_calls");
  BOOST_TEST(refused("", history("[5]")).field == "messages[0].tool_calls[0]");
  BOOST_TEST(refused("", history("[{}]")).field == "messages[0].tool_calls[0].function");
  BOOST_TEST(refused("", history(R"([{"function":{"name":"a","arguments":"[1]"}}])")).field ==
             "messages[0].tool_calls[0].function.arguments");
}

BOOST_AUTO_TEST_SUITE_END()
