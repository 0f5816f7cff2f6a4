// Tool calls in streamed text: every form that models write, cut at every byte; what is no call of a known tool stays.
#include "protocol/chat/call_splitter.hpp"

#include <boost/test/unit_test.hpp>

using namespace skein::protocol;

namespace {

struct divided {
  std::string text;
  std::vector<std::string> calls;  // "name arguments", and "cut" if it is not whole
};

tool_names names() { return std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"add", "now"}); }

divided divide(std::string_view text, std::size_t cut, bool at_once = false) {
  call_splitter splitter(names(), at_once);
  divided out;
  std::vector<tool_call> calls;
  const auto take = [&](std::vector<call_piece> pieces) {
    for (const auto& piece : pieces) add_piece(piece, calls);
  };
  for (const auto piece : {text.substr(0, cut), text.substr(cut)}) {
    std::vector<call_piece> pieces;
    splitter.push(piece, out.text, pieces);
    take(std::move(pieces));
  }
  std::vector<call_piece> pieces;
  splitter.finish(out.text, pieces);
  take(std::move(pieces));
  for (const auto& call : calls) out.calls.push_back(call.name + ' ' + call.arguments + (call.whole ? "" : " cut"));
  return out;
}

struct call_row {
  std::string_view written, text;
  std::vector<std::string> calls;
};

const std::string add = R"({"name": "add", "arguments": {"a": 1}})", added = R"(add {"a":1})";

}  // namespace

BOOST_AUTO_TEST_SUITE(call_splitters)

BOOST_AUTO_TEST_CASE(every_form_is_found_at_every_cut) {
  const std::vector<call_row> rows{
      {"```json\n"
       "{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n```",
       "",
       {added}},
      {"Let me see.\n```json\n{\"name\":\"add\",\"arguments\":{\"a\":1}}```", "Let me see.\n", {added}},
      {"**Tool Call:**\n```json\n{\"name\":\"now\"}\n```\n", "", {"now {}"}},
      {"<tool_call>\n{\"name\":\"add\",\"arguments\":{\"a\":1}}\n</tool_call>", "", {added}},
      {"<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}}</tool_call><tool_call>{\"name\":\"now\",\"arguments\":{}}"
       "</tool_call>",
       "",
       {added, "now {}"}},
      {"<tool_calls>[{\"function\": {\"name\":\"add\",\"arguments\":{\"a\":1}}},{\"function\":\"now\"}]</tool_calls> "
       "ok",
       "ok",
       {added, "now {}"}},
      {"@@tool {\"name\":\"add\",\"parameters\":{\"a\":1}}\nand text", "and text", {added}},
      {"<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":\"}\\\"]</tool_call>\"}}</tool_call>",
       "",
       {R"(add {"a":"}\"]</tool_call>"})"}},
      {"<tool_calls>[{\"name\":\"now\",\"arguments\":{}} , {\"function\":{\"name\":\"add\", "
       "\"arguments\":{\"a\":1}},\"id\":\"}\"}]"
       "</tool_calls>",
       "",
       {"now {}", added}},
      {"```json\n{ \"name\" : \"add\" , \"parameters\" : { \"a\" : 1 }, \"id\": [\"}\", {}] }\n``` ok", "ok", {added}},
      {"<tool_call>{\"n\\u0061me\": \"\\u0061dd\", \"argum\\u0065nts\": {\"a\":1}}</tool_call>", "", {added}},
      // Cut within the arguments, or no JSON there: what has come of the call stays.
      {"So: <tool_call>{\"name\":\"add\",\"arguments\":{\"a\":\"b c", "So: ", {"add {\"a\":\"b c cut"}},
      {"<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":12", "", {"add {\"a\":12 cut"}},
      {"<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":[-1.50, tr", "", {"add {\"a\":[-1.50,tr cut"}},
      {"[1] <tool_calls>[{\"name\":\"now\",\"arguments\":{}},{\"name\":\"add\",\"arguments\":{\"a\"",
       "[1] ",
       {"now {}", "add {\"a\" cut"}},
      {"<tool_calls>[{\"name\":\"now\",\"arguments\":{}},{\"na", "", {"now {}"}},
      {"<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1,}} x", "}} x", {"add {\"a\":1, cut"}},
      {"<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}\n</tool_call> x", "x", {added}},  // a bracket is missing
      // No calls: another name, no JSON, cut JSON, arguments of the wrong type, a tag alone, text like a mark.
      {"```json\n{\"name\":\"other\",\"arguments\":{}}\n```",
       "```json\n{\"name\":\"other\",\"arguments\":{}}\n```",
       {}},
      {"<tool_call>x", "<tool_call>x", {}},
      {"<tool_call>{\"name\":\"add\"", "<tool_call>{\"name\":\"add\"", {}},
      {"<tool_call>{\"name\":\"ad\",\"arguments\":{}}", "<tool_call>{\"name\":\"ad\",\"arguments\":{}}", {}},
      {"<tool_call>{\"arguments\":{\"a\":1},", "<tool_call>{\"arguments\":{\"a\":1},", {}},
      {"<tool_call>{\"name\":\"add\",\"arguments\":5}y", "<tool_call>{\"name\":\"add\",\"arguments\":5}y", {}},
      {"<tool_call>", "<tool_call>", {}},
      {"a < b, <tool_x> and ```python\n1\n``` and **Tool", "a < b, <tool_x> and ```python\n1\n``` and **Tool", {}},
      {"", "", {}},
  };
  for (const auto& [written, text, calls] : rows)
    for (std::size_t cut = 0; cut <= written.size(); ++cut) {
      const auto out = divide(written, cut);
      BOOST_TEST_CONTEXT(written << " cut at " << cut) {
        BOOST_TEST(out.text == text);
        BOOST_TEST(out.calls == calls, boost::test_tools::per_element());
      }
    }
}

