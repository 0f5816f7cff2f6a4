// Bodies and events of /v1/completions against golden JSON.
#include <boost/test/unit_test.hpp>

#include "protocol/json/json.hpp"
#include "protocol/responses/completion_response.hpp"

namespace skein::protocol {
namespace {

const answer_head completion_head{"cmpl-0", "demo", "", 7};
const std::string completion_head_json =
    R"({"id":"cmpl-0","object":"text_completion","created":7,"model":"demo","system_fingerprint":null,"choices":[)";

BOOST_AUTO_TEST_SUITE(completion_response)

BOOST_AUTO_TEST_CASE(whole_answer) {
  const answer_end paused{finish_reason::length, std::monostate{}, administrative_stop{"paused", "r"}};
  const completion_choice choice{3, "and so", {}, paused};
  BOOST_TEST(completion_body(completion_head, {{choice}}, {.prompt_tokens = 2, .completion_tokens = 3}) ==
             completion_head_json +
                 R"({"index":3,"text":"and so","logprobs":null,"finish_reason":"length","stop_reason":null}],)"
                 R"("usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5,)"
                 R"("prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}},)"
                 R"("rwkv":{"stop_reason":"paused","request_id":"r"}})");
}

BOOST_AUTO_TEST_CASE(log_probabilities_of_an_echoed_prompt) {
  completion_choice choice;
  choice.text = "ab\xe4";
  choice.logprobs = {{"a", std::nullopt, {}, 0},
                     {"b", -1.5f, {{"b", -1.5f}, {"", -2.0f}, {"", -3.0f}, {"\xe4", -4.0f}}, 1},
                     {"\xe4", -0.25f, {}, 2}};
  const auto body = completion_body(completion_head, {{choice}}, {});
  BOOST_TEST(body.find(R"("logprobs":{"tokens":["a","b","bytes:\\xe4"],"token_logprobs":[null,-1.5,-0.25],)"
                       R"("top_logprobs":[null,{"b":-1.5,"":-2,"bytes:\\xe4":-4},{}],"text_offset":[0,1,2]})") !=
             std::string::npos);
  BOOST_TEST(json_document::parse(body, {}).has_value());
}

BOOST_AUTO_TEST_CASE(chunks) {
  BOOST_TEST(completion_chunk(completion_head, {1, "x", {}}, false) ==
             completion_head_json +
                 R"({"index":1,"text":"x","logprobs":null,"finish_reason":null,"stop_reason":null}]})");
  BOOST_TEST(completion_final_chunk(completion_head, 1, {finish_reason::stop, std::string("END"), {}}, true) ==
             completion_head_json +
                 R"({"index":1,"text":"","logprobs":null,"finish_reason":"stop","stop_reason":"END"}],"usage":null})");
  const auto usage = completion_usage_chunk(completion_head, {1, 1, 0, 0});
  BOOST_TEST(usage.starts_with(completion_head_json + R"(],"usage":{"prompt_tokens":1,)"));
  const std::vector<logprob_entry> entries{{"x", -1.0f, {{"x", -1.0f}}, 4}};
  BOOST_TEST(completion_chunk(completion_head, {0, "x", entries}, false).find(R"("text_offset":[4])") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::protocol
