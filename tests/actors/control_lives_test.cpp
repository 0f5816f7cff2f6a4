// Requests that are paused, resumed, stopped and left by their clients while an engine computes them: the fake one, the
// CPU's and the emulated GPU's. An interrupted answer has the text of the uninterrupted one, and no number that a
// client sends ends the process.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <string>

#include "tests/actors/engine_bench.hpp"

namespace {

using namespace skein;
using namespace skein::test;
namespace data = boost::unit_test::data;

/// `count` entries: no end of text, so that answers reach their limit; many an `n`, so that a ban of it shows; and from
/// the highest token down, none without a text.
std::string bias_of(std::size_t count) {
  std::string entries = R"("0":-100,"111":3)";
  for (std::size_t i = 2; i < count; ++i) {
    const std::size_t token = byte_engine::vocab + 1 - i;
    entries += ",\"" + std::to_string(token) + "\":" + (token > 257 ? "-100" : "0.5");
  }
  return "{" + entries + "}";
}

std::string reasoning_chat(std::size_t biases, std::size_t prompt_bytes = 3) {
  return R"({"messages":[{"role":"user","content":")" + std::string(prompt_bytes, 'x') +
         R"("}],"think_type":"en","force_reasoning":true,"seed":11,"temperature":1.2,"top_p":0.9,"max_tokens":24,)" +
         R"("stop":["<never>"],"stream":true,"logit_bias":)" + bias_of(biases) + "}";
}

std::string named(const std::string& id) { return R"({"request_id":")" + id + "\"}"; }

}  // namespace

BOOST_DATA_TEST_CASE(a_paused_chat_has_the_text_of_one_that_was_not, data::make(byte_engines()), which) {
  engine_bench b(which);
  b.open("whole", "/v1/chat/completions", reasoning_chat(900));
  b.turn_until_ended("whole");
  const std::string whole = engine_bench::text_of(*b.clients["whole"].out);
  BOOST_TEST(whole.size() >= 24u);

  for (const std::uint64_t at : {0, 1, 2, 3, 10})
    for (const bool twice : {false, true}) {
      BOOST_TEST_CONTEXT("paused after " << at << (twice ? " and again" : "")) {
        b.open("job", "/v1/chat/completions", reasoning_chat(900));
        b.turn_until([&] { return at == 0 ? b.fed("job") > 0 : b.sampled("job") >= at; });
        BOOST_TEST(b.ask("/v1/server/pause", named("job")).find(R"("paused":true)") != std::string::npos);
        std::string text = engine_bench::text_of(*b.clients["job"].out);
        std::string last = "job";
        if (twice) {
          b.open("more", "/v1/server/resume", named("job"));
          b.turn_until([&] { return b.sampled("more") >= 1; });
          BOOST_TEST(b.ask("/v1/server/pause", named("more")).find(R"("paused":true)") != std::string::npos);
          text += engine_bench::text_of(*b.clients["more"].out);
          last = "more";
        }
        b.open("rest", "/v1/server/resume", named(last));
        b.turn_until_ended("rest");
        text += engine_bench::text_of(*b.clients["rest"].out);
        BOOST_TEST(text == whole);
      }
    }
  b.expect_idle();
}

BOOST_DATA_TEST_CASE(a_reasoning_chat_with_all_biases_can_be_paused_again_and_again, data::make(byte_engines()),
                     which) {
  engine_bench b(which);
  std::string last = "job-0";
  b.open(last, "/v1/chat/completions", reasoning_chat(sampling::request_bias_max, 100));
  for (int round = 1; round <= 6; ++round) {
    BOOST_TEST_REQUIRE(!b.clients[last].out->ended, b.clients[last].out->text);
    b.turn_until([&] { return b.fed(last) > 0; });
    BOOST_TEST(b.ask("/v1/server/pause", named(last)).find(R"("paused":true)") != std::string::npos);
    const std::string next = "job-" + std::to_string(round);
    b.open(next, "/v1/server/resume", named(last));
    last = next;
  }
  b.turn_until_ended(last);
  BOOST_TEST(b.clients[last].out->status == 200u);
  BOOST_TEST(b.clients[last].out->has(R"("finish_reason":"length")"));
  b.expect_idle();
}
