// Events of the Responses API: a replay from any number on has the same events, and a resumed answer continues with
// numbers that were not sent before.
#include "protocol/responses_api/response_writer.hpp"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "protocol/requests/dialect.hpp"
#include "protocol/requests/request_digest.hpp"
#include "protocol/responses_api/response_id.hpp"
#include "protocol/responses_api/responses_request.hpp"

using namespace skein;
using namespace skein::protocol;

namespace {

constexpr std::string_view conversation = "conv_0123456789abcdef01234567";
const std::string id = "resp_0123456789abcdef0123456789abcdef0123456789abcdef";

answer_head response_head() { return {id, "m", "", 1, false}; }

std::vector<std::string> cut(const std::string& events) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < events.size();) {
    const std::size_t end = events.find("\n\n", at) + 2;
    all.push_back(events.substr(at, end - at));
    at = end;
  }
  return all;
}

std::string deltas(const response_writer& writer) {
  std::string events = writer.begin_event(response_head(), 0);
  for (const auto& [reasoning, content] :
       std::vector<std::pair<std::string, std::string>>{{"a", ""}, {"bc", ""}, {"d", "E"}, {"", "FG"}}) {
    const row_delta delta{0, reasoning, content, {}};
    events += writer.delta_events(response_head(), {&delta, 1});
  }
  return events;
}

std::string ended(const response_writer& writer, const char* stopped = nullptr) {
  answer_end end;
  if (stopped) end.administrative = administrative_stop{stopped, ""};
  std::string events = writer.end_event(response_head(), 0, end, nullptr);
  return events += writer.last_events(response_head(), {5, 4, 1, 2}, nullptr);
}

