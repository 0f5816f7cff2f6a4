// Tools of a request: what the model reads of them, what its answer must match, and histories with calls.
#include <boost/test/unit_test.hpp>

#include "protocol/chat/call_splitter.hpp"
#include "protocol/chat/chat_template.hpp"
#include "protocol/chat/tool_fields.hpp"
#include "protocol/chat/tool_list.hpp"
#include "protocol/requests/dialect.hpp"

using namespace skein;
using namespace skein::protocol;

namespace {

const std::string tools_base =
    R"({"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"1+1?"}])";
const std::string tools =
    R"(,"tools":[{"type":"function","function":{"name":"add","description":"Adds.","parameters":{"$schema":"x","type":"object",
       "properties":{"a":{"type":"integer"}},"required":["a"]}}},{"type":"function","function":{"name":"now"}}])";

generation_request read_tools(const std::string& more, const std::string& body = tools_base) {
  auto found = read_request(body + more + "}", dialects::chat, {}, {});
  const std::string complaint = found.request ? "" : found.request.error().message;
  BOOST_REQUIRE_MESSAGE(found.request.has_value(), complaint);
  return std::move(*found.request);
}

error refused_tools(const std::string& more, const std::string& body = tools_base) {
  const auto found = read_request(body + more + "}", dialects::chat, {}, {});
  BOOST_REQUIRE(!found.request.has_value());
  return found.request.error();
}

model_preset headed() {
  model_preset preset;
  preset.tool_template = "headings";
  return preset;
}

generation_request read_headed(const std::string& more, const std::string& body = tools_base,
                               const dialect& as = dialects::chat) {
  auto found = read_request(body + more + "}", as, headed(), {});
  const std::string complaint = found.request ? "" : found.request.error().message;
  BOOST_REQUIRE_MESSAGE(found.request.has_value(), complaint);
  return std::move(*found.request);
}

std::string prompt_of(const generation_request& r) { return render_chat(r.messages, r.think, r.style); }

}  // namespace

BOOST_AUTO_TEST_SUITE(tools_of_requests)

BOOST_AUTO_TEST_CASE(more_functions_than_the_limit_are_refused) {
  request_limits limits;
  limits.tools_max = 2;
  BOOST_TEST(read_request(tools_base + tools + "}", dialects::chat, {}, limits).request.has_value());
  limits.tools_max = 1;
  const auto found = read_request(tools_base + tools + "}", dialects::chat, {}, limits);
  BOOST_REQUIRE(!found.request.has_value());
  BOOST_TEST(found.request.error().field == "tools");
  BOOST_TEST(found.request.error().message == "tools must have at most 1 functions");
}

BOOST_AUTO_TEST_CASE(the_model_reads_the_tools) {
  const auto r = read_tools(tools);
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
    const auto r = read_tools(tools + ",\"tool_choice\":" + choice);
    BOOST_TEST(prompt_of(r).ends_with("\nReturn only a JSON function call.\n\nUser: 1+1?\n\nAssistant: ```json"));
    BOOST_TEST(r.calls_at_once);
    BOOST_TEST(r.constraint->marks.empty());
    BOOST_TEST((r.constraint->after == answer_form::direct));
    BOOST_TEST(r.stop.empty());
    const auto& functions = r.constraint->calls.functions;
    BOOST_TEST(functions.size() == (std::string_view(choice) == "\"required\"" ? 2u : 1u));
    BOOST_TEST(functions.front().name == "add");
    BOOST_TEST(!r.constraint->calls.answer.has_value());
  }
}

BOOST_AUTO_TEST_CASE(one_call_or_several) {
  BOOST_TEST(read_tools(tools).constraint->calls.calls_max == 16u);
  BOOST_TEST(read_tools(tools + R"(,"parallel_tool_calls":false)").constraint->calls.calls_max == 1u);
}

