// Answers whose grammar leaves one continuation only, over each engine: the fake one, the CPU's and the emulated GPU's.
// Runs of forced tokens that are fed at once change no answer, wherever it is cut, paused or continued; they only take
// fewer ticks.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <string>

#include "tests/actors/engine_bench.hpp"

namespace {

using namespace skein;
using namespace skein::test;
namespace data = boost::unit_test::data;

/// Long names and constants, and a short text that the model chooses.
const std::string weather_schema =
    R"({"type":"object","additionalProperties":false,"required":["temperature_unit","place"],)"
    R"("properties":{"temperature_unit":{"enum":["degrees_celsius","degrees_fahrenheit"]},)"
    R"("place":{"type":"string","maxLength":5}}})";

std::string chat_with(const std::string& members) {
  return R"({"messages":[{"role":"user","content":"x"}],"seed":5,"temperature":1.3,"logit_bias":{"0":-100},)" +
         members + "}";
}
std::string structured(const std::string& members, int max_tokens = 150) {
  return chat_with(R"("max_tokens":)" + std::to_string(max_tokens) +
                   R"(,"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":)" + weather_schema +
                   "}}" + members);
}
std::string tool_call(const std::string& members) {
  return chat_with(R"("max_tokens":160,"tool_choice":"required","tools":[{"type":"function","function":{)"
                   R"("name":"get_current_weather","parameters":)" +
                   weather_schema + "}}]" + members);
}

struct timed_answer {
  std::string text;
  std::uint64_t turns = 0;
};

/// Without the random part of ids and the time, which the number of turns changes.
std::string repeatable(std::string text) {
  const std::pair<std::string_view, std::size_t> passing[] = {
      {"\"chatcmpl-", 24}, {"\"call_", 24}, {"\"created\":", 10}};
  for (const auto& [mark, bytes] : passing)
    for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + mark.size()))
      text.erase(at + mark.size(), bytes);
  return text;
}

/// What a client gets, in one piece or as a stream.
timed_answer ask(engine_bench& b, const std::string& body) {
  const std::uint64_t before = b.turns;
  b.open("job", "/v1/chat/completions", body);
  b.turn_until_ended("job");
  return {repeatable(b.clients["job"].out->text), b.turns - before};
}

constexpr std::uint32_t three_slots = 3;
constexpr auto without_store = engine_bench::stores::none;

}  // namespace

BOOST_AUTO_TEST_SUITE(forced_calls)

BOOST_DATA_TEST_CASE(answers_do_not_depend_on_runs, data::make(byte_engines()), which) {
  engine_bench one_by_one(which, three_slots, without_store, 0), at_once(which);
  std::vector<std::string> bodies{structured(R"(,"logprobs":true,"top_logprobs":2)"),
                                  structured(R"(,"presence_penalty":0.7,"frequency_penalty":0.4,"top_p":0.9)"),
                                  structured(R"(,"n":2)"),
                                  structured(""),
                                  structured(R"(,"stream":true)"),
                                  tool_call(""),
                                  tool_call(R"(,"stream":true)"),
                                  tool_call(R"(,"n":3)"),
                                  chat_with(R"("max_tokens":40,"thinking":{"type":"enabled","budget_tokens":3})")};
  if (which.in_part()) bodies.resize(3);
  for (const std::string& body : bodies) {
    const auto expected = ask(one_by_one, body), got = ask(at_once, body);
    BOOST_TEST(got.text == expected.text, body);
    BOOST_TEST(got.turns < expected.turns);
  }
  const auto expected = ask(one_by_one, tool_call("")), got = ask(at_once, tool_call(""));
  BOOST_TEST(got.text.find("get_current_weather") != std::string::npos, got.text);
  BOOST_TEST(4 * got.turns < 3 * expected.turns, got.turns << " turns instead of " << expected.turns);
  at_once.expect_idle();
}