BOOST_AUTO_TEST_CASE(an_answer_may_begin_with_the_call) {
  for (std::size_t cut = 0; cut <= add.size(); ++cut) {
    const auto out = divide(add, cut, true);
    BOOST_TEST(out.text.empty());
    BOOST_TEST(out.calls == std::vector<std::string>{added}, boost::test_tools::per_element());
  }
  BOOST_TEST(divide("[" + add + "," + add + "]", 7, true).calls.size() == 2u);
  BOOST_TEST(divide(add.substr(0, 20), 3, true).text == add.substr(0, 20));
}

BOOST_AUTO_TEST_CASE(text_is_not_held_back_without_need) {
  call_splitter splitter(names(), false);
  std::string text;
  std::vector<call_piece> calls;
  splitter.push("Hello <", text, calls);
  BOOST_TEST(text == "Hello ");
  splitter.push("b> `", text, calls);
  BOOST_TEST(text == "Hello <b> ");
  for (const std::string json : {R"({"note":"<tool_call>{\"name\":\"now\"}"})", R"( [1, {"name":"add"}])", "7",
                                 R"({"name":"subtract","arguments":{}})", R"({"arguments":{},"name":"add"})"})
    for (std::size_t cut = 0; cut <= json.size(); ++cut) {
      const auto out = divide(json, cut, true);
      BOOST_TEST(out.text == json);
      BOOST_TEST(out.calls.empty());
    }
  call_splitter streamed(names(), true);  // passed on as it comes
  std::string so_far;
  std::vector<call_piece> none;
  streamed.push(R"({"sum": [1, )", so_far, none);
  BOOST_TEST(so_far == R"({"sum": [1, )");
  call_splitter plain(nullptr, true);
  text.clear();
  plain.push("<tool_call>", text, calls);
  BOOST_TEST(text == "<tool_call>");
}