BOOST_AUTO_TEST_CASE(parameters_stay_as_they_are) {
  const std::string parameters =
      R"({"$schema":"s","$id":"i","$ref":"#/definitions/A","definitions":{"A":{"type":"object"}}})";
  const std::string named =
      R"({"type":"function","function":{"name":"b","strict":true,"parameters":{"type":["object"]}}})";
  const std::string both =
      R"(,"tools":[{"type":"function","function":{"name":"a","parameters":)" + parameters + "}}," + named + "]";
  const auto read = read_tools(both).constraint->calls.functions;
  BOOST_REQUIRE_EQUAL(read.size(), 2u);
  BOOST_TEST(read[0].arguments.text == parameters.substr(0, parameters.size() - 1) + R"(,"type":"object"})");
  BOOST_TEST(read[0].arguments.relaxed == R"({"type":"object"})");
  BOOST_TEST(read[0].arguments.field == "tools[0].function.parameters");
  BOOST_TEST(read[1].arguments.text == R"({"type":["object"]})");
  BOOST_TEST(read[1].arguments.relaxed == "");
  // The place is that of the request, whatever tools may be called.
  const auto one = read_tools(both + R"(,"tool_choice":{"type":"function","function":{"name":"b"}})");
  BOOST_REQUIRE_EQUAL(one.constraint->calls.functions.size(), 1u);
  BOOST_TEST(one.constraint->calls.functions[0].arguments.field == "tools[1].function.parameters");
  const auto items = read_request(
      R"({"input":"x","tools":[{"type":"web_search"},{"type":"function","name":"a","parameters":{}},
        {"type":"namespace","name":"s","tools":[{"type":"function","name":"b","parameters":{}}]}]})",
      dialects::responses, {}, {});
  BOOST_REQUIRE(items.request.has_value());
  BOOST_TEST(items.request->constraint->calls.functions[0].arguments.field == "tools[1].parameters");
  BOOST_TEST(items.request->constraint->calls.functions[1].arguments.field == "tools[2].tools[0].parameters");
}

BOOST_AUTO_TEST_CASE(calls_or_an_answer_of_a_schema) {
  const std::string schema = R"({"$ref":"#/$defs/n","$defs":{"n":{"const":1}}})";
  const std::string wanted =
      R"(,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":)" + schema + "}}";
  const auto r = read_tools(tools + wanted);
  BOOST_TEST(r.calls_at_once);
  BOOST_TEST(r.constraint->marks.empty());
  BOOST_TEST(prompt_of(r).ends_with("\n\nUser: 1+1?\n\nAssistant: ```json"));
  BOOST_REQUIRE(r.constraint->calls.answer.has_value());
  BOOST_TEST(r.constraint->calls.answer->text == schema);
  BOOST_TEST(r.constraint->calls.answer->field == "response_format.json_schema.schema");
  BOOST_TEST(r.constraint->calls.answer->relaxed == "");
  const auto object = read_tools(tools + R"(,"response_format":{"type":"json_object"})");
  BOOST_TEST(
      object.constraint->calls.answer->text.starts_with(R"({"type":"object","$defs":{"name":{"enum":["add","now"]},)"));
  const auto loose = read_tools(
      tools + R"(,"response_format":{"type":"json_schema","json_schema":{"strict":false,"schema":{"const":1}}})");
  BOOST_TEST(loose.constraint->calls.answer->relaxed.starts_with(R"({"$defs":{"name":{"enum":["add","now"]},)"));
  const auto required = read_tools(tools + wanted + R"(,"tool_choice":"required")");
  BOOST_TEST(!required.constraint->calls.answer.has_value());
  const auto headed = read_headed(tools + wanted);
  BOOST_TEST(prompt_of(headed).ends_with("### Assistant\n```json"));
  const auto none = read_tools(R"(,"tools":[{"type":"web_search"}],"tool_choice":"none")" + wanted);
  BOOST_TEST(none.constraint->field == "response_format.json_schema.schema");
}

BOOST_AUTO_TEST_CASE(no_tools_no_change) {
  for (const auto more :
       {R"(,"tool_choice":"none")", R"(,"tools":[])", R"(,"tool_choice":"auto")", R"(,"tools":null)"}) {
    const auto r = read_tools(more);
    BOOST_TEST(!r.constraint.has_value());
    BOOST_TEST(r.messages.size() == 2u);
  }
  BOOST_TEST(read_tools(tools + R"(,"tool_choice":"none")").messages.size() == 2u);
}

