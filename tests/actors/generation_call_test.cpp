// The request actor, stepped by hand: a body goes in, the test plays device and reads what the client would get. Shows
// the order of a stream's events, that text does not depend on how tokens cut it, that stop strings end a row and tell
// the device, that refusals keep their status, and that whatever ends a call leaves no work behind on the device.
#include "actors/request/generation/generation_call.hpp"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/actors/generation_bench.hpp"
#include "tests/support/failing_new.hpp"

namespace {

using namespace skein;
using namespace skein::request;
using namespace std::chrono_literals;

using bench = test::generation_bench;

const std::string chat = R"({"model":"tiny","messages":[{"role":"user","content":"Hi"}])";

}  // namespace

BOOST_AUTO_TEST_CASE(a_whole_chat_answer) {
  bench b;
  b.send(chat + R"(,"max_tokens":9})");
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 1u);
  BOOST_TEST(b.submitted[0].reply_to == 3u);
  BOOST_TEST(b.submitted[0].rows[0].max_tokens == 9u + hidden_tokens_max);
  BOOST_TEST(std::string(b.submitted[0].prompt.begin(), b.submitted[0].prompt.end()) ==
             "User: Hi\n\nAssistant: <think>\n</think");
  b.admit();
  b.say(">\nHello");
  BOOST_TEST(!b.out->ended);
  b.finish(device::finish_cause::budget);
  BOOST_TEST(b.out->ended);
  BOOST_TEST(b.out->status == 200u);
  BOOST_TEST(b.out->header("X-Request-Id") == "req-1");
  BOOST_TEST(b.has(R"("content":"Hello")"));
  BOOST_TEST(b.has(R"("finish_reason":"length")"));
  BOOST_TEST(b.has(R"("completion_tokens":5)"));
}

BOOST_AUTO_TEST_CASE(a_streamed_chat_answer_has_its_events_in_order) {
  bench b;
  b.send(chat + R"(,"stream":true,"stream_options":{"include_usage":true}})");
  BOOST_TEST(!b.out->streaming);  // a refusal could still be a status
  b.admit();
  BOOST_TEST(b.out->streaming);
  BOOST_TEST(b.out->header("Content-Type") == "text/event-stream; charset=utf-8");
  b.say(">Hello");
  b.finish(device::finish_cause::stop_id);
  BOOST_TEST(b.out->ended);
  BOOST_TEST(b.streamed("content") == "Hello");
  const auto at = [&](const std::string& piece) { return b.out->text.find(piece); };
  BOOST_TEST(at(R"("role":"assistant")") < at("\"H\""));
  BOOST_TEST(at("\"o\"") < at(R"("finish_reason":"stop")"));
  BOOST_TEST(at(R"("finish_reason":"stop")") < at(R"("choices":[],"usage":{)"));
  BOOST_TEST(b.out->text.ends_with("data: [DONE]\n\n"));
}

BOOST_AUTO_TEST_CASE(what_closes_a_thinking_at_once_is_banned_where_that_is_wanted) {
  bench b;
  b.send(R"({"contents":["x","y"],"force_reasoning":true})", protocol::dialects::batch);
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 2u);
  for (const auto& s : b.submitted) {
    const auto& bias = s.rows[0].logit_bias;
    BOOST_REQUIRE_EQUAL(bias.size(), 1u);  // of bytes, only one of the two texts is a token
    BOOST_TEST(bias[0].token == 'n');
    BOOST_TEST(bias[0].bias == sampling::ban);
    for (const std::uint32_t sample : {0u, 1u, 2u, 3u})
      BOOST_TEST(bias[0].counts_for(sample) == (sample == 1 || sample == 2));
  }
  b.submitted.clear();
  b.send(R"({"contents":["x"]})", protocol::dialects::batch);
  BOOST_TEST(b.submitted.at(0).rows[0].logit_bias.empty());
}

