// The request actor, stepped by hand: a body goes in, the test plays device and reads what the client would get. Shows
// the order of a stream's events, that text does not depend on how tokens cut it, that stop strings end a row and tell
// the device, that refusals keep their status, and that whatever ends a call leaves no work behind on the device.
#include "actors/request/generation_call.hpp"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/actors/hand_run_pool.hpp"
#include "tests/actors/response_recorder.hpp"
#include "tests/support/failing_new.hpp"

namespace {

using namespace skein;
using namespace skein::request;
using namespace std::chrono_literals;

/// One io thread's worth of request actors with the test in the place of device, clock, workers and client.
struct bench {
  bench() {
    context->model.names = {"tiny", "rwkv7"};
    context->model.vocabulary = tokenizer::vocabulary::bytes();
    context->model.vocab = 256;
    context->model.fingerprint = "skein-test";
    context->device = &inbox;
    context->logins = &logins;
    context->time = &time;
    context->ready = true;
    context->run_long = [this](std::function<void()> work) { return pool.take(std::move(work)); };
  }

  /// Sends a body; the call then waits for the device, or has answered.
  void send(const std::string& body, protocol::api shape = protocol::api::chat_completions, bool authenticated = true) {
    out = std::make_shared<test::response_recorder>();
    call_origin origin;
    origin.shape = shape;
    origin.request_name = "req-1";
    origin.client = "127.0.0.1";
    origin.authenticated = authenticated;
    origin.headers = {{"X-Request-Id", "req-1"}};
    origin.received = time.now();
    call = std::make_unique<generation_call>(
        origin, context, hub, [this](std::function<void()> w) { post(std::move(w)); }, out);
    call->body(body);
    read_mailbox();
  }
  void post(std::function<void()> work) {
    if (failing_posts > 0 && failing_posts--) throw std::bad_alloc();
    pool.posted.push_back(std::move(work));
  }
  void read_mailbox() {
    std::vector<device::message> messages;
    inbox.drain(messages);
    for (auto& m : messages) {
      if (auto* s = std::get_if<device::submit>(&m))
        submitted.push_back(std::move(*s));
      else if (auto* c = std::get_if<device::cancel>(&m))
        cancelled.push_back(c->id);
      else if (auto* r = std::get_if<device::cancel_row>(&m))
        cancelled_rows.push_back(r->row);
      else if (std::get_if<device::pause>(&m))
        ++pauses;
      else if (std::get_if<device::resume>(&m))
        ++resumes;
    }
  }
  template <typename Event>
  void tell(Event e) {
    std::vector<device::event> events;
    events.emplace_back(std::move(e));
    hub.dispatch(std::move(events));
    read_mailbox();
  }
  void admit(std::size_t which = 0) { tell(device::admitted{submitted.at(which).id, 5us}); }
  /// Tokens of a byte vocabulary, one event each, as the device would number them.
  void say(const std::string& text, std::uint32_t row = 0, std::size_t which = 0) {
    for (const char c : text) {
      device::token t{submitted.at(which).id, row, index++, static_cast<unsigned char>(c), nullptr};
      const auto& params = submitted.at(which).rows.at(row);
      if (params.logprobs) {
        t.logprobs = std::make_unique<sampling::token_logprobs>();
        t.logprobs->logprob = -0.5f;
        t.logprobs->count = params.top_logprobs;
        for (std::uint32_t i = 0; i < params.top_logprobs; ++i)
          t.logprobs->top[i] = {static_cast<token_id>('a' + i), -1.0f};
      }
      tell(std::move(t));
    }
  }
  void finish(device::finish_cause cause, std::uint32_t row = 0, std::size_t which = 0) {
    tell(device::row_finished{submitted.at(which).id, row, cause});
  }
  /// The texts of a stream's deltas, put together.
  [[nodiscard]] std::string streamed(const std::string& key) const {
    std::string all;
    const std::string mark = "\"" + key + "\":\"";
    for (std::size_t at = out->text.find(mark); at != std::string::npos; at = out->text.find(mark, at)) {
      at += mark.size();
      all += out->text.substr(at, out->text.find('"', at) - at);
    }
    return all;
  }
  [[nodiscard]] bool has(const std::string& piece) const { return out->has(piece); }