BOOST_AUTO_TEST_CASE(histories_have_calls_and_results) {
  const auto r = read_tools("", R"({"messages":[{"role":"user","content":"1+1?"},
    {"role":"assistant","content":"So:","tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}}]},
    {"role":"tool","tool_call_id":"c1","content":"{\"sum\":2}"},
    {"role":"assistant","tool_calls":[{"id":"c2","type":"function","function":{"name":"now","arguments":""}}]},
    {"role":"tool","content":"plain"}])");
  BOOST_TEST(prompt_of(r) ==
             "User: 1+1?\n\nAssistant: So:\n```json\n{\"name\":\"add\",\"arguments\":{\"a\":1}}\n```\n\n"
             "User: Function output:\n{\"sum\":2}\n\nAssistant: ```json\n{\"name\":\"now\",\"arguments\":{}}\n```\n\n"
             "Observation: plain\n\nAssistant: <think>\n</think");
}

BOOST_AUTO_TEST_CASE(histories_may_have_deeply_nested_arguments) {
  const std::string arguments = R"({\"a\":)" + std::string(250, '[') + std::string(250, ']') + "}";
  const auto r = read_tools("", R"({"messages":[{"role":"user","content":"1+1?"},
    {"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":")" +
                                    arguments + R"("}}]},{"role":"tool","tool_call_id":"c1","content":"2"}])");
  BOOST_TEST(prompt_of(r).find(std::string(250, '[') + std::string(250, ']') + "}}") != std::string::npos);
}

// Models write such calls, and clients send them back.
BOOST_AUTO_TEST_CASE(histories_may_name_an_argument_twice) {
  const auto r = read_tools("", R"({"messages":[{"role":"user","content":"1+1?"},
    {"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":1,\"a\":2}"}}]},
    {"role":"tool","tool_call_id":"c1","content":"2"}])");
  BOOST_TEST(prompt_of(r).find("{\"name\":\"add\",\"arguments\":{\"a\":1,\"a\":2}}") != std::string::npos);
}

const std::string described =
    "### System\nBe kind.\n### `add`\n**Description:** Adds.\n**Parameters:**\n```json\n{\n  \"$schema\": \"x\",\n"
    "  \"type\": \"object\",\n  \"properties\": {\n    \"a\": {\n      \"type\": \"integer\"\n    }\n  },\n"
    "  \"required\": [\n    \"a\"\n  ]\n}\n```\n### `now`\n**Parameters:**\n```json\n{}\n```\n"
    "To call one of these tools, write exactly this format:\n**Tool Call:**\n```json\n"
    "{\"name\": \"tool_name\", \"arguments\": {\"key\": \"value\"}}\n```\n"
    "Do not invent tool call IDs or write tool outputs yourself.\n";

BOOST_AUTO_TEST_CASE(tools_with_headings) {
  const auto r = read_headed(tools);
  BOOST_TEST(prompt_of(r) == described + "### User\n1+1?\n### Assistant\n<think>\n</think");
  BOOST_TEST(r.stop == (std::vector<std::string>{"\nUser:", "\n### User"}), boost::test_tools::per_element());
  const auto thinking = read_headed(tools + R"(,"reasoning_effort":"high")");
  BOOST_TEST(prompt_of(thinking).ends_with("### User\n1+1? (think a lot)\n### Assistant\n<think"));
  const auto required = read_headed(tools + R"(,"tool_choice":"required")");
  BOOST_TEST(prompt_of(required) == described + "### User\n1+1?\n### Assistant\n**Tool Call:**\n```json");
  BOOST_TEST((required.constraint->after == answer_form::direct));
  BOOST_TEST(required.stop.empty());
  for (const auto without : {R"(,"tools":[])", R"(,"tool_choice":"auto")"}) {
    BOOST_TEST(prompt_of(read_headed(without)) == prompt_of(read_tools(without)));
    BOOST_TEST(read_headed(without).stop == read_tools(without).stop, boost::test_tools::per_element());
  }
  BOOST_TEST(prompt_of(read_headed(tools + R"(,"tool_choice":"none")")) == prompt_of(read_tools("")));
}

BOOST_AUTO_TEST_CASE(the_form_of_tools_is_that_of_the_models_template) {
  model_preset preset;
  BOOST_TEST((tool_form(preset) == turn_form::names));
  preset.headed_tools = true;
  BOOST_TEST((tool_form(preset) == turn_form::headings));
  preset.tool_template = "list";
  BOOST_TEST((tool_form(preset) == turn_form::names));
}

