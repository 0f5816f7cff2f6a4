// Requests with a schema or a grammar, stepped by hand: the grammar is compiled by the worker pool, once, and reaches
// the device as the rule of each row; what cannot be compiled is a 400 that names the field.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/actors/generation_bench.hpp"

namespace {

using namespace skein;
using namespace skein::request;
using bench = test::generation_bench;

const std::string chat_head = R"({"model":"tiny","messages":[{"role":"user","content":"Hi"}])";

/// The first bytes that a row may sample after these.
std::string next_of(const sampling::sampling_params& row, const std::string& said) {
  const auto rule = row.rule->begin();
  for (const char c : said) rule->record(static_cast<unsigned char>(c));
  std::vector<std::uint32_t> mask(8);
  std::string next;
  if (rule->complete() || !rule->allow(mask)) return next;
  for (unsigned byte = 0; byte < 256; ++byte)
    if ((mask[byte / 32] >> (byte % 32) & 1) != 0) next += static_cast<char>(byte);
  return next;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(constrained_calls)

BOOST_AUTO_TEST_CASE(a_grammar_is_compiled_by_the_worker_once) {
  bench b;
  const std::string body = chat_head + R"(,"n":2,"guided_regex":"[ab]c"})";
  b.send(body);
  BOOST_TEST(b.submitted.empty());
  b.pool.run_one();
  b.read_mailbox();
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 1u);
  for (const auto& row : b.submitted[0].rows) {
    BOOST_REQUIRE(row.rule);
    BOOST_TEST(row.rule->field() == "guided_regex");
    BOOST_TEST(next_of(row, "") == ">");  // the prompt ends in an open tag
    BOOST_TEST(next_of(row, ">") == "\nab");
    BOOST_TEST(next_of(row, ">\na") == "c");
    BOOST_TEST(next_of(row, ">\nac") == "");
  }
  b.send(body);
  BOOST_TEST(b.pool.long_work.empty());
  BOOST_TEST(b.submitted.size() == 2u);
  b.send(chat_head + R"(,"guided_regex":"[ab]d"})");
  BOOST_TEST(b.pool.long_work.size() == 1u);
}

BOOST_AUTO_TEST_CASE(the_cache_is_limited) {
  bench b;
  b.context->settings.limits.grammars_max = 1;
  for (const auto pattern : {"a", "b", "a"}) {
    b.send(chat_head + R"(,"regex":")" + pattern + "\"}");
    b.pool.run_one();
    b.read_mailbox();
  }
  b.send(chat_head + R"(,"regex":"a"})");
  BOOST_TEST(b.submitted.size() == 4u);
}

BOOST_AUTO_TEST_CASE(the_text_follows_what_the_prompt_opens) {
  const auto rule_of = [](const std::string& body, const protocol::dialect& as) {
    bench b;
    b.send(body, as);
    b.pool.run_one();
    b.read_mailbox();
    return b.submitted.at(0).rows.at(0);
  };
  BOOST_TEST(next_of(rule_of(R"({"prompt":"x","regex":"a"})", protocol::dialects::completions), "") == "a");
  const auto thinking = rule_of(chat_head + R"(,"reasoning_effort":"medium","regex":"a"})", protocol::dialects::chat);
  BOOST_TEST(next_of(thinking, ">hm</thin").size() > 200u);
  BOOST_TEST(next_of(thinking, ">hm</think>") == "\na");
  const auto going_on =
      rule_of(R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"So"}],"regex":"a"})",
              protocol::dialects::chat);
  BOOST_TEST(next_of(going_on, "") == "a");
}