BOOST_AUTO_TEST_CASE(a_global_penalty_knows_each_prompt_of_a_call) {
  bench b;
  b.send(R"({"contents":["aba","c"],"global_penalty":true,"alpha_presence":2,"alpha_frequency":1,"alpha_decay":1})",
         protocol::dialects::batch);
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 2u);
  const auto& first = *b.submitted[0].rows[0].prior;
  BOOST_REQUIRE_EQUAL(first.size(), 2u);
  BOOST_TEST(first[0].token == 'a');
  BOOST_TEST(first[0].penalty == 3.0f);
  BOOST_TEST(first[1].penalty == 2.0f);
  BOOST_TEST(b.submitted[1].rows[0].prior->at(0).token == 'c');
  b.submitted.clear();
  b.send(R"({"contents":["aba"],"alpha_presence":2})", protocol::dialects::batch);
  BOOST_TEST(!b.submitted.at(0).rows[0].prior);
}

BOOST_AUTO_TEST_CASE(what_the_connection_refuses_is_said_as_the_route_says_it) {
  bench b;
  for (const bool authenticated : {true, false}) {
    call_origin origin;
    origin.dialect = &protocol::dialects::batch;
    origin.errors = protocol::error_style::flat;
    origin.authenticated = authenticated;
    b.send("{}", origin);
    const std::string said = b.call->error_body(413, "the body is too long");
    BOOST_TEST(said.starts_with(R"({"error":"the body is too long)"));
    BOOST_TEST((said.find("Authorization: Bearer") != std::string::npos) == !authenticated);
    BOOST_TEST(b.call->error_body(408, "late") == R"({"error":"late"})");
  }
}

BOOST_AUTO_TEST_CASE(a_stranger_hears_no_in_the_form_of_its_body) {
  bench b;
  b.context->settings.server.password = "secret";
  const auto told = [&](const char* body) {
    b.send(body, protocol::dialects::chat_or_batch, false);
    BOOST_TEST(b.out->status == 401u);
    return b.out->text;
  };
  BOOST_TEST(told(R"({"contents":["x"]})") == R"({"error":"Unauthorized: invalid or missing password"})");
  BOOST_TEST(told(R"({"messages":[{"role":"user","content":"x"}]})").starts_with(R"({"error":{"message":)"));
  BOOST_TEST(told("{").starts_with(R"({"error":{"message":)"));
}

BOOST_AUTO_TEST_CASE(a_stop_string_may_be_the_last_word) {
  bench b;
  b.send(R"({"prompt":"x","stream":true,"stop":["END"],"include_stop_str_in_output":true})",
         protocol::dialects::completions);
  b.admit();
  b.say("all of it ENDED");
  BOOST_TEST(b.streamed("text") == "all of it END");
  BOOST_TEST(b.has(R"("stop_reason":"END")"));
}

BOOST_AUTO_TEST_CASE(characters_and_stop_strings_hold_bytes_back) {
  bench b;
  b.send(R"({"prompt":"x","stream":true,"stop":["END"]})", protocol::dialects::completions);
  b.admit();
  b.say("\xe4\xbd");
  BOOST_TEST(b.streamed("text") == "");
  b.say("\xa0 E");
  BOOST_TEST(b.streamed("text") == "\xe4\xbd\xa0 ");
  b.say("N");
  BOOST_TEST(b.streamed("text") == "\xe4\xbd\xa0 ");
  b.say("D");
  BOOST_TEST(b.out->ended);
  BOOST_TEST(b.streamed("text") == "\xe4\xbd\xa0 ");
  BOOST_TEST(b.has(R"("finish_reason":"stop")"));
  BOOST_TEST(b.has(R"("stop_reason":"END")"));
  BOOST_REQUIRE(!b.cancelled_rows.empty());  // the device need draw no more
  b.say("late");                             // and what it drew meanwhile goes nowhere
  BOOST_TEST(b.streamed("text") == "\xe4\xbd\xa0 ");
}

BOOST_AUTO_TEST_CASE(a_row_that_ends_lets_the_others_continue) {
  bench b;
  b.send(R"({"prompt":"x","n":2,"stop":["!"]})", protocol::dialects::completions);
  BOOST_REQUIRE_EQUAL(b.submitted[0].rows.size(), 2u);
  BOOST_TEST(b.submitted[0].rows[1].row == 1u);
  b.admit();
  b.say("one!", 0);
  BOOST_TEST(!b.out->ended);
  b.say("two", 1);
  b.finish(device::finish_cause::budget, 1);
  BOOST_TEST(b.out->ended);
  BOOST_TEST(b.has(R"("text":"one")"));
  BOOST_TEST(b.has(R"("text":"two")"));
}

BOOST_AUTO_TEST_CASE(several_prompts_are_numbered_through) {
  bench b;
  b.send(R"({"prompt":["p","q"],"n":2})", protocol::dialects::completions);
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 2u);
  BOOST_TEST(b.submitted[1].rows[1].row == 1u);
  for (std::size_t p = 0; p < 2; ++p) {
    b.admit(p);
    for (std::uint32_t row = 0; row < 2; ++row) {
      b.say(std::string(1, static_cast<char>('a' + 2 * p + row)), row, p);
      b.finish(device::finish_cause::budget, row, p);
    }
  }
  for (int i = 0; i < 4; ++i)
    BOOST_TEST(b.has("\"index\":" + std::to_string(i) + ",\"text\":\"" + static_cast<char>('a' + i) + '"'));
}

