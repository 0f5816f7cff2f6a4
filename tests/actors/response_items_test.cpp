// The items of a conversation, page by page: what limits of number and of bytes leave, in both orders, and that
// following the pages brings every item once.
#include "actors/request/responses/response_items.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "protocol/chat/call_splitter.hpp"
#include "protocol/chat/tool_fields.hpp"
#include "protocol/json/json.hpp"
#include "protocol/requests/dialect.hpp"
#include "protocol/responses/answer_writer.hpp"
#include "protocol/responses_api/response_object.hpp"

namespace skein::request {
namespace {

using persistence::version_record;

/// Turns of other routes: "Q1" and "A1", "Q2" and "A2", ...; the last is raw text, cut short by its limit.
std::vector<persistence::shared_version> turns() {
  std::vector<version_record> all(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i + 1);
    all[i].id = i + 1;
    all[i].messages = {{"user", "Q" + number}};
    all[i].answer = "A" + number;
    all[i].finish_reason = "stop";
  }
  all[1].reasoning = "R2";
  all[2].messages.clear();
  all[2].text = "Q3A3";
  all[2].prompt_bytes = 2;
  all[2].finish_reason = "length";
  std::vector<persistence::shared_version> shared;
  for (auto& turn : all) shared.push_back(std::make_shared<const version_record>(std::move(turn)));
  return shared;
}

/// The turn of a response with tools, as it is stored.
persistence::shared_version turn_with_tools(const std::string& key, const std::string& input, const std::string& answer,
                                            const protocol::model_preset& preset) {
  const auto body = R"({"instructions":"Be kind.","reasoning":{"summary":"auto"},"input":)" + input +
                    R"(,"tools":[{"type":"function","name":"add","description":"Adds.","parameters":{"type":"object",)"
                    R"("properties":{"a":{"type":"number","default":1.0}}}}]})";
  auto found = protocol::read_request(body, protocol::dialects::responses, preset, {});
  BOOST_REQUIRE(found.request.has_value());
  version_record turn;
  turn.id = 1;
  turn.request_key = key;
  for (const auto& m : found.request->messages) turn.messages.push_back({m.role, m.content});
  protocol::answer_head head;
  head.id = key;
  turn.sampling = R"({"response":)" + found.request->writer->remembered(head, {}) + '}';
  turn.reasoning = "Hm.";
  turn.answer = answer;
  turn.finish_reason = "stop";
  return std::make_shared<const version_record>(std::move(turn));
}

std::string member(const std::string& json, const std::string& name) {
  const auto at = json.rfind('"' + name + "\":");
  BOOST_REQUIRE(at != std::string::npos);
  const auto from = at + name.size() + 3;
  return json.substr(from, json.find_first_of(",}", from) - from);
}

/// The texts of a list, in its order.
std::string texts(const std::string& json) {
  std::string found;
  for (auto at = json.find("\"text\":\""); at != std::string::npos; at = json.find("\"text\":\"", at + 1))
    found += json.substr(at + 8, 2) + ' ';
  return found;
}

std::string followed(item_page page) {
  const auto all = turns();
  std::string found;
  for (int pages = 0; pages < 20; ++pages) {
    const auto list = conversation_item_list(all, page);
    BOOST_REQUIRE(list);
    found += texts(*list);
    if (member(*list, "has_more") == "false") return found;
    const auto last = member(*list, "last_id");
    page.after = last.substr(1, last.size() - 2);
  }
  return "no end";
}

BOOST_AUTO_TEST_SUITE(response_items)

BOOST_AUTO_TEST_CASE(every_page_brings_the_next) {
  const std::string in_order = "Q1 A1 Q2 R2 A2 Q3 A3 ";
  BOOST_TEST(followed({.ascending = true, .after = {}}) == in_order);
  BOOST_TEST(followed({.limit = 2, .ascending = true, .after = {}}) == in_order);
  BOOST_TEST(followed({.limit = 1, .after = {}}) == "A3 Q3 A2 R2 Q2 A1 Q1 ");
}

BOOST_AUTO_TEST_CASE(no_page_is_longer_than_its_limit) {
  BOOST_TEST(followed({.ascending = true, .after = {}, .bytes_max = 600}) == "Q1 A1 Q2 R2 A2 Q3 A3 ");
  const auto short_page = conversation_item_list(turns(), {.ascending = true, .after = {}, .bytes_max = 600});
  BOOST_TEST(short_page.value().size() <= 600u);
  BOOST_TEST(texts(short_page.value()).starts_with("Q1 A1 "));
  const auto none = conversation_item_list(turns(), {.ascending = true, .after = {}, .bytes_max = 50});
  BOOST_TEST((none.error().kind == error_kind::too_large));
  BOOST_TEST(conversation_item_list({}, {}).value() ==
             R"({"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false})");
  BOOST_TEST(conversation_item_list(turns(), {.after = "msg_9"}).error().field == "after");
}