BOOST_AUTO_TEST_CASE(thoughts_end_at_their_limit) {
  const auto rule_of = [](const std::string& members, const protocol::dialect& as) {
    bench b;
    b.send(chat_head + members, as);
    if (!b.pool.long_work.empty()) b.pool.run_one();
    b.read_mailbox();
    return b.submitted.at(0).rows.at(0);
  };
  const auto free = rule_of(R"(,"thinking":{"type":"enabled","budget_tokens":3},"n":2})", protocol::dialects::chat);
  BOOST_REQUIRE(free.rule);
  BOOST_TEST(free.rule->field() == "thinking.budget_tokens");
  BOOST_TEST(next_of(free, ">ab").size() == 256u);
  BOOST_TEST(next_of(free, ">abc") == "<");
  BOOST_TEST(next_of(free, ">abc</thin") == "k");
  BOOST_TEST(next_of(free, ">abc</think>").size() == 256u);
  const auto bound = rule_of(R"(,"think":true,"max_reasoning_tokens":3,"regex":"a"})", protocol::dialects::chat);
  BOOST_TEST(next_of(bound, ">abc") == "<");
  BOOST_TEST(next_of(bound, ">abc</think>") == "\na");
  BOOST_TEST(!rule_of(R"(,"max_reasoning_tokens":3})", protocol::dialects::chat).rule);  // it does not think
  BOOST_TEST(!rule_of(R"(,"think":true})", protocol::dialects::chat).rule);

  bench by_default;
  by_default.model->served.preset.default_think_tokens_max = 2;
  by_default.send(chat_head + R"(,"think":true})");
  BOOST_REQUIRE(by_default.submitted.at(0).rows.at(0).rule);
  BOOST_TEST(next_of(by_default.submitted[0].rows[0], ">a").size() == 256u);
  BOOST_TEST(next_of(by_default.submitted[0].rows[0], ">ab") == "<");

  bench unable;
  unable.model->served.constrains = false;
  unable.model->served.preset.default_think_tokens_max = 2;
  unable.send(chat_head + R"(,"think":true})");
  BOOST_TEST(!unable.submitted.at(0).rows.at(0).rule);  // no request is refused for a default
  unable.send(chat_head + R"(,"think":true,"max_reasoning_tokens":3})");
  BOOST_TEST(unable.out->status == 400u);
  BOOST_TEST(unable.has(R"("param":"max_reasoning_tokens")"));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_compiled_is_refused) {
  const std::pair<std::string, std::string> cases[] = {
      {R"("guided_regex":"(")", "guided_regex"},
      {R"("grammar":"root ::= x")", "grammar"},
      {R"("response_format":{"type":"json_schema","json_schema":{"schema":{"type":"string","pattern":"(a)\\1"}}})",
       "response_format.json_schema.schema"},
      {R"("regex":")" + std::string(300, 'a') + "\"", "regex"},
  };
  for (const auto& [member, field] : cases) {
    bench b;
    b.context->settings.limits.grammar_bytes_max = 250;
    b.send(chat_head + "," + member + "}");
    b.pool.run_one();
    BOOST_TEST_CONTEXT(member) {
      BOOST_TEST(b.out->status == 400u);
      BOOST_TEST(b.has(R"("param":")" + field + "\""));
      BOOST_TEST(b.submitted.empty());
    }
  }
  bench full;
  full.pool.full = true;
  full.send(chat_head + R"(,"regex":"a"})");
  BOOST_TEST(full.out->status == 429u);
}

BOOST_AUTO_TEST_CASE(what_is_not_strict_is_enforced_where_it_can_be) {
  bench b;
  std::size_t sent = 0;
  const auto next_with = [&](const std::string& fields, const std::string& said) -> std::string {
    b.send(chat_head + "," + fields + "}");
    if (!b.pool.long_work.empty()) b.pool.run_one();
    b.read_mailbox();
    if (b.submitted.size() == sent) return b.has("not supported") ? "refused" : "an unknown error";
    return next_of(b.submitted.at(sent++).rows.at(0), said);
  };
  const auto format = [](const std::string& schema, const std::string& strict) {
    return R"("response_format":{"type":"json_schema","json_schema":{"name":"x",)" + strict + R"("schema":)" + schema +
           "}}";
  };
  const std::string loose = R"({"type":"string","pattern":"(a)\\1"})", boolean = R"({"type":"boolean"})";
  BOOST_TEST(next_with(format(boolean, R"("strict":false,)"), ">").find_first_of("\"{[0") == std::string::npos);
  BOOST_TEST(next_with(format(loose, R"("strict":false,)"), ">").find('{') != std::string::npos);  // any JSON
  BOOST_TEST(next_with(format(loose, R"("strict":true,)"), ">") == "refused");
  BOOST_TEST(next_with(format(loose, ""), ">") == "refused");
  const auto tool = [](const std::string& strict) {
    return R"("tool_choice":"required","tools":[{"type":"function","function":{"name":"a",)" + strict +
           R"("parameters":{"type":"object","properties":{"x":{"type":"string","pattern":"(a)\\1"}}}}}])";
  };
  const std::string said = "\n{\"name\":\"a\",\"arguments\":{\"x\":";
  BOOST_TEST(next_with(tool(R"("strict":false,)"), said).find('{') != std::string::npos);
  BOOST_TEST(next_with(tool(""), said).find('{') != std::string::npos);
  BOOST_TEST(next_with(tool(R"("strict":true,)"), said) == "refused");
}

BOOST_AUTO_TEST_CASE(a_complete_text_is_a_stop) {
  bench b;
  b.send(chat_head + R"(,"regex":"[ab]c"})");
  b.pool.run_one();
  b.read_mailbox();
  b.admit();
  b.say(">ac");
  b.finish(device::finish_cause::stop_id);
  BOOST_TEST(b.has(R"("content":"ac")"));
  BOOST_TEST(b.has(R"("finish_reason":"stop")"));
}