BOOST_AUTO_TEST_CASE(logprobs_come_with_the_text_that_is_shown) {
  bench b;
  b.send(R"({"prompt":"pq","echo":true,"logprobs":2,"stop":["END"]})", protocol::dialects::completions);
  BOOST_TEST(b.submitted[0].score_prompt);
  b.admit();
  b.tell(device::prompt_scored{b.submitted[0].id, std::vector<sampling::token_logprobs>(1)});
  b.say("abEND");
  BOOST_TEST(b.has(R"("text":"pqab")"));
  BOOST_TEST(b.has(R"("tokens":["p","q","a","b"])"));
  BOOST_TEST(b.has(R"("text_offset":[0,1,2,3])"));
  BOOST_TEST(b.has(R"("token_logprobs":[null,)"));
}

BOOST_AUTO_TEST_CASE(best_of_answers_with_the_likeliest_rows) {
  bench b;
  b.send(R"({"prompt":"x","best_of":2,"n":1})", protocol::dialects::completions);
  BOOST_TEST(b.submitted[0].rows[0].logprobs);
  b.admit();
  for (std::uint32_t row = 0; row < 2; ++row) {
    device::token t{b.submitted[0].id, row, 0, static_cast<token_id>('a' + row), nullptr};
    t.logprobs = std::make_unique<sampling::token_logprobs>();
    t.logprobs->logprob = row == 0 ? -3.0f : -0.1f;
    b.tell(std::move(t));
    b.finish(device::finish_cause::budget, row);
  }
  BOOST_TEST(b.has(R"("text":"b")"));
  BOOST_TEST(!b.has(R"("text":"a")"));
  BOOST_TEST(!b.has(R"("logprobs":{)"));
}

BOOST_AUTO_TEST_CASE(refusals_have_their_status_and_field) {
  const std::pair<std::string, unsigned> cases[] = {
      {"{", 400u},
      {chat + R"(,"temperature":-1})", 400u},
      {chat + R"(,"tools":[{"type":"function"}]})", 400u},
      {R"({"model":"other","messages":[{"role":"user","content":"x"}]})", 404u},
      {chat + R"(,"logit_bias":{"256":1}})", 400u},
  };
  for (const auto& [body, status] : cases) {
    bench b;
    b.context->settings.server.strict_model_names = true;
    b.send(body);
    BOOST_TEST_CONTEXT(body) {
      BOOST_TEST(b.out->ended);
      BOOST_TEST(b.out->status == status);
      BOOST_TEST(b.submitted.empty());
      BOOST_TEST(b.has(R"({"error":{"message":)"));
    }
  }
  bench b;
  b.send(R"({"prompt":[1,256]})", protocol::dialects::completions);
  BOOST_TEST(b.out->status == 400u);
  BOOST_TEST(b.has(R"("param":"prompt")"));
}

