// Which tokens an answer counts and scores: lists of log-probabilities have every sampled token, including the one that
// ends the text, and every list names the sampled token.
#include <boost/test/unit_test.hpp>
#include <string>

#include "tests/actors/generation_bench.hpp"

namespace {

using namespace skein;
using bench = test::generation_bench;

}  // namespace

BOOST_AUTO_TEST_CASE(the_token_that_ends_the_text_has_its_logprob) {
  for (const bool streamed : {false, true}) {
    bench b;
    b.send(R"({"prompt":[112,113],"echo":true,"logprobs":1,"max_tokens":2,"stop_token_ids":[35])" +
               std::string(streamed ? R"(,"stream":true})" : "}"),
           protocol::dialects::completions);
    b.admit();
    b.tell(device::prompt_scored{b.submitted[0].id, std::vector<sampling::token_logprobs>(1)});
    b.say("a#");
    b.finish(device::finish_cause::stop_id);
    BOOST_TEST(b.out->ended);
    if (streamed) {
      BOOST_TEST(b.has(R"("tokens":["a"],"token_logprobs":[-0.5])"));
      BOOST_TEST(b.has(R"("tokens":["#"],"token_logprobs":[-0.5])"));
      BOOST_TEST(b.streamed("text") == "pqa");
    } else {
      BOOST_TEST(b.has(R"("text":"pqa")"));
      BOOST_TEST(b.has(R"("tokens":["p","q","a","#"],"token_logprobs":[null,0,-0.5,-0.5])"));
      BOOST_TEST(b.has(R"("text_offset":[0,1,2,3])"));
    }
  }
}

BOOST_AUTO_TEST_CASE(an_echo_with_a_suffix_is_the_clients_prompt) {
  for (const bool streamed : {false, true})
    for (const bool scored : {false, true}) {
      bench b;
      b.send(R"({"prompt":"pq","suffix":"z","echo":true,"max_tokens":2)" +
                 std::string(scored ? R"(,"logprobs":0)" : "") + (streamed ? R"(,"stream":true})" : "}"),
             protocol::dialects::completions);
      b.admit();
      const std::size_t fed = b.submitted[0].prompt.size();
      BOOST_TEST(fed > 3u);
      if (scored) b.tell(device::prompt_scored{b.submitted[0].id, std::vector<sampling::token_logprobs>(fed - 1)});
      b.say("ab");
      b.finish(device::finish_cause::budget);
      BOOST_TEST((streamed ? b.streamed("text") == "pqab" : b.has(R"("text":"pqab")")));
      if (scored && !streamed) {
        BOOST_TEST(b.has(R"("tokens":["p","q","a","b"],"token_logprobs":[0,0,-0.5,-0.5])"));
        BOOST_TEST(b.has(R"("text_offset":[0,1,2,3])"));
      }
    }
}

BOOST_AUTO_TEST_CASE(the_sampled_token_is_among_the_alternatives) {
  bench b;  // whose device names a and b as the best
  b.send(R"({"prompt":"x","logprobs":2,"max_tokens":2})", protocol::dialects::completions);
  b.admit();
  b.say("az");
  b.finish(device::finish_cause::budget);
  BOOST_TEST(b.has(R"("top_logprobs":[{"a":-1,"b":-1},{"a":-1,"b":-1,"z":-0.5}])"));

  bench none;
  none.send(R"({"prompt":"x","logprobs":0,"max_tokens":1,"stream":true})", protocol::dialects::completions);
  none.admit();
  none.say("z");
  none.finish(device::finish_cause::budget);
  BOOST_TEST(none.has(R"("top_logprobs":[{"z":-0.5}])"));

  for (const auto& [top, said] : {std::pair{"1", R"("top_logprobs":[{"token":"a","logprob":-1,"bytes":[97]},)"
                                                 R"({"token":"z","logprob":-0.5,"bytes":[122]}])"},
                                  std::pair{"0", R"("top_logprobs":[])"}}) {
    bench chat;
    chat.send(R"({"messages":[{"role":"user","content":"Hi"}],"logprobs":true,"top_logprobs":)" + std::string(top) +
              "}");
    chat.admit();
    chat.say(">z");
    chat.finish(device::finish_cause::budget);
    BOOST_TEST(chat.has(said));
  }
}

BOOST_AUTO_TEST_CASE(text_offsets_count_characters_that_are_made_of_several_tokens) {
  for (const bool streamed : {false, true}) {
    bench b;
    b.send(R"({"prompt":"\u4f60p","echo":true,"logprobs":0)" + std::string(streamed ? R"(,"stream":true})" : "}"),
           protocol::dialects::completions);
    b.admit();
    b.tell(device::prompt_scored{b.submitted[0].id, std::vector<sampling::token_logprobs>(3)});
    b.say("\xe5\xa5\xbd!\xff\xc3?");  // a character, a byte that is none, and the beginning of another
    b.finish(device::finish_cause::budget);
    std::string offsets;
    const std::string mark = R"("text_offset":[)";
    for (auto at = b.out->text.find(mark); at != std::string::npos; at = b.out->text.find(mark, at)) {
      at += mark.size();
      offsets += (offsets.empty() ? "" : ",") + b.out->text.substr(at, b.out->text.find(']', at) - at);
    }
    BOOST_TEST(offsets == "0,0,0,1,2,2,2,3,4,5,6");
  }
}

BOOST_AUTO_TEST_CASE(tokens_that_close_the_tag_of_the_template_do_not_count) {
  const std::string ask = R"({"messages":[{"role":"user","content":"Yes or no?"}],)";
  for (const bool streamed : {false, true}) {
    bench b;
    b.send(ask + R"("max_tokens":1,"logprobs":true)" +
           std::string(streamed ? R"(,"stream":true,"stream_options":{"include_usage":true}})" : "}"));
    BOOST_TEST(b.submitted[0].rows[0].max_tokens == 1u + request::hidden_tokens_max);
    b.admit();
    b.say(">\n\nY");
    BOOST_TEST(b.out->ended);
    BOOST_TEST(b.cancelled_rows.size() == 1u);  // the device may draw no more
    BOOST_TEST(b.streamed("content") == "Y");
    BOOST_TEST(b.has(R"("content":[{"token":"Y")"));
    BOOST_TEST(!b.has(R"("token":">")"));
    BOOST_TEST(b.has(R"("finish_reason":"length")"));
    BOOST_TEST(b.has(R"("completion_tokens":1)"));
  }
  bench thinks;
  thinks.send(ask + R"("max_tokens":2,"think":true})");
  thinks.admit();
  thinks.say(">\nab");
  BOOST_TEST(thinks.has(R"("reasoning_content":"ab")"));
  BOOST_TEST(thinks.has(R"("completion_tokens":2)"));
  BOOST_TEST(thinks.has(R"("reasoning_tokens":2)"));

  bench blank;  // what is blank for ever ends all the same
  blank.send(ask + R"("max_tokens":2})");
  blank.admit();
  blank.say(">\n\n\n\n\n\n\n\n");
  BOOST_TEST(!blank.out->ended);
  blank.say("\n");
  BOOST_TEST(blank.has(R"("completion_tokens":2)"));

  bench raw;  // here all of it is the client's
  raw.send(R"({"prompt":"<think>\n</think","max_tokens":2})", protocol::dialects::completions);
  BOOST_TEST(raw.submitted[0].rows[0].max_tokens == 2u);
  raw.admit();
  raw.say(">\n");
  BOOST_TEST(!raw.out->ended);
}