BOOST_AUTO_TEST_CASE(histories_with_headings) {
  const auto r = read_headed("", R"({"messages":[{"role":"user","content":"1+1?\n\nWell?"},
    {"role":"assistant","content":"So:","tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":[1,{}]}"}}]},
    {"role":"tool","tool_call_id":"c1","content":"{\"sum\":2}"},
    {"role":"assistant","content":"Two."},
    {"role":"tool","content":"plain \"text\""},{"role":"system","content":"s"}])");
  BOOST_TEST(prompt_of(r) ==
             "### User\n1+1?\nWell?\n### Assistant\nSo:\n**Tool Call:**\n```json\n{\n  \"name\": \"add\",\n"
             "  \"arguments\": {\n    \"a\": [\n      1,\n      {}\n    ]\n  }\n}\n```\n"
             "### Tool Output\n```json\n{\n  \"sum\": 2\n}\n```\n### Assistant\nTwo.\n"
             "### Tool Output\n```json\n\"plain \\\"text\\\"\"\n```\n### System\ns\n### Assistant\n<think>\n</think");
  const auto items = read_headed("", R"({"input":[{"role":"user","content":"1+1?"},
    {"type":"function_call","call_id":"c","name":"now","arguments":"{}"},
    {"type":"function_call_output","call_id":"c","output":"3 o'clock"}])",
                                 dialects::responses);
  BOOST_TEST(
      prompt_of(items) ==
      "### User\n1+1?\n### Assistant\n**Tool Call:**\n```json\n{\n  \"name\": \"now\",\n  \"arguments\": {}\n}\n```\n"
      "### Tool Output\n```json\n\"3 o'clock\"\n```\n### Assistant\n<think>\n</think");
  const auto going_on =
      read_headed("", R"({"messages":[{"role":"tool","content":"1"},{"role":"assistant","content":"It is "}])");
  BOOST_TEST(prompt_of(going_on) == "### Tool Output\n```json\n1\n```\n### Assistant\nIt is");
}

BOOST_AUTO_TEST_CASE(json_that_would_grow_many_times_is_not_indented) {
  std::string nested(50, '[');
  for (int i = 0; i < 1000; ++i) nested += "1,";
  nested += "1" + std::string(50, ']');
  chat_style style;
  style.turns = turn_form::headings;
  const std::vector<chat_message> result{{"tool", nested, ""}};
  const auto prompt = render_chat(result, think_mode::off, style);
  BOOST_TEST(prompt.starts_with("### Tool Output\n```json\n" + nested + "\n```\n"));
  BOOST_TEST(rendered_bytes_max(result.front(), style) < 9 * nested.size());
  const std::vector<tool_call> calls{{"", "add", R"({"a":)" + nested + "}"}};
  BOOST_TEST(text_with_calls("", calls, turn_form::headings) ==
             "**Tool Call:**\n```json\n{\"name\":\"add\",\"arguments\":{\"a\":" + nested + "}}\n```");
  const auto described =
      read_headed(R"(,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","default":)" +
                  nested + "}}}]");
  BOOST_TEST(prompt_of(described).find("```json\n{\"type\":\"object\",\"default\":[[") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_answer_with_headings_is_found_again) {
  const auto chat = render_turns(read_headed(tools).messages, think_mode::off, read_headed(tools).style);
  const std::vector<tool_call> calls{{"", "add", R"({"a":1})"}};
  const auto content = text_with_calls("So:", calls, turn_form::headings);
  const std::vector<tool_call> resent{{"", "add", R"({ "a" : [ ], "b":[1.50, {"\u0063}\"":{ }}]})"}};
  BOOST_TEST(text_with_calls("", resent, turn_form::headings) ==
             "**Tool Call:**\n```json\n{\n  \"name\": \"add\",\n  \"arguments\": {\n    \"a\": [],\n    \"b\": [\n"
             "      1.50,\n      {\n        \"c}\\\"\": {}\n      }\n    ]\n  }\n}\n```");
  BOOST_TEST(resent_answer(chat, content) ==
             "### Assistant\nSo:\n**Tool Call:**\n```json\n{\n  \"name\": \"add\",\n  \"arguments\": {\n    \"a\": 1\n "
             " }\n}\n```");
  std::string streamed = "So:", rest;
  for (const auto& piece : {call_piece{"", "add", "{\"a\""}, call_piece{"", "", ":1}", true}})
    add_piece(piece, streamed, turn_form::headings);
  BOOST_TEST(streamed == content);
  const auto found = split_calls(content, std::make_shared<const std::vector<std::string>>(1, "add"), rest);
  BOOST_REQUIRE_EQUAL(found.size(), 1u);
  BOOST_TEST(found[0].arguments == calls[0].arguments);
  BOOST_TEST(rest == "So:\n");
  BOOST_TEST((turns_of(prompt_of(read_headed(tools))) == turn_form::headings));
  BOOST_TEST((turns_of(prompt_of(read_tools(tools))) == turn_form::names));
  BOOST_TEST((turns_of("### Assistant\nx\nUser: y\n\nAssistant: ") == turn_form::names));
}