BOOST_AUTO_TEST_CASE(the_body_may_bring_the_password) {
  bench b;
  b.context->settings.server.password = "secret";
  const std::string right = chat + R"(,"password":"secret"})",
                    wrong = chat + R"(,"password":"wrong","temperature":-1})";
  const auto send = [&](const std::string& body) { b.send(body, protocol::dialects::chat, false); };
  for (const std::string& none :
       {chat + "}", chat + R"(,"temperature":-1})", std::string("{"), chat + R"(,"password":5})"})
    for (int i = 0; i < 5; ++i) {
      send(none);
      BOOST_TEST(b.out->status == 401u);  // nothing but that, whatever else is wrong
    }
  BOOST_TEST(!b.logins.must_wait("127.0.0.1", b.time.now()).has_value());  // who sends no password guesses none
  for (int i = 0; i < 5; ++i) {
    send(wrong);
    BOOST_TEST(b.out->status == 401u);
  }
  BOOST_TEST(b.logins.must_wait("127.0.0.1", b.time.now()).has_value());
  send(wrong);
  BOOST_TEST(b.out->status == 429u);
  BOOST_TEST(b.out->header("Retry-After") == "30");
  BOOST_TEST(b.submitted.empty());
  send(right);  // what the address guessed before does not matter
  BOOST_TEST(b.submitted.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_body_that_brings_the_password_is_short) {
  bench b;
  b.context->settings.limits.unauthenticated_body_bytes_max = 1000;
  b.send(chat + "}", protocol::dialects::chat, false);
  BOOST_TEST(b.call->body_bytes_max() == 1000u);
  b.send(chat + "}");
  BOOST_TEST(b.call->body_bytes_max() > (1u << 30));
}

BOOST_AUTO_TEST_CASE(a_rejection_by_the_device_is_a_status) {
  bench b;
  b.send(chat + R"(,"stream":true})");
  b.tell(device::rejected{b.submitted[0].id, {error_kind::overloaded, "full", ""}});
  BOOST_TEST(b.out->status == 429u);
  BOOST_TEST(!b.out->header("Retry-After").empty());
}

BOOST_AUTO_TEST_CASE(a_full_mailbox_is_a_429) {
  bench b;
  for (int i = 0; i < 100; ++i) BOOST_REQUIRE(b.inbox.push(device::cancel{1}));
  b.send(chat + "}");
  BOOST_TEST(b.out->status == 429u);
}

BOOST_AUTO_TEST_CASE(a_lost_device_breaks_streams_with_an_error_event) {
  bench b;
  b.send(chat + R"(,"stream":true})");
  b.admit();
  b.say(">half");
  b.finish(device::finish_cause::device_lost);
  BOOST_TEST(b.out->ended);
  BOOST_TEST(b.has(R"(data: {"error":{)"));
  BOOST_TEST(b.out->text.ends_with("data: [DONE]\n\n"));
}

BOOST_AUTO_TEST_CASE(logits_that_are_not_finite_are_a_500) {
  bench b;
  b.send(chat + "}");
  b.admit();
  b.say(">half");
  b.finish(device::finish_cause::not_finite);
  BOOST_TEST(b.out->status == 500u);
  BOOST_TEST(b.has("NaN or infinite"));
  BOOST_TEST(!b.has("half"));
}

BOOST_AUTO_TEST_CASE(a_client_that_leaves_is_cancelled_on_the_device) {
  bench b;
  b.send(R"({"prompt":["p","q"],"stream":true})", protocol::dialects::completions);
  b.admit(0);
  b.say("abc");
  b.call->gone("client closed", connection::client_gone);
  b.read_mailbox();
  BOOST_TEST(b.cancelled.size() == 2u);
  b.call.reset();
  b.say("late");  // events for a call that is gone touch nothing
  b.finish(device::finish_cause::cancelled);
}

BOOST_AUTO_TEST_CASE(a_call_destroyed_without_a_word_is_cancelled_too) {
  bench b;
  b.send(chat + "}");
  b.call.reset();
  b.read_mailbox();
  BOOST_TEST(b.cancelled.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_slow_reader_pauses_its_generation) {
  bench b;
  b.send(chat + R"(,"stream":true})");
  b.admit();
  b.out->queued = 10'000'000;
  b.say(">ab");
  BOOST_TEST(b.pauses == 1);
  b.out->queued = 0;
  b.call->writable();
  b.read_mailbox();
  BOOST_TEST(b.resumes == 1);
}

BOOST_AUTO_TEST_CASE(silence_is_filled_with_comments) {
  bench b;
  b.send(chat + R"(,"stream":true})");
  b.time.advance(16s);
  b.hub.tick(b.time.now());
  BOOST_TEST(b.out->streaming);
  BOOST_TEST(b.out->text == ": keep-alive\n\n");
  b.hub.tick(b.time.now());
  BOOST_TEST(b.out->text == ": keep-alive\n\n");
  b.tell(device::rejected{b.submitted[0].id, {error_kind::timeout, "waited too long", ""}});
  BOOST_TEST(b.has(R"(data: {"error":{)"));  // too late for a status
}

BOOST_AUTO_TEST_CASE(a_drain_says_so) {
  bench b;
  b.send(chat + "}");
  b.admit();
  b.say(">part");
  b.finish(device::finish_cause::shutdown);
  BOOST_TEST(b.has(R"("finish_reason":"length")"));
  BOOST_TEST(b.has(R"("stop_reason":"drain")"));
  BOOST_TEST(b.has(R"("content":"part")"));
}

BOOST_AUTO_TEST_CASE(an_event_that_throws_ends_its_call_and_no_other) {
  for (const bool streamed : {false, true}) {
    bench b;
    b.send(R"({"prompt":"pq","echo":true,"logprobs":2)" + std::string(streamed ? R"(,"stream":true})" : "}"),
           protocol::dialects::completions);
    b.admit();
    const auto failing = std::move(b.call);
    const auto failing_out = b.out;
    b.send(R"({"prompt":"x","stream":true})", protocol::dialects::completions);
    b.admit(1);
    std::vector<device::event> batch;
    batch.emplace_back(device::prompt_scored{b.submitted[0].id, std::vector<sampling::token_logprobs>(20'000)});
    batch.emplace_back(device::token{b.submitted[0].id, 0, 0, 'n', nullptr});
    batch.emplace_back(device::token{b.submitted[1].id, 0, 0, 'y', nullptr});
    batch.emplace_back(device::row_finished{b.submitted[1].id, 0, device::finish_cause::budget});
    {
      const test::failing_new no_memory(1 << 20);
      b.hub.dispatch(std::move(batch));
    }
    b.read_mailbox();
    BOOST_TEST(failing_out->ended);
    BOOST_TEST(failing_out->status == (streamed ? 200u : 500u));
    BOOST_TEST(failing_out->has(R"({"error":{"message":"the server failed while it processed this request")"));
    if (streamed) BOOST_TEST(failing_out->text.ends_with("data: [DONE]\n\n"));
    BOOST_TEST(b.cancelled == std::vector<request_id>{b.submitted[0].id}, boost::test_tools::per_element());
    BOOST_TEST(b.streamed("text") == "y");
    BOOST_TEST(b.out->text.ends_with("data: [DONE]\n\n"));
  }
}

BOOST_AUTO_TEST_CASE(a_stream_of_two_rows_that_end_together_ends_once) {
  bench b;
  b.send(R"({"prompt":"x","stream":true,"n":2,"stop":["END"]})", protocol::dialects::completions);
  b.admit();
  const auto id = b.submitted[0].id;
  std::vector<device::event> events;  // of one tick; row 1 holds an E back, which may become the stop
  events.emplace_back(device::token{id, 0, 0, 'a', nullptr});
  events.emplace_back(device::row_finished{id, 0, device::finish_cause::budget});
  events.emplace_back(device::token{id, 1, 0, 'b', nullptr});
  events.emplace_back(device::token{id, 1, 1, 'E', nullptr});
  events.emplace_back(device::row_finished{id, 1, device::finish_cause::budget});
  b.hub.dispatch(std::move(events));
  BOOST_TEST(b.streamed("text") == "abE");
  BOOST_TEST(b.out->text.find("[DONE]") == b.out->text.rfind("[DONE]"));
  BOOST_TEST(b.out->text.ends_with("data: [DONE]\n\n"));
}