  std::shared_ptr<service_context> context = std::make_shared<service_context>();
  device::mailbox inbox{100, 100};
  login_guard logins{{.failures_max = 5}};
  fake_clock time;
  request_hub hub{3, inbox};
  test::hand_run_pool pool;
  std::shared_ptr<test::response_recorder> out;
  std::unique_ptr<generation_call> call;
  std::vector<device::submit> submitted;
  std::vector<request_id> cancelled;
  std::vector<std::uint32_t> cancelled_rows;
  int pauses = 0, resumes = 0, failing_posts = 0;
  std::uint32_t index = 0;
};

const std::string chat = R"({"model":"tiny","messages":[{"role":"user","content":"Hi"}])";

}  // namespace

BOOST_AUTO_TEST_CASE(a_whole_chat_answer) {
  bench b;
  b.send(chat + R"(,"max_tokens":9})");
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 1u);
  BOOST_TEST(b.submitted[0].reply_to == 3u);
  BOOST_TEST(b.submitted[0].rows[0].max_tokens == 9u);
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
  BOOST_TEST(b.has(R"("completion_tokens":7)"));
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

BOOST_AUTO_TEST_CASE(characters_and_stop_strings_hold_bytes_back) {
  bench b;
  b.send(R"({"prompt":"x","stream":true,"stop":["END"]})", protocol::api::completions);
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

BOOST_AUTO_TEST_CASE(a_row_that_ends_lets_the_others_go_on) {
  bench b;
  b.send(R"({"prompt":"x","n":2,"stop":["!"]})", protocol::api::completions);
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
  b.send(R"({"prompt":["p","q"],"n":2})", protocol::api::completions);
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
  b.send(R"({"prompt":"pq","echo":true,"logprobs":2,"stop":["END"]})", protocol::api::completions);
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
  b.send(R"({"prompt":"x","best_of":2,"n":1})", protocol::api::completions);
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
    b.send(body);
    BOOST_TEST_CONTEXT(body) {
      BOOST_TEST(b.out->ended);
      BOOST_TEST(b.out->status == status);
      BOOST_TEST(b.submitted.empty());
      BOOST_TEST(b.has(R"({"error":{"message":)"));
    }
  }
  bench b;
  b.send(R"({"prompt":[1,256]})", protocol::api::completions);
  BOOST_TEST(b.out->status == 400u);
  BOOST_TEST(b.has(R"("param":"prompt")"));
}