BOOST_AUTO_TEST_CASE(tools_of_other_types_are_left_out_beside_functions) {
  const std::string mixed = R"(,"tools":[{"type":"web_search"},{"type":"function","function":{"name":"now"}},)"
                            R"({"type":"custom","custom":{"name":"patch"}}])";
  const auto r = read_tools(mixed);
  BOOST_TEST(*r.tool_names == std::vector<std::string>{"now"}, boost::test_tools::per_element());
  BOOST_TEST(prompt_of(r).find("Tools:\n[{\"name\":\"now\",\"arguments\":{}}]\n") != std::string::npos);
  BOOST_TEST(r.tool_notes ==
             "tools[0] is left out: tools of the type web_search are not supported; "
             "tools[2] is left out: tools of the type custom are not supported");
  BOOST_TEST(read_tools(tools).tool_notes.empty());
  const std::string named = R"(,"tool_choice":{"type":"function","function":{"name":"now"}})";
  BOOST_TEST(read_tools(mixed + named).tool_notes == r.tool_notes);
  BOOST_TEST(refused_tools(mixed + R"(,"tool_choice":"required")").field == "tools[0].type");
  BOOST_TEST(refused_tools(mixed + R"(,"tool_choice":{"type":"web_search"})").field == "tool_choice.type");
  BOOST_TEST(
      refused_tools(mixed + R"(,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"web_search"}]})")
          .field == "tool_choice.tools");
  BOOST_TEST(
      refused_tools(R"(,"tools":[{"type":"namespace","name":"a","tools":[{"type":"function","name":"b"}]}])").field ==
      "tools[0].type");
  const std::string long_type = R"({"type":")" + std::string(100, 't') + "\"}";
  std::string many = R"(,"tools":[{"type":"function","function":{"name":"now"}})";
  for (int i = 0; i < 20; ++i) many += "," + long_type;
  BOOST_TEST(read_tools(many + "]").tool_notes.size() == 512u);
}

BOOST_AUTO_TEST_CASE(functions_of_a_namespace) {
  const std::string asked = R"({"input":[{"role":"user","content":"1+1?"},
    {"type":"function_call","call_id":"c","namespace":"maths","name":"add","arguments":"{}"},
    {"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"2"}]}])";
  const std::string spaces =
      R"(,"tools":[{"type":"function","name":"add"},{"type":"namespace","name":"maths","description":"Sums.","tools":[
        {"type":"function","name":"add","description":"Adds."},{"type":"custom","name":"x"},{"type":"function","name":"sub"}]}])";
  const auto read_items = [&](const std::string& more) {
    return read_request(asked + spaces + more + "}", dialects::responses, {}, {}).request;
  };
  const auto r = read_items("");
  BOOST_REQUIRE(r.has_value());
  BOOST_TEST(*r->tool_names == (std::vector<std::string>{"add", "maths/add", "maths/sub"}),
             boost::test_tools::per_element());
  BOOST_TEST(r->tool_notes == "tools[1].tools[1] is left out: tools of the type custom are not supported");
  BOOST_TEST(prompt_of(*r) ==
             "System: Tools:\n"
             R"([{"name":"add","arguments":{}},{"name":"maths/add","description":"Sums.\nAdds.","arguments":{}},)"
             R"({"name":"maths/sub","arguments":{}}])"
             "\n\nUser: 1+1?\n\nAssistant: ```json\n{\"name\":\"maths/add\",\"arguments\":{}}\n```\n\n"
             "User: Function output:\n2\n\nAssistant: <think>\n</think");
  const auto named = read_items(R"(,"tool_choice":{"type":"function","namespace":"maths","name":"sub"})");
  BOOST_REQUIRE(named.has_value());
  BOOST_TEST(*named->tool_names == std::vector<std::string>{"maths/sub"}, boost::test_tools::per_element());
  BOOST_TEST(read_items(R"(,"tool_choice":{"type":"function","name":"sub"})").error().field == "tool_choice");
  const auto field_of = [&](const std::string& one) {
    return read_request(asked + R"(,"tools":[)" + one + "]}", dialects::responses, {}, {}).request.error().field;
  };
  BOOST_TEST(field_of(R"({"type":"namespace","tools":[{"type":"namespace"}]})") == "tools[0].name");
  BOOST_TEST(field_of(R"({"type":"namespace","name":"a","tools":[{"type":"namespace","name":"b"}]})") ==
             "tools[0].tools[0].type");
  BOOST_TEST(field_of(R"({"type":"namespace","name":"a","tools":[{"type":"function","name":"b/c"}]})") ==
             "tools[0].tools[0].name");
  BOOST_TEST(field_of(R"({"type":"namespace","name":"a","tools":5})") == "tools[0].tools");
}