BOOST_AUTO_TEST_CASE(calls_and_their_results_are_items_of_their_own) {
  for (const char* form : {"list", "headings"}) {
    protocol::model_preset preset;
    preset.tool_template = form;
    const auto turns_of = protocol::tool_form(preset);
    const std::string name(24, 'a'), asks = "resp_" + name + std::string(24, '1'),
                                     told = "resp_" + name + std::string(24, '2');
    const std::vector<protocol::tool_call> calls{{"", "add", R"({"a":1})"}, {"", "add", R"({"a":2})"}};
    const std::vector<persistence::shared_version> both{
        turn_with_tools(asks, R"("1+2?")", protocol::text_with_calls("So:", calls, turns_of), preset),
        turn_with_tools(told,
                        R"([{"type":"function_call_output","call_id":"c1","output":"1"},)"
                        R"({"type":"function_call_output","call_id":"c2","output":"2"}])",
                        "3", preset)};
    const auto list = conversation_item_list(both, {.ascending = true, .after = {}}).value();
    const auto document = protocol::json_document::parse(list, protocol::known_json);
    BOOST_REQUIRE(document.has_value());
    std::string types;
    const auto text_in = [](protocol::json_value item, std::string_view field) {
      const auto value = item.member(field);
      return std::string(value ? value->text().value_or("") : "");
    };
    std::vector<std::string> ids;
    for (const auto item : document->root().member("data")->elements()) {
      types += text_in(item, "type") + ' ' + text_in(item, "call_id") + text_in(item, "role") + '\n';
      ids.push_back(text_in(item, "id"));
    }
    const auto call = [&](std::uint32_t i) { return protocol::call_id(asks, 0, i); };
    BOOST_TEST(types == "message user\nreasoning \nmessage assistant\nfunction_call " + call(0) + "\nfunction_call " +
                            call(1) +
                            "\nfunction_call_output c1\nfunction_call_output c2\nreasoning \nmessage assistant\n");
    for (const auto& id : ids) BOOST_TEST(std::ranges::count(ids, id) == 1, id);
    for (const auto& id : ids) BOOST_TEST(conversation_item(both, id).has_value(), id);
    BOOST_TEST(list.find("Tools:") == std::string::npos);
    BOOST_TEST(list.find("### `") == std::string::npos);
    BOOST_TEST(list.find("Be kind.") == std::string::npos);
    BOOST_TEST(list.find(R"("output":"1"})") != std::string::npos);
    BOOST_TEST(list.find(R"("summary":[{"type":"summary_text","text":"Hm."}])") != std::string::npos);
    BOOST_TEST(ids.at(3) == protocol::call_item_id(asks, 0));  // as in the response
    const auto input = input_item_list(*both[0], {}).value();
    BOOST_TEST(input.find("Tools:") == std::string::npos);
    BOOST_TEST(member(input, "has_more") == "false");
  }
}