/// The turn that the log has of it.
logged_response logged(const response_writer& writer, const char* stopped = "") {
  logged_response turn{id,     "{\"temperature\":0.5,\"max_tokens\":8,\"seed\":3,\"response\":", "abcd", "EFG", "stop",
                       stopped};
  turn.settings += writer.remembered(response_head(), {5, 4, 1, 2}) + "}";
  turn.unfinished = *stopped != '\0';
  turn.tokens_sampled = 4;
  return turn;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(response_events_of)

BOOST_AUTO_TEST_CASE(names) {
  BOOST_TEST(is_conversation_id(conversation));
  BOOST_TEST(!is_conversation_id("conv_0123456789ABCDEF01234567"));
  const auto made = response_id(conversation, {1, 2, 3});
  BOOST_TEST(conversation_of(made).value() == conversation);
  BOOST_TEST(!conversation_of("resp_12"));
  BOOST_TEST(!conversation_of(conversation));
}

BOOST_AUTO_TEST_CASE(the_log_tells_the_same_from_any_number_on) {
  const response_writer writer({});
  std::string told = deltas(writer);
  const auto all = cut(told += ended(writer));
  BOOST_REQUIRE_GT(all.size(), 15u);
  const auto known = read_logged(logged(writer));
  BOOST_REQUIRE(known.has_value());
  const auto again = cut(response_events(*known, std::nullopt, nullptr));
  BOOST_TEST(again == all, boost::test_tools::per_element());
  for (std::size_t after = 0; after < all.size(); ++after) {
    const auto rest = cut(response_events(*known, after, nullptr));
    BOOST_TEST(rest == (std::vector<std::string>(all.begin() + static_cast<std::ptrdiff_t>(after) + 1, all.end())),
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(the_size_of_events_is_known_before_they_are_written) {
  response_facts facts;
  facts.instructions = std::string(50'000, '"');
  facts.tools = "[\"" + std::string(50'000, 'x') + "\"]";
  for (const std::size_t step : {1u, 40u}) {
    std::vector<std::uint32_t> steps(8000, static_cast<std::uint32_t>(step));
    steps.insert(steps.begin() + 4000, 50'000, 0u);  // numbers without events
    const response_text text{std::string(step * 8000, 'a'), std::string(step * 8000, '\n'), steps, steps};
    const known_response known{facts, {}, text, {response_status::completed, "", "", false}};
    for (const std::uint64_t after : {0u, 4000u, 4100u, 54'000u, 62'000u, 1'000'000u}) {
      const std::size_t bytes = event_bytes(known.facts, known.text, after);
      const std::size_t real = response_events(known, after, nullptr).size();
      BOOST_TEST(real <= bytes);
      if (after == 0) BOOST_TEST(bytes < 2 * real);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_late_follower_gets_the_events_so_far) {
  const response_writer writer({});
  const auto all = cut(deltas(writer));
  BOOST_TEST(cut(writer.told_again(response_head(), std::nullopt)) == all, boost::test_tools::per_element());
  BOOST_TEST(writer.told_again(response_head(), all.size() - 2) == all.back());
  BOOST_TEST(writer.told_again(response_head(), all.size() + 7).empty());
  const std::string joined = ": a comment\n\n" + all[3] + all[4] + all[5];
  BOOST_TEST(events_after(joined, 3) == all[4] + all[5]);
  BOOST_TEST(events_after(joined, 1) == all[3] + all[4] + all[5]);
  BOOST_TEST(events_after(joined, 9).empty());
}

BOOST_AUTO_TEST_CASE(an_interrupted_answer_continues_after_its_last_number) {
  response_facts facts;
  facts.tokens_max = 9;
  const response_writer writer(facts);
  const auto before = cut(deltas(writer));
  const auto broken = cut(ended(writer, "drain"));
  BOOST_REQUIRE_EQUAL(broken.size(), 1u);  // its items are not over
  BOOST_TEST(broken[0].find("\"status\":\"incomplete\"") != std::string::npos);

  const auto request = go_on_with(logged(writer, "drain"), {}, {}, {before.size(), false, std::nullopt});
  BOOST_REQUIRE(request.has_value());
  BOOST_TEST(request->session->go_on);
  BOOST_TEST(request->sampling.max_tokens == 5u);
  BOOST_TEST(request->sampling.seed == 3u);
  BOOST_TEST(request->sampling.sampled_before == 4u);
  BOOST_TEST(request->writer->begin_event(response_head(), 0).empty());  // the client has all of it
  const row_delta more{0, "", "H", {}};
  const auto next = request->writer->delta_events(response_head(), {&more, 1});
  BOOST_TEST(next.find("\"sequence_number\":" + std::to_string(before.size() + 1) + ",") != std::string::npos);

  // A server that died sent no ending event, so no number is missing.
  auto crashed = logged(writer, "crash");
  crashed.without_ending = true;
  const auto killed = go_on_with(crashed, {}, {}, {before.size() - 1, false, std::nullopt});
  BOOST_REQUIRE(killed.has_value());
  BOOST_TEST(killed->writer->begin_event(response_head(), 0).empty());
  const auto at_once = killed->writer->delta_events(response_head(), {&more, 1});
  BOOST_TEST(at_once.find("\"sequence_number\":" + std::to_string(before.size()) + ",") != std::string::npos);

  BOOST_TEST(request->stop == model_preset{}.stop, boost::test_tools::per_element());  // the log has none

  auto ruled = logged(writer, "drain");
  ruled.settings.insert(1, R"("stop":["END"],"stop_ids":[7],"ignore_eos":true,"logit_bias":[[5,-2.5]],)");
  const auto by_rules = go_on_with(ruled, {}, {}, {before.size(), false, std::nullopt});
  BOOST_REQUIRE(by_rules.has_value());
  BOOST_TEST(by_rules->stop == std::vector<std::string>{"END"}, boost::test_tools::per_element());
  BOOST_TEST(by_rules->sampling.stop_ids == std::vector<token_id>{7}, boost::test_tools::per_element());
  BOOST_TEST(by_rules->ignore_eos);
  BOOST_REQUIRE_EQUAL(by_rules->sampling.logit_bias.size(), 1u);
  BOOST_TEST(by_rules->sampling.logit_bias[0].token == 5u);
  BOOST_TEST(by_rules->sampling.logit_bias[0].bias == -2.5f);
  BOOST_TEST((!by_rules->shows_stop && !by_rules->penalises_prompt && !by_rules->force_reasoning));

  auto switched = logged(writer, "drain");
  switched.settings.insert(1, R"("include_stop_str_in_output":true,"global_penalty":true,"force_reasoning":true,)");
  const auto by_switches = go_on_with(switched, {}, {}, {before.size(), false, std::nullopt});
  BOOST_REQUIRE(by_switches.has_value());
  BOOST_TEST((by_switches->shows_stop && by_switches->penalises_prompt && by_switches->force_reasoning));

  auto much = logged(writer, "drain");  // as no request can say it
  std::string ids = "1", biases = "[1,1e300]", stops = "\"END\"";
  for (int i = 0; i < 2000; ++i) ids += ",2", biases += ",[2,1]", stops += ",\"x\"";
  much.settings.insert(1, "\"min_p\":3,\"penalty_decay\":1e9,\"stop\":[" + stops + "],");
  much.settings.insert(1, "\"stop_ids\":[" + ids + "],\"logit_bias\":[" + biases + "],");
  const auto by_much = go_on_with(much, {}, {}, {before.size(), false, std::nullopt});
  BOOST_REQUIRE(by_much.has_value());
  BOOST_TEST(by_much->sampling.stop_ids.size() == request_limits{}.stop_ids_max);
  BOOST_TEST(by_much->sampling.logit_bias.size() == request_limits{}.logit_bias_max);
  BOOST_TEST(by_much->sampling.logit_bias[0].token == 1);
  BOOST_TEST(by_much->sampling.logit_bias[0].bias == 100);
  BOOST_TEST(by_much->stop.size() < 1000u);
  BOOST_TEST(by_much->sampling.min_p == 1);
  BOOST_TEST(by_much->sampling.penalty_decay == 1);

  auto whole = logged(static_cast<const response_writer&>(*request->writer));
  whole.answer = "EFGH";
  const auto known = read_logged(whole);
  BOOST_REQUIRE(known.has_value());
  const auto again = cut(response_events(*known, std::nullopt, nullptr));
  BOOST_TEST(again[before.size() - 1] == before.back());
  BOOST_TEST(again[before.size()] == next);
}

BOOST_AUTO_TEST_CASE(settings_of_other_kinds_are_damage) {
  const response_writer writer({});
  (void)deltas(writer);
  const auto with = [&](const std::string& members) {
    auto turn = logged(writer, "drain");
    turn.settings.insert(1, members + ",");
    return turn;
  };
  for (const char* const members : {R"("stop":1)",
                                    R"("stop":{})",
                                    R"("stop":"END")",
                                    R"("stop":[1])",
                                    R"("stop":[["END"]])",
                                    R"("stop_ids":{})",
                                    R"("stop_ids":7)",
                                    R"("stop_ids":["7"])",
                                    R"("stop_ids":[-1])",
                                    R"("stop_ids":[4294967303])",
                                    R"("logit_bias":7)",
                                    R"("logit_bias":{"5":1})",
                                    R"("logit_bias":[1])",
                                    R"("logit_bias":[{}])",
                                    R"("logit_bias":[[]])",
                                    R"("logit_bias":[[5]])",
                                    R"("logit_bias":[[5,1,1]])",
                                    R"("logit_bias":[["5",1]])",
                                    R"("logit_bias":[[5,"1"]])",
                                    R"("logit_bias":[[1e300,1]])",
                                    R"("ignore_eos":"yes")",
                                    R"("global_penalty":1)",
                                    R"("top_k":[])"}) {
    const auto turn = with(members);
    BOOST_TEST_CONTEXT(members) {
      BOOST_TEST(read_logged(turn).has_value());  // these only matter to an answer that continues
      const auto request = go_on_with(turn, {}, {}, {});
      BOOST_REQUIRE(!request.has_value());
      BOOST_TEST((request.error().kind == error_kind::damaged));
    }
  }
  BOOST_TEST(go_on_with(with(R"("stop":null,"stop_ids":[],"logit_bias":[])"), {}, {}, {}).has_value());
}

BOOST_AUTO_TEST_CASE(a_response_of_other_kinds_is_damage) {
  for (const char* const members :
       {R"("content_steps":{})", R"("usage":[])", R"("metadata":{"a":{}})", R"("metadata":[])", R"("created_at":"x")",
        R"("reasoning":{"summary":[]})", R"("text":{"format":[]})", R"("instructions":{})", R"("store":1)"}) {
    const logged_response turn{id, std::string("{\"response\":{") + members + "}}", "", "x", "length", ""};
    BOOST_TEST_CONTEXT(members) {
      const auto known = read_logged(turn);
      BOOST_REQUIRE(!known.has_value());
      BOOST_TEST((known.error().kind == error_kind::damaged));
      BOOST_TEST(!go_on_with(turn, {}, {}, {}).has_value());
    }
  }
  for (const char* const members :
       {R"("tools":{})", R"("tools":[7])", R"("tool_choice":[])", R"("thinking":"on")", R"("constraint":1)",
        R"("constraint":{})", R"("constraint":{"kind":"none"})", R"("constraint":{"kind":"regex","text":1})"}) {
    const logged_response turn{id, std::string("{\"response\":{") + members + "}}", "", "x", "length", ""};
    BOOST_TEST_CONTEXT(members) {
      const auto request = go_on_with(turn, {}, {}, {});
      BOOST_REQUIRE(!request.has_value());
      BOOST_TEST((request.error().kind == error_kind::damaged));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_continued_answer_keeps_its_constraint) {
  using kind = text_constraint::kind;
  const auto constraints = [](const std::string& members) {
    const std::string body = R"({"input":"q",)" + members + "}";
    const auto first = read_request(body, dialects::responses, {}, {});
    BOOST_REQUIRE(first.request.has_value());
    const logged_response turn = logged(static_cast<const response_writer&>(*first.request->writer), "drain");
    const auto next = go_on_with(turn, {}, {}, {});
    BOOST_REQUIRE(next.has_value());
    return std::pair(first.request->constraint, next->constraint);
  };
  const std::vector<std::pair<std::string, kind>> all{
      {R"("guided_regex":"a\"+")", kind::regex},
      {R"("guided_choice":["a","b"])", kind::choices},
      {R"("guided_grammar":"root ::= \"a\"")", kind::gbnf},
      {R"("bnf_schema":"start ::= \"a\";")", kind::kbnf},
      {R"("guided_json":{"enum":["a"]})", kind::json_schema},
      {R"("guided_json_object":true)", kind::json_object},
      {R"("structured_outputs":{"regex":"a"})", kind::regex},
      {R"("response_format":{"type":"json_schema","json_schema":{"strict":false,"schema":{}}})", kind::json_schema},
      {R"("text":{"format":{"type":"json_schema","schema":{"enum":["a"]}}})", kind::json_schema},
      {R"("guided_json":{"enum":["a"]},"tools":[{"type":"function","name":"f"}])", kind::calls}};
  for (const auto& [members, what] : all) {
    BOOST_TEST_CONTEXT(members) {
      const auto [before, after] = constraints(members);
      BOOST_REQUIRE((before && after));
      BOOST_TEST((before->what == what && after->what == what));
      BOOST_TEST(after->text == before->text);
      BOOST_TEST(after->field.ends_with(before->field));
      BOOST_TEST(after->relaxed == before->relaxed);
      BOOST_TEST(after->marks == before->marks, boost::test_tools::per_element());
      BOOST_TEST(after->calls.functions.size() == before->calls.functions.size());
      BOOST_TEST(after->calls.answer.has_value() == before->calls.answer.has_value());
      if (before->calls.answer && after->calls.answer)
        BOOST_TEST(after->calls.answer->text == before->calls.answer->text);
    }
  }
  BOOST_TEST(!constraints(R"("user":"a")").second);
}

BOOST_AUTO_TEST_CASE(a_continued_answer_keeps_the_limit_that_it_began_with) {
  response_facts facts;
  facts.effort = "high";
  model_preset preset;
  preset.default_think_tokens_max = 7;
  const auto limit_of = [&] {
    const auto request = go_on_with(logged(response_writer(facts), "drain"), preset, {}, {});
    return request->thoughts ? request->thoughts->tokens_max : 0;
  };
  BOOST_TEST(limit_of() == 0u);
  facts.thought_tokens_max = 9;
  BOOST_TEST(limit_of() == 9u);
}

/// A response that calls tools: the first call in two steps, and the beginning of a second one.
std::string called(const response_writer& writer) {
  std::string events = writer.begin_event(response_head(), 0);
  const std::vector<call_piece> pieces{
      {call_id(id, 0, 0), "add", "{\"a\""}, {"", "", ":1}", true}, {call_id(id, 0, 1), "add", "{\"b", false, 1}};
  for (const auto& piece : pieces) {
    const row_delta delta{0, "", "", {}, {&piece, 1}};
    events += writer.delta_events(response_head(), {&delta, 1});
  }
  return events;
}

logged_response logged_call(const response_writer& writer, std::string arguments, const char* stopped) {
  auto turn = logged(writer, stopped);
  turn.reasoning.clear();
  turn.finish_reason = "length";
  turn.answer =
      "```json\n{\"name\":\"add\",\"arguments\":{\"a\":1}}\n```\n```json\n{\"name\":\"add\",\"arguments\":" + arguments;
  return turn;
}

response_facts with_tools() {
  response_facts facts;
  facts.tools = R"([{"type":"function","name":"add"}])";
  return facts;
}

BOOST_AUTO_TEST_CASE(a_call_that_is_cut_is_told_again_and_continues) {
  const response_writer writer(with_tools());
  const auto before = cut(called(writer));
  BOOST_TEST(cut(writer.told_again(response_head(), std::nullopt)) == before, boost::test_tools::per_element());
  BOOST_REQUIRE_EQUAL(before.size(), 2u + 5u + 2u);  // of the response; of a whole call; of the cut one
  answer_end end;
  end.reason = finish_reason::length;
  (void)writer.end_event(response_head(), 0, end, nullptr);
  const auto ending = cut(writer.last_events(response_head(), {}, nullptr));
  BOOST_REQUIRE_EQUAL(ending.size(), 2u);
  BOOST_TEST(ending[0].find("response.output_item.done") != std::string::npos);
  BOOST_TEST(ending[0].find(R"("status":"incomplete","call_id":"call_)") != std::string::npos);
  BOOST_TEST(ending[0].find(R"("arguments":"{\"b"}})") != std::string::npos);

  const auto known = read_logged(logged_call(writer, "{\"b", ""));
  BOOST_REQUIRE(known.has_value());
  auto all = before;
  all.insert(all.end(), ending.begin(), ending.end());
  auto again = cut(response_events(*known, std::nullopt, nullptr));
  BOOST_REQUIRE_EQUAL(again.size(), all.size());
  BOOST_TEST(std::equal(again.begin(), again.end() - 1, all.begin()));  // the last one has the usage

  const auto request = go_on_with(logged_call(writer, "{\"b", ""), {}, {}, {all.size() - 1, true, std::nullopt});
  BOOST_REQUIRE(request.has_value());
  BOOST_TEST(request->writer->begin_event(response_head(), 0).empty());
  const call_piece rest{"", "", "\":2}", true, 1};
  const row_delta delta{0, "", "", {}, {&rest, 1}};
  const auto next = cut(request->writer->delta_events(response_head(), {&delta, 1}));
  BOOST_REQUIRE_EQUAL(next.size(), 3u);
  BOOST_TEST(next[0].find("\"sequence_number\":" + std::to_string(all.size()) + ",") != std::string::npos);
  BOOST_TEST(next[1].find(R"("arguments":"{\"b\":2}")") != std::string::npos);

  const auto& after = static_cast<const response_writer&>(*request->writer);
  const auto whole = read_logged(logged_call(after, "{\"b\":2}}\n```", ""));
  again = cut(response_events(*whole, all.size() - 1, nullptr));
  BOOST_REQUIRE_EQUAL(again.size(), next.size() + 1);
  BOOST_TEST(std::equal(next.begin(), next.end(), again.begin()));
}

// The log nests them one level deeper than the request did.
BOOST_AUTO_TEST_CASE(settings_may_be_as_deep_and_long_as_any_request) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + "1" + std::string(levels, ']'); };
  for (const std::size_t levels : {63u, 64u, config::limits::json_depth_max - 1}) {
    response_facts facts;
    facts.tools = nested(levels);
    facts.tool_choice = "\"none\"";
    auto turn = logged(response_writer(facts));
    turn.settings.insert(1, "\"request_digest\":17,\"hidden_tokens\":1,");
    BOOST_TEST_CONTEXT(levels) {
      BOOST_TEST(read_logged(turn).has_value());
      BOOST_TEST(go_on_with(turn, {}, {}, {}).has_value());
      BOOST_TEST(request_digest_in(turn.settings).value_or(0) == 17u);
      BOOST_TEST(hidden_tokens(turn.settings) == 1u);
      BOOST_TEST(request_digest("{\"tools\":" + facts.tools + "}").has_value());
    }
  }
  response_facts facts;
  facts.instructions = std::string(json_limits{}.bytes_max, 'x');
  BOOST_TEST(read_logged(logged(response_writer(facts))).has_value());
}

BOOST_AUTO_TEST_CASE(a_turn_of_another_route_is_no_response) {
  logged_response turn{id, "{\"temperature\":1}", "", "x", "stop", ""};
  BOOST_TEST(!read_logged(turn).has_value());
  turn.settings = "";
  BOOST_TEST(!read_logged(turn).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