BOOST_AUTO_TEST_CASE(newlines_of_the_grammar_are_delivered) {
  const std::string choices =
      R"(,"logprobs":true,"stream_options":{"include_usage":true},"guided_choice":["\nyes","\n\nno"])";
  for (const bool streamed : {false, true})
    for (const bool thinks : {false, true}) {
      bench b;
      b.send(chat_head + choices + (thinks ? R"(,"think":true)" : "") + (streamed ? R"(,"stream":true})" : "}"));
      b.pool.run_one();
      b.read_mailbox();
      const std::string lead = thinks ? ">\nhm</think>" : ">";
      BOOST_TEST(next_of(b.submitted.at(0).rows.at(0), lead) == "\n");
      BOOST_TEST(next_of(b.submitted[0].rows[0], lead + "\n") == "\ny");
      b.admit();
      b.say(lead + "\nyes");
      b.finish(device::finish_cause::stop_id);
      BOOST_TEST_CONTEXT(b.out->text) {
        if (streamed)
          BOOST_TEST(b.streamed("content") == "\\nyes");
        else
          BOOST_TEST(b.has(R"("content":"\nyes")"));
        BOOST_TEST(b.has(R"("token":"\n","logprob":-0.5)"));
        BOOST_TEST(b.has(thinks ? R"("completion_tokens":14,)" : R"("completion_tokens":4,)"));
      }
    }
}

BOOST_AUTO_TEST_CASE(newlines_before_the_text_of_a_grammar_are_not_delivered) {
  for (const std::string constraint :
       {R"("guided_choice":["123","45"])", R"("guided_json":{"type":"integer"})", R"("regex":"1[0-9\\n]*")"}) {
    bench b;
    b.send(chat_head + "," + constraint + "}");
    b.pool.run_one();
    b.read_mailbox();
    b.admit();
    b.say(">\n\n123");
    b.finish(device::finish_cause::stop_id);
    BOOST_TEST(b.has(R"("content":"123")"));
    BOOST_TEST(b.has(R"("completion_tokens":3,)"));
  }
}

BOOST_AUTO_TEST_CASE(a_call_in_free_text_becomes_a_call_of_the_answer) {
  const std::string tools =
      R"(,"tools":[{"type":"function","function":{"name":"add","parameters":{"properties":{"a":{"type":"integer"}}}}}])";
  for (const bool stream : {false, true}) {
    bench b;
    b.send(chat_head + tools + (stream ? R"(,"stream":true})" : "}"));
    b.pool.run_one();
    b.read_mailbox();
    const auto& row = b.submitted.at(0).rows.at(0);
    BOOST_TEST(next_of(row, ">So").size() > 200u);          // free text
    BOOST_TEST(next_of(row, ">So <tool_call>{\"") == "n");  // a call has begun; its name is first
    BOOST_TEST(next_of(row, ">So <tool_call>{\"name\":\"") == "a");
    BOOST_TEST(next_of(row, ">So <tool_call>{\"name\":\"add\"}") == "");  // never without arguments
    b.admit();
    b.say(">So: <tool_ca");
    if (stream) BOOST_TEST(b.streamed("content") == "So: ");
    b.say("ll>{\"name\":\"add\",\"arguments\":{\"a\":1}}");
    b.finish(device::finish_cause::stop_id);
    BOOST_TEST(b.has(R"("name":"add")"));
    BOOST_TEST(b.has(stream ? R"("function":{"arguments":"1"})" : R"("arguments":"{\"a\":1}")"));
    BOOST_TEST(b.has(R"("finish_reason":"tool_calls")"));
    BOOST_TEST(!b.has("tool_ca\""));
    if (!stream) BOOST_TEST(b.has(R"("content":"So: ")"));
  }
}

BOOST_AUTO_TEST_CASE(arguments_are_streamed_and_a_cut_call_stays_one) {
  const std::string tools =
      R"(,"parallel_tool_calls":false,"tools":[{"type":"function","function":{"name":"add","parameters":{"properties":{"a":{"type":"string"}}}}}])";
  for (const bool stream : {false, true}) {
    bench b;
    b.send(chat_head + tools + (stream ? R"(,"stream":true})" : "}"));
    b.pool.run_one();
    b.read_mailbox();
    b.admit();
    b.say("> <tool_call>{\"name\":\"add\",\"arguments\":{\"a\":\"on");
    if (stream) BOOST_TEST(b.has(R"("function":{"arguments":"n"})"));
    b.say("e");
    if (stream) BOOST_TEST(b.has(R"("function":{"arguments":"e"})"));
    b.finish(device::finish_cause::budget);
    BOOST_TEST(b.has(R"("name":"add")"));
    if (!stream) BOOST_TEST(b.has(R"("arguments":"{\"a\":\"one")"));
    BOOST_TEST(b.has(R"("finish_reason":"length")"));
  }
}

BOOST_AUTO_TEST_CASE(a_device_without_rules_recognises_calls) {
  bench b;
  b.model->served.constrains = false;
  const std::string tools = R"(,"tools":[{"type":"function","function":{"name":"add"}}])";
  b.send(chat_head + tools + "}");
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 1u);
  BOOST_TEST(!b.submitted[0].rows[0].rule);
  b.send(chat_head + tools + R"(,"tool_choice":"required"})");
  BOOST_TEST(b.out->status == 400u);
  BOOST_TEST(b.has(R"("param":"tools")"));
  b.send(chat_head + R"(,"regex":"a"})");
  BOOST_TEST(b.out->status == 400u);
  BOOST_TEST(b.has(R"("param":"regex")"));
}

BOOST_AUTO_TEST_SUITE_END()