BOOST_AUTO_TEST_CASE(calls_that_a_client_sends_are_items_with_its_ids) {
  for (const char* form : {"list", "headings"}) {
    protocol::model_preset preset;
    preset.tool_template = form;
    const auto turn = turn_with_tools("resp_" + std::string(48, 'a'),
                                      R"([{"role":"user","content":"1+2?"},{"role":"assistant","content":"So:"},)"
                                      R"({"type":"function_call","call_id":"c1","name":"add","arguments":"{}"},)"
                                      R"({"type":"function_call","call_id":"c2","name":"add","arguments":"{}"},)"
                                      R"({"type":"function_call_output","call_id":"c2","output":"2"}])",
                                      "3", preset);
    const auto list = input_item_list(*turn, {.ascending = true, .after = {}}).value();
    std::size_t at = 0;
    for (const char* part :
         {R"("role":"user")", R"("role":"assistant","content":[{"type":"output_text","text":"So:)",
          R"("type":"function_call","status":"completed","call_id":"c1","name":"add","arguments":"{}"})",
          R"("type":"function_call","status":"completed","call_id":"c2","name":"add","arguments":"{}"})",
          R"("type":"function_call_output","status":"completed","call_id":"c2","output":"2"}],)"}) {
      at = list.find(part, at);
      BOOST_TEST(at != std::string::npos, part);
      BOOST_REQUIRE(at != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(messages_that_begin_as_the_description_of_tools_are_items) {
  const auto turn = turn_with_tools("resp_" + std::string(48, 'a'),
                                    R"([{"role":"system","content":"Tools:\n[]"},{"role":"system","content":"### `x"},)"
                                    R"({"role":"user","content":"1+2?"},{"role":"system","content":"Tools:\n1"}])",
                                    "3", {});
  BOOST_TEST(turn->messages.size() == 6u);  // with the instructions and the description
  const auto list = input_item_list(*turn, {.ascending = true, .after = {}}).value();
  BOOST_TEST(texts(list) == "To ## 1+ To ");
}

// Each call was compared with the names of all, and moved the rest of the text.
BOOST_AUTO_TEST_CASE(the_time_to_list_calls_is_proportional_to_their_number) {
  constexpr int calls = 20'000;
  std::string input = R"([{"role":"user","content":"1+2?"})";
  for (int i = 0; i < calls; ++i) {
    const auto number = std::to_string(i);
    input += R"(,{"type":"function_call","call_id":"c)" + number + R"(","name":"function_)" + number +
             R"(","arguments":"{}"})";
  }
  const auto turn = turn_with_tools("resp_" + std::string(48, 'a'), input + ']', "3", {});
  const auto began = std::chrono::steady_clock::now();
  const auto list = input_item_list(*turn, {.limit = 100, .ascending = false, .after = {}}).value();
  BOOST_TEST((std::chrono::steady_clock::now() - began < std::chrono::seconds(5)));
  BOOST_TEST(list.find(R"("call_id":"c19999","name":"function_19999")") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_record_without_the_ids_of_calls_has_their_results_as_messages) {
  auto turn = *turn_with_tools("resp_" + std::string(48, 'a'),
                               R"([{"type":"function_call_output","call_id":"c1","output":"1"}])", "3", {});
  const std::string ids = R"("answered_calls":["c1"])";
  turn.sampling.replace(turn.sampling.find(ids), ids.size(), R"("answered_calls":[])");
  const auto list = input_item_list(turn, {}).value();
  BOOST_TEST(list.find(R"("role":"tool","content":[{"type":"input_text","text":"1"}])") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_item_is_found_by_its_id) {
  const auto found = conversation_item(turns(), "msg_v3");
  BOOST_REQUIRE(found);
  BOOST_TEST(*found == R"({"id":"msg_v3","type":"message","status":"incomplete","role":"assistant","content":[)"
                       R"({"type":"output_text","text":"A3","annotations":[],"logprobs":[]}]})");
  BOOST_TEST(conversation_item(turns(), "rs_v2").value().find("R2") != std::string::npos);
  BOOST_TEST(conversation_item(turns(), "msg_v3_0").value() ==
             R"({"id":"msg_v3_0","type":"message","status":"completed","role":"user","content":[)"
             R"({"type":"input_text","text":"Q3"}]})");
  BOOST_TEST(!conversation_item(turns(), "rs_v1"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::request