BOOST_AUTO_TEST_CASE(arguments_come_as_they_are_written) {
  call_splitter splitter(names(), false);
  std::string text;
  const auto more = [&](std::string_view piece) {
    std::vector<call_piece> calls;
    splitter.push(piece, text, calls);
    std::string out;
    for (const auto& call : calls) {
      out += call.name + (call.name.empty() ? "" : " ");
      out += call.arguments + (call.ends ? "." : "");
    }
    return out;
  };
  BOOST_TEST(more("<tool_calls>[{\"name\": \"add\", \"argu") == "");
  BOOST_TEST(more("ments\": ") == "");
  BOOST_TEST(more("{") == "add {");
  BOOST_TEST(more(" \"text\": \"one") == "\"text\":\"one");
  BOOST_TEST(more(" two\", \"n\": 4") == " two\",\"n\":4");
  BOOST_TEST(more("2 }") == "2}.");
  BOOST_TEST(more("}, {\"name\": \"now\", \"arguments\": {}}") == "now {}.");
  BOOST_TEST(more(", {\"name\": \"add\", \"arguments\": {\"a\"") == "add {\"a\"");
  BOOST_TEST(more(":1}}]</tool_calls> bye") == ":1}.");
  BOOST_TEST(text == "bye");
}

BOOST_AUTO_TEST_CASE(an_argument_may_be_named_twice) {
  const std::string arguments = R"({"a":1,"a":2})";
  for (const std::string& call :
       {R"({"name":"add","arguments":)" + arguments + "}", R"({"arguments":)" + arguments + R"(,"name":"add"})"}) {
    const auto out = divide("<tool_call>" + call + "</tool_call>", 30);
    BOOST_REQUIRE_EQUAL(out.calls.size(), 1u);
    BOOST_TEST(out.calls[0] == "add " + arguments);
  }
}

// As deep as a grammar lets a text be.
BOOST_AUTO_TEST_CASE(arguments_may_be_nested_deeply) {
  for (const std::size_t depth : {64, 65, 254}) {
    const std::string arguments = "{\"a\":" + std::string(depth - 1, '[') + "1" + std::string(depth - 1, ']') + "}";
    for (const std::string& call :
         {R"({"name":"add","arguments":)" + arguments + "}", R"({"arguments":)" + arguments + R"(,"name":"add"})"}) {
      const auto out = divide("<tool_call>" + call + "</tool_call>", 90);
      BOOST_TEST(out.text == "");
      BOOST_TEST(out.calls == std::vector<std::string>{"add " + arguments}, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(integers_beyond_64_bits) {
  for (const std::string_view key : {"arguments", "parameters"})
    for (const bool at_once : {false, true}) {
      const std::string call =
          R"({"name": "add", ")" + std::string(key) +
          R"(": {"a": 123456789012345678901234567890, "b": "\"12345678901234567890123", "c": -1.5}})";
      const auto out = divide(at_once ? call : "<tool_call>" + call + "</tool_call>", 25, at_once);
      BOOST_REQUIRE_EQUAL(out.calls.size(), 1u);
      BOOST_TEST(
          (out.calls[0].starts_with(R"(add {"a":1.2345678901234568e+29,"b":"\"12345678901234567890123","c":-1.5})") ||
           out.calls[0] == R"(add {"a":123456789012345678901234567890,"b":"\"12345678901234567890123","c":-1.5})"),
          out.calls[0]);
    }
}

BOOST_AUTO_TEST_CASE(an_answer_with_calls_is_found_again) {
  const std::vector<tool_call> calls{{"", "add", R"({"a":1})"}, {"", "now", "{}"}};
  const auto text = text_with_calls("So:", calls);
  BOOST_TEST(text ==
             "So:\n```json\n{\"name\":\"add\",\"arguments\":{\"a\":1}}\n```\n```json\n{\"name\":\"now\",\"arguments\":{"
             "}}\n```");
  const auto out = divide(text, 9);
  BOOST_TEST(out.text == "So:\n");
  BOOST_TEST(out.calls.size() == 2u);
  BOOST_TEST(text_with_calls("plain", {}) == "plain");
  std::string cut = "So:", content;
  call_piece piece{"", "add", "{\"a\":"};
  add_piece(piece, cut);
  const auto again = split_calls(cut, names(), content);
  BOOST_REQUIRE_EQUAL(again.size(), 1u);
  BOOST_TEST(again[0].arguments == "{\"a\":");
  BOOST_TEST(!again[0].whole);
  piece = {"", "", "1}", true};
  add_piece(piece, cut);
  BOOST_TEST(cut == text_with_calls("So:", {{calls.front()}}));
}

BOOST_AUTO_TEST_SUITE_END()