BOOST_AUTO_TEST_CASE(the_body_may_bring_the_password) {
  bench b;
  b.context->settings.password = "secret";
  const std::string right = chat + R"(,"password":"secret"})",
                    wrong = chat + R"(,"password":"wrong","temperature":-1})";
  const auto send = [&](const std::string& body) { b.send(body, protocol::api::chat_completions, false); };
  for (const std::string& none :
       {chat + "}", chat + R"(,"temperature":-1})", std::string("{"), chat + R"(,"password":5})"})
    for (int i = 0; i < 5; ++i) {
      send(none);
      BOOST_TEST(b.out->status == 401u);  // nothing but that, whatever else is wrong
    }
  BOOST_TEST(b.logins.addresses() == 0u);  // who sends no password guesses none
  for (int i = 0; i < 5; ++i) {
    send(wrong);
    BOOST_TEST(b.out->status == 401u);
  }
  BOOST_TEST(b.logins.must_wait("127.0.0.1", b.time.now()).has_value());
  for (const auto& body : {wrong, right}) {  // the headers came before the limit was reached
    send(body);
    BOOST_TEST(b.out->status == 429u);
    BOOST_TEST(b.out->header("Retry-After") == "30");
  }
  BOOST_TEST(b.submitted.empty());
  b.time.advance(60s);
  send(right);
  BOOST_TEST(b.submitted.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_body_that_brings_the_password_is_short) {
  bench b;
  b.context->settings.unauthenticated_body_bytes_max = 1000;
  b.send(chat + "}", protocol::api::chat_completions, false);
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

BOOST_AUTO_TEST_CASE(a_client_that_leaves_is_cancelled_on_the_device) {
  bench b;
  b.send(R"({"prompt":["p","q"],"stream":true})", protocol::api::completions);
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

BOOST_AUTO_TEST_CASE(long_bodies_and_texts_go_through_the_worker_pool) {
  bench b;
  b.send(R"({"prompt":")" + std::string(2 << 20, 'x') + R"("})", protocol::api::completions);
  BOOST_TEST(b.submitted.empty());
  b.pool.run_one();  // parse
  b.pool.run_one();  // tokenise
  b.read_mailbox();
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 1u);
  BOOST_TEST(b.submitted[0].prompt.size() == 2u << 20);
}

BOOST_AUTO_TEST_CASE(work_that_comes_back_after_the_client_left_finds_nobody) {
  bench b;
  b.send(R"({"prompt":")" + std::string(2 << 20, 'x') + R"("})", protocol::api::completions);
  b.call.reset();
  b.pool.long_work[0]();
  b.pool.posted[0]();
  BOOST_TEST(b.submitted.empty());
  b.pool.full = true;
  b.send(R"({"prompt":")" + std::string(2 << 20, 'x') + R"("})", protocol::api::completions);
  BOOST_TEST(b.out->status == 429u);
}

BOOST_AUTO_TEST_CASE(no_long_work_is_begun_for_a_client_that_left) {
  for (const bool parsed : {false, true}) {
    bench b;
    b.send(R"({"prompt":")" + std::string(2 << 20, 'x') + R"("})", protocol::api::completions);
    if (parsed) b.pool.run_one();
    b.call->gone("client closed", connection::client_gone);
    BOOST_REQUIRE_EQUAL(b.pool.long_work.size(), 1u);
    b.pool.long_work[0]();
    b.pool.long_work.clear();
    BOOST_TEST(b.pool.posted.empty());
    BOOST_TEST(b.context->memory->held() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(tokenising_ends_between_prompts_when_the_client_leaves) {
  bench b;
  protocol::generation_request request;
  request.shape = protocol::api::completions;
  request.prompts = {{"a", {}, false}};
  std::stop_source gone;
  BOOST_TEST(prepare(request, b.context->model, b.context->settings, gone.get_token()).has_value());
  gone.request_stop();
  const auto call = prepare(request, b.context->model, b.context->settings, gone.get_token());
  BOOST_REQUIRE(!call);
  BOOST_TEST((call.error().kind == error_kind::cancelled));
}

BOOST_AUTO_TEST_CASE(an_outcome_that_cannot_be_posted_at_once_still_comes_back) {
  bench b;
  b.failing_posts = 3;
  b.send(R"({"prompt":")" + std::string(100'000, 'x') + R"("})", protocol::api::completions);
  b.pool.run_one();
  b.read_mailbox();
  BOOST_TEST(b.failing_posts == 0);
  BOOST_TEST(b.submitted.size() == 1u);
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

BOOST_AUTO_TEST_CASE(work_that_throws_on_the_worker_pool_is_a_500) {
  bench b;
  const std::string body = R"({"prompt":")" + std::string(2 << 20, 'x') + R"("})";
  b.send(body, protocol::api::completions);
  b.pool.run_one();
  {
    const test::failing_new no_memory(2 << 20);
    b.pool.run_one();
  }
  BOOST_TEST(b.out->status == 500u);
  BOOST_TEST(b.has(R"({"error":{"message":"the server failed while it worked on this request","type":"server_error")"));
  BOOST_TEST(b.submitted.empty());
  b.send(body, protocol::api::completions);
  b.pool.run_one();
  b.pool.run_one();
  b.read_mailbox();
  BOOST_TEST(b.submitted.size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_event_that_throws_ends_its_call_and_no_other) {
  for (const bool streamed : {false, true}) {
    bench b;
    b.send(R"({"prompt":"pq","echo":true,"logprobs":2)" + std::string(streamed ? R"(,"stream":true})" : "}"),
           protocol::api::completions);
    b.admit();
    const auto failing = std::move(b.call);
    const auto failing_out = b.out;
    b.send(R"({"prompt":"x","stream":true})", protocol::api::completions);
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
    BOOST_TEST(failing_out->has(R"({"error":{"message":"the server failed while it worked on this request")"));
    if (streamed) BOOST_TEST(failing_out->text.ends_with("data: [DONE]\n\n"));
    BOOST_TEST(b.cancelled == (std::vector<request_id>{b.submitted[0].id, b.submitted[1].id}),
               boost::test_tools::per_element());
    BOOST_TEST(b.streamed("text") == "y");
    BOOST_TEST(b.out->text.ends_with("data: [DONE]\n\n"));
  }
}

BOOST_AUTO_TEST_CASE(what_requests_hold_has_a_ceiling_in_bytes) {
  bench b;
  b.context->settings.held_bytes_max = 2000;
  const std::string body = R"({"prompt":")" + std::string(400, 'x') + R"("})";  // 1,600 bytes as tokens
  b.send(body, protocol::api::completions);
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 1u);
  BOOST_TEST(b.context->memory->held() > 1600u);
  const auto waiting = std::move(b.call);
  b.send(body, protocol::api::completions);
  BOOST_TEST(b.out->status == 429u);
  BOOST_TEST(!b.out->header("Retry-After").empty());
  BOOST_TEST(b.has(R"("code":"rate_limit_exceeded")"));
  BOOST_TEST(b.has("queue.bytes_max (2000 bytes)"));
  waiting->gone("client closed", connection::client_gone);
  BOOST_TEST(b.context->memory->held() > 1600u);  // the device has not dropped it yet
  b.submitted.clear();
  BOOST_TEST(b.context->memory->held() == 0u);
  b.send(body, protocol::api::completions);
  BOOST_TEST(b.submitted.size() == 1u);
  b.call.reset();
  b.submitted.clear();
  b.send(R"({"prompt":")" + std::string(2000, 'x') + R"("})", protocol::api::completions);
  BOOST_TEST(b.out->status == 413u);  // it would never fit
  BOOST_TEST(b.has("queue.bytes_max"));
  b.send(R"({"prompt":")" + std::string(600, 'x') + R"("})", protocol::api::completions);
  BOOST_TEST(b.out->status == 413u);  // nor this, as tokens
  BOOST_TEST(b.context->memory->held() == 0u);
}

BOOST_AUTO_TEST_CASE(a_suffix_counts_with_each_prompt) {
  bench b;
  const auto body = [](int prompts, std::size_t suffix_bytes) {
    std::string list = R"("a")";
    for (int i = 1; i < prompts; ++i) list += R"(,"a")";
    return R"({"prompt":[)" + list + R"(],"suffix":")" + std::string(suffix_bytes, 'x') + R"("})";
  };
  b.context->settings.held_bytes_max = 100'000;
  b.send(body(40, 3000), protocol::api::completions);
  BOOST_TEST(b.out->status == 413u);  // before a text is put together
  BOOST_TEST(b.has("the request needs 120040 bytes, more than queue.bytes_max (100000 bytes)"));
  b.send(body(10, 3000), protocol::api::completions);
  BOOST_TEST(b.out->status == 413u);  // the texts fit, their tokens do not
  BOOST_TEST(b.has("queue.bytes_max (100000 bytes)"));
  BOOST_TEST(b.submitted.empty());
  BOOST_TEST(b.context->memory->held() == 0u);

  b.context->settings = {};
  b.send(body(40, 3000), protocol::api::completions);
  BOOST_TEST(b.context->memory->held() == 120'040u);
  b.pool.run_one();  // long, though each text is short
  b.read_mailbox();
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 40u);
  for (const auto& s : b.submitted) BOOST_TEST(s.prompt.size() > 3001u);
}

BOOST_AUTO_TEST_CASE(tokenising_ends_where_the_tokens_pass_the_ceiling) {
  const auto vocabulary = tokenizer::vocabulary::bytes();
  served_model model;
  model.vocabulary = vocabulary;
  model.vocab = 256;
  service_settings settings;
  settings.held_bytes_max = 1 << 20;
  protocol::generation_request request;
  request.shape = protocol::api::completions;
  request.prompts.assign(128, {"a", {}, false});
  request.suffix = std::string(100'000, 'x');
  const auto call = prepare(request, model, settings);  // 400,000 bytes a prompt: the third is too many
  BOOST_REQUIRE(!call);
  BOOST_TEST((call.error().kind == error_kind::too_large));
  BOOST_TEST(call.error().message.find("needs 12") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_prompt_is_kept_for_an_echo_only) {
  bench b;
  for (const bool echo : {false, true}) {
    prepared_call call;
    call.request.echo = echo;
    call.prompts = {{1, 2, 3}};
    const token_id* const where = call.prompts[0].data();
    answer_state answer(std::move(call), b.context->model, {}, "req-1");
    const auto given = answer.give_prompt(0);
    BOOST_TEST(given.size() == 3u);
    BOOST_TEST((given.data() == where) == !echo);  // moved, not copied
    BOOST_TEST(answer.usage().prompt_tokens == 3u);
  }
}

BOOST_AUTO_TEST_CASE(a_whole_answer_ends_at_its_ceiling) {
  bench b;
  b.context->settings.limits.response_bytes_max = 10;
  b.send(R"({"prompt":"x","n":2})", protocol::api::completions);
  b.admit();
  b.say("12345", 0);
  b.say("abcdef", 1);
  BOOST_TEST(b.cancelled_rows == std::vector<std::uint32_t>{1}, boost::test_tools::per_element());
  b.say("6", 0);
  BOOST_TEST(b.out->status == 200u);
  BOOST_TEST(b.has(R"("text":"12345")"));
  BOOST_TEST(b.has(R"("text":"abcde")"));
  BOOST_TEST(b.has(R"("finish_reason":"length")"));
  BOOST_TEST(b.has(R"("rwkv":{"stop_reason":"response_bytes_max","request_id":"req-1"})"));

  b.send(R"({"prompt":"x","stream":true})", protocol::api::completions);  // a stream holds nothing
  b.admit(1);
  b.say("0123456789abcdef", 0, 1);
  BOOST_TEST(b.streamed("text") == "0123456789abcdef");
}

BOOST_AUTO_TEST_CASE(log_probabilities_count_to_the_ceiling_too) {
  bench b;
  b.context->settings.limits.response_bytes_max = 3 * (scored_token_bytes(2) + 1);
  b.send(R"({"prompt":"x","logprobs":2})", protocol::api::completions);
  b.admit();
  b.say("abcd");
  BOOST_TEST(b.has(R"("text":"abc")"));
}

BOOST_AUTO_TEST_CASE(an_echo_counts_as_the_json_that_it_becomes) {
  bench b;
  b.context->settings.limits.response_bytes_max = 1200;
  const auto ask = [&](const char* character, int count, const std::string& more) {
    std::string text;
    for (int i = 0; i < count; ++i) text += character;
    b.send(R"({"prompt":")" + text + R"(","echo":true)" + more + "}", protocol::api::completions);
  };
  ask("\\u0001", 100, R"(,"n":2)");  // six bytes each
  BOOST_TEST(b.submitted.size() == 1u);
  ask("\\u0001", 101, R"(,"n":2)");
  BOOST_TEST(b.out->status == 400u);
  ask("\xe4\xbd\xa0", 400, "");  // three tokens each, but one character
  BOOST_TEST(b.submitted.size() == 2u);
  ask("\xe4\xbd\xa0", 401, "");
  BOOST_TEST(b.out->status == 400u);

  b.context->settings.limits.response_bytes_max = 6;
  b.send(R"({"prompt":"x"})", protocol::api::completions);
  b.admit(2);
  b.say("\x01\x02", 0, 2);
  BOOST_TEST(b.has(R"("text":"\u0001")"));
  BOOST_TEST(b.has("response_bytes_max"));
}

BOOST_AUTO_TEST_CASE(an_echo_in_a_stream_fits_into_the_queue_of_its_connection) {
  bench b;
  b.context->settings.outbound_bytes_max = 1000;
  const auto ask = [&](std::size_t bytes, const std::string& more) {
    b.send(R"({"prompt":[")" + std::string(bytes, 'x') + R"(","x"],"n":2,"echo":true)" + more + "}",
           protocol::api::completions);
  };
  ask(499, R"(,"stream":true)");
  BOOST_TEST(b.submitted.size() == 2u);
  ask(500, R"(,"stream":true)");
  BOOST_TEST(b.out->status == 400u);
  BOOST_TEST(b.has(R"("param":"echo")"));
  BOOST_TEST(b.has("limits.outbound_bytes_max (1000 bytes)"));
  ask(500, "");
  BOOST_TEST(b.submitted.size() == 4u);
}

BOOST_AUTO_TEST_CASE(an_echo_that_is_too_long_is_refused) {
  bench b;
  b.context->settings.limits.response_bytes_max = 1000;
  const std::string prompt = R"({"prompt":")" + std::string(400, 'x') + '"';
  b.send(prompt + R"(,"echo":true,"n":2})", protocol::api::completions);
  BOOST_TEST(b.submitted.size() == 1u);
  for (const char* more : {R"(,"echo":true,"n":3})", R"(,"echo":true,"logprobs":1})"}) {
    b.send(prompt + more, protocol::api::completions);
    BOOST_TEST(b.out->status == 400u);
    BOOST_TEST(b.has(R"("param":"echo")"));
    BOOST_TEST(b.has("limits.response_bytes_max (1000 bytes)"));
  }
}