BOOST_DATA_TEST_CASE(limits_and_stop_strings_cut_runs, data::make(fast_byte_engines()), which) {
  engine_bench one_by_one(which, three_slots, without_store, 0), at_once(which);
  const auto compare = [&](const std::string& body) {
    const auto expected = ask(one_by_one, body), got = ask(at_once, body);
    BOOST_TEST(got.text == expected.text, body);
    return got.text;
  };
  for (int most = 1; most < 60; most += 4) {
    const auto text = compare(structured("", most));
    if (most < 30) BOOST_TEST(text.find("\"completion_tokens\":" + std::to_string(most)) != std::string::npos, text);
  }
  for (const std::string stop : {"ratur", "unit", "_", "degr", "sius", R"(it\")"}) {
    const auto text = compare(structured(R"(,"n":2,"stop":[")" + stop + "\"]"));
    if (stop == "ratur") BOOST_TEST(text.find("rature") == std::string::npos, text);
    compare(structured(R"(,"stream":true,"stop":[")" + stop + "\"]"));
  }
  at_once.expect_idle();
}

BOOST_DATA_TEST_CASE(a_paused_answer_has_the_text_of_one_that_was_not, data::make(byte_engines()), which) {
  engine_bench b(which);
  const auto whole = [&] {
    ask(b, structured(R"(,"stream":true)"));
    return engine_bench::text_of(*b.clients["job"].out);
  }();
  for (const std::uint64_t at : {1, 3, 5, 9, 20, 30}) {
    b.open("begun", "/v1/chat/completions", structured(R"(,"stream":true)"));
    b.turn_until([&] { return b.sampled("begun") >= at || b.clients["begun"].out->ended; });
    if (b.clients["begun"].out->ended) break;
    BOOST_TEST(b.ask("/v1/server/pause", R"({"request_id":"begun"})").find(R"("paused":true)") != std::string::npos);
    std::string text = engine_bench::text_of(*b.clients["begun"].out);
    b.open("rest", "/v1/server/resume", R"({"request_id":"begun"})");
    b.turn_until_ended("rest");
    text += engine_bench::text_of(*b.clients["rest"].out);
    BOOST_TEST(text == whole, "paused after " << at);
  }
  b.expect_idle();
}

/// Others take the slots in the middle of runs.
BOOST_DATA_TEST_CASE(rows_that_are_parked_have_the_same_text, data::make(fast_byte_engines()), which) {
  engine_bench alone(which, three_slots, without_store, 0), b(which, 1);
  const std::vector<std::string> bodies = {structured(""), tool_call(""), structured(R"(,"n":2)")};
  const auto name = [](std::size_t i) { return "job-" + std::to_string(i); };
  for (std::size_t i = 0; i < bodies.size(); ++i) b.open(name(i), "/v1/chat/completions", bodies[i]);
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    b.turn_until_ended(name(i));
    alone.open(name(i), "/v1/chat/completions", bodies[i]);
    alone.turn_until_ended(name(i));
    BOOST_TEST(repeatable(b.clients[name(i)].out->text) == repeatable(alone.clients[name(i)].out->text));
  }
  b.expect_idle();
}

/// The state that a turn leaves has its whole text, and nothing behind a stop string.
BOOST_DATA_TEST_CASE(a_session_continues_after_a_run, data::make(fast_byte_engines()), which) {
  constexpr auto kept = engine_bench::stores::sessions;
  engine_bench one_by_one(which, three_slots, kept, 0), at_once(which, three_slots, kept);
  int number = 0;
  for (const std::string& ending :
       {std::string(), std::string(R"(,"stop":["grees_"])"), std::string(R"(,"stop":["\"place"])")})
    for (const int most : {150, 8, 12, 30, 34}) {
      const std::string session = R"(,"session_id":"s)" + std::to_string(number++) + "\"";
      for (const std::string& body : {structured(session + ending, most), chat_with(R"("max_tokens":12)" + session)}) {
        const auto expected = ask(one_by_one, body), got = ask(at_once, body);
        BOOST_TEST(at_once.clients["job"].out->status == 200u);
        BOOST_TEST(got.text == expected.text, body);
      }
    }
  at_once.expect_idle();
}

BOOST_AUTO_TEST_SUITE_END()