BOOST_AUTO_TEST_CASE(names_have_two_parts_or_one) {
  BOOST_TEST(qualified_name("", "add") == "add");
  BOOST_TEST(qualified_name("maths", "add") == "maths/add");
  BOOST_TEST(parts_of("add").space.empty());
  BOOST_TEST(parts_of("add").name == "add");
  BOOST_TEST(parts_of("maths/add").space == "maths");
  BOOST_TEST(parts_of("maths/add").name == "add");
  const auto list = json_document::parse(
      R"([{"type":"function","name":"a"},{"type":"namespace","name":"s","tools":[{"type":"function","name":"b"},
        {"type":"namespace","name":"t","tools":[{"type":"function","name":"c"}]}]},{"type":"web_search"},5])",
      {});
  BOOST_TEST(names_in(list->root()) == (std::vector<std::string>{"a", "s/b"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(bad_tools_are_refused_by_name) {
  const auto tool = [](const std::string& inner) {
    return R"(,"tools":[{"type":"function","function":{)" + inner + "}}]";
  };
  BOOST_TEST(refused_tools(R"(,"tools":{})").field == "tools");
  BOOST_TEST(refused_tools(R"(,"tools":[5])").field == "tools[0]");
  BOOST_TEST(refused_tools(R"(,"tools":[{"type":"web_search"}])").field == "tools[0].type");
  BOOST_TEST(refused_tools(R"(,"tools":[{"type":"function","function":{"name":"a"}},{"name":"b"}])").field ==
             "tools[1].type");
  BOOST_TEST(refused_tools(tool(R"("name":"a b")")).field == "tools[0].function.name");
  BOOST_TEST(refused_tools(tool("")).field == "tools[0].function.name");
  BOOST_TEST(refused_tools(tool(R"("name":"a","parameters":[])")).field == "tools[0].function.parameters");
  BOOST_TEST(refused_tools(tool(R"("name":"a","parameters":{"type":"array"})")).field ==
             "tools[0].function.parameters.type");
  BOOST_TEST(refused_tools(R"(,"tools":[{"type":"function","name":"a"},{"type":"function","name":"a"}])").field ==
             "tools");
  BOOST_TEST(refused_tools(R"(,"tool_choice":"required")").field == "tool_choice");
  BOOST_TEST(refused_tools(tools + R"(,"tool_choice":"sometimes")").field == "tool_choice");
  BOOST_TEST(refused_tools(tools + R"(,"tool_choice":{"type":"function","function":{"name":"x"}})").field ==
             "tool_choice");
  BOOST_TEST(refused_tools(tools + R"(,"tool_choice":{"type":"custom"})").field == "tool_choice.type");
  BOOST_TEST(refused_tools(tools + R"(,"regex":"a")").field == "regex");
  BOOST_TEST(refused_tools(R"(,"functions":[{"name":"a"}])").field == "functions");
  const auto history = [](const std::string& calls) {
    return R"({"messages":[{"role":"assistant","tool_calls":)" + calls + "}]";
  };
  BOOST_TEST(refused_tools("", history("5")).field == "messages[0].tool_calls");
  BOOST_TEST(refused_tools("", history("[5]")).field == "messages[0].tool_calls[0]");
  BOOST_TEST(refused_tools("", history("[{}]")).field == "messages[0].tool_calls[0].function");
  BOOST_TEST(refused_tools("", history(R"([{"function":{"name":"a","arguments":"[1]"}}])")).field ==
             "messages[0].tool_calls[0].function.arguments");
}

BOOST_AUTO_TEST_SUITE_END()
