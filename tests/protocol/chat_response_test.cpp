// Bodies and events of /v1/chat/completions against golden JSON, and a whole stream put back together as a client does:
// SSE frames to JSON, deltas to texts.
#include <boost/test/unit_test.hpp>
#include <limits>
#include <map>

#include "protocol/json/json.hpp"
#include "protocol/responses/chat_response.hpp"
#include "protocol/responses/sse.hpp"

namespace skein::protocol {
namespace {

const answer_head chat_head{"chatcmpl-0", "demo", "skein-demo-bf16", 1769000000};
const std::string chat_head_json =
    R"("created":1769000000,"model":"demo","system_fingerprint":"skein-demo-bf16","choices":[)";
const std::string chunk_json = R"({"id":"chatcmpl-0","object":"chat.completion.chunk",)" + chat_head_json;

BOOST_AUTO_TEST_SUITE(chat_response)

BOOST_AUTO_TEST_CASE(ids) {
  const std::array<std::uint8_t, 12> random{0, 1, 2, 0xab, 0xcd, 0xef, 6, 7, 8, 9, 10, 0xff};
  BOOST_TEST(answer_id("chatcmpl-", random) == "chatcmpl-000102abcdef060708090aff");
  BOOST_TEST(answer_id("cmpl-", random) == "cmpl-000102abcdef060708090aff");
}

BOOST_AUTO_TEST_CASE(whole_answer) {
  const chat_choice plain{0, "", "Hi \"you\"\n", {}, {finish_reason::stop, "\nUser:", {}}};
  const chat_choice thought{1, "hm", "So.", {}, {finish_reason::length, std::monostate{}, {}}};
  const std::vector<chat_choice> choices{plain, thought};
  BOOST_TEST(
      chat_body(chat_head, choices,
                {.prompt_tokens = 10, .completion_tokens = 5, .cached_tokens = 4, .reasoning_tokens = 2}) ==
      R"({"id":"chatcmpl-0","object":"chat.completion",)" + chat_head_json +
          R"({"index":0,"message":{"role":"assistant","content":"Hi \"you\"\n"},"logprobs":null,)"
          R"("finish_reason":"stop","stop_reason":"\nUser:"},)"
          R"({"index":1,"message":{"role":"assistant","content":"So.","reasoning_content":"hm"},"logprobs":null,)"
          R"("finish_reason":"length","stop_reason":null}],)"
          R"("usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,)"
          R"("prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}})");
}

BOOST_AUTO_TEST_CASE(an_administrative_end_is_told) {
  const answer_end drained{finish_reason::length, std::monostate{}, administrative_stop{"drain", "req-1"}};
  const chat_choice cut{0, "", "Onc", {}, drained};
  const auto body = chat_body(chat_head, {{cut}}, {});
  BOOST_TEST(body.ends_with(R"(,"rwkv":{"stop_reason":"drain","request_id":"req-1"}})"));
  const auto chunk = chat_final_chunk(chat_head, 0, drained, false);
  BOOST_TEST(chunk == chunk_json +
                          R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"length","stop_reason":null}],)"
                          R"("rwkv":{"stop_reason":"drain","request_id":"req-1"}})");
}

BOOST_AUTO_TEST_CASE(log_probabilities) {
  const logprob_entry whole{"é", -0.5f, {{"é", -0.5f}, {"\xe4\xbd", -std::numeric_limits<float>::infinity()}}, 0};
  const std::vector<logprob_entry> entries{whole};
  const std::string expected =
      R"("logprobs":{"content":[{"token":"é","logprob":-0.5,"bytes":[195,169],"top_logprobs":[)"
      R"({"token":"é","logprob":-0.5,"bytes":[195,169]},)"
      R"({"token":"bytes:\\xe4\\xbd","logprob":-9999,"bytes":[228,189]}]}]})";
  const chat_choice choice{0, "", "é", entries, {}};
  BOOST_TEST(chat_body(chat_head, {{choice}}, {}).find(expected) != std::string::npos);
  BOOST_TEST(chat_delta_chunk(chat_head, {0, "", "é", entries}, false).find(expected) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(chunks) {
  BOOST_TEST(chat_role_chunk(chat_head, 2, false) ==
             chunk_json + R"({"index":2,"delta":{"role":"assistant","content":""},"logprobs":null,)"
                          R"("finish_reason":null,"stop_reason":null}]})");
  BOOST_TEST(chat_delta_chunk(chat_head, {0, "why", "", {}}, true) ==
             chunk_json + R"({"index":0,"delta":{"reasoning_content":"why"},"logprobs":null,)"
                          R"("finish_reason":null,"stop_reason":null}],"usage":null})");
  BOOST_TEST(chat_final_chunk(chat_head, 0, {finish_reason::stop, token_id{261}, {}}, true) ==
             chunk_json + R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"stop","stop_reason":261}],)"
                          R"("usage":null})");
  BOOST_TEST(chat_usage_chunk(chat_head, {.prompt_tokens = 1, .completion_tokens = 2}) ==
             chunk_json +
                 R"(],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,)"
                 R"("prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}})");
}

BOOST_AUTO_TEST_CASE(a_stream_reads_back_as_a_client_reads_it) {
  std::string stream;
  for (const std::uint32_t index : {0u, 1u}) stream += sse_event(chat_role_chunk(chat_head, index, true));
  stream += sse_keep_alive;
  for (const std::string_view text : {"A\n", "你", "\xff", "\"\\ \r\n"}) {
    stream += sse_event(chat_delta_chunk(chat_head, {0, "", text, {}}, true));
    stream += sse_event(chat_delta_chunk(chat_head, {1, text, "", {}}, true));
  }
  for (const std::uint32_t index : {0u, 1u}) stream += sse_event(chat_final_chunk(chat_head, index, {}, true));
  stream += sse_event(chat_usage_chunk(chat_head, {3, 4, 0, 0}));
  stream += sse_done;

  std::map<std::int64_t, std::string> content, reasoning;
  int ends = 0, usages = 0;
  bool done = false;
  for (std::size_t at = 0; at < stream.size();) {
    const auto end = stream.find("\n\n", at);
    BOOST_REQUIRE(end != std::string::npos);
    const auto frame = std::string_view(stream).substr(at, end - at);
    at = end + 2;
    if (frame.starts_with(":")) continue;
    BOOST_REQUIRE(!done);
    BOOST_REQUIRE(frame.starts_with("data: "));
    if (frame == "data: [DONE]") {
      done = true;
      continue;
    }
    const auto event = json_document::parse(frame.substr(6), {});
    BOOST_REQUIRE(event.has_value());
    BOOST_TEST(!event->root().member("error").has_value());
    usages += event->root().member("usage")->is(json_kind::object);
    for (const auto choice : event->root().member("choices")->elements()) {
      const auto index = *choice.member("index")->integer();
      const auto delta = *choice.member("delta");
      if (const auto text = delta.member("content")) content[index] += *text->text();
      if (const auto text = delta.member("reasoning_content")) reasoning[index] += *text->text();
      ends += choice.member("finish_reason")->is(json_kind::string);
    }
  }
  const std::string expected = "A\n你\uFFFD\"\\ \r\n";
  BOOST_TEST(content[0] == expected);
  BOOST_TEST(reasoning[1] == expected);
  BOOST_TEST(content[1].empty());
  BOOST_TEST(ends == 2);
  BOOST_TEST(usages == 1);
  BOOST_TEST(done);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::protocol
