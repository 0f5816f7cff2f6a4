// The cost of one generation call for others, stepped by hand: long work goes to the worker pool and only while a
// client waits for it; prompts, suffixes and answers have limits in bytes, and an echo counts towards them.
#include <boost/test/unit_test.hpp>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "actors/request/call/long_work.hpp"
#include "actors/request/generation/generation_call.hpp"
#include "protocol/json/json_indent.hpp"
#include "protocol/responses_api/response_writer.hpp"
#include "tests/actors/generation_bench.hpp"
#include "tests/support/failing_new.hpp"

namespace {

using namespace skein;
using namespace skein::request;
using bench = test::generation_bench;

}  // namespace

BOOST_AUTO_TEST_CASE(long_bodies_and_texts_go_through_the_worker_pool) {
  bench b;
  b.send(R"({"prompt":")" + std::string(2 << 20, 'x') + R"("})", protocol::dialects::completions);
  BOOST_TEST(b.submitted.empty());
  b.pool.run_one();  // parse
  b.pool.run_one();  // tokenise
  b.read_mailbox();
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 1u);
  BOOST_TEST(b.submitted[0].prompt.size() == 2u << 20);
}

BOOST_AUTO_TEST_CASE(work_completed_after_the_client_left_is_dropped) {
  bench b;
  b.send(R"({"prompt":")" + std::string(2 << 20, 'x') + R"("})", protocol::dialects::completions);
  b.call.reset();
  b.pool.long_work[0]();
  b.pool.posted[0]();
  BOOST_TEST(b.submitted.empty());
  b.pool.full = true;
  b.send(R"({"prompt":")" + std::string(2 << 20, 'x') + R"("})", protocol::dialects::completions);
  BOOST_TEST(b.out->status == 429u);
}

BOOST_AUTO_TEST_CASE(no_long_work_is_begun_for_a_client_that_left) {
  for (const bool parsed : {false, true}) {
    bench b;
    b.send(R"({"prompt":")" + std::string(2 << 20, 'x') + R"("})", protocol::dialects::completions);
    if (parsed) b.pool.run_one();
    b.call->gone("client closed", connection::client_gone);
    BOOST_REQUIRE_EQUAL(b.pool.long_work.size(), 1u);
    b.pool.long_work[0]();
    b.pool.long_work.clear();
    BOOST_TEST(b.pool.posted.empty());
    BOOST_TEST(b.context->memory->held() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(long_work_is_begun_only_while_its_call_lasts) {
  bench b;
  for (const bool over : {false, true}) {
    int done = 0, told = 0;
    std::stop_source call_over;
    const way_back way{[](const std::function<void()>& deliver) { deliver(); }, "req-1", call_over.get_token()};
    const auto work = [&done] { return result<int>(++done); };
    BOOST_REQUIRE(run_long(*b.context, way, work, [&told](result<int> outcome) { told = outcome.value(); }));
    if (over) call_over.request_stop();
    b.pool.long_work.at(0)();
    b.pool.long_work.clear();
    BOOST_TEST(done == (over ? 0 : 1));
    BOOST_TEST(told == (over ? 0 : 1));
  }
}

BOOST_AUTO_TEST_CASE(tokenising_ends_between_prompts_when_the_client_leaves) {
  bench b;
  protocol::generation_request request;
  request.chat = false;
  request.prompts = {{"a", {}, false}};
  std::stop_source gone;
  BOOST_TEST(prepare(request, b.model->served, b.context->settings, gone.get_token()).has_value());
  gone.request_stop();
  const auto call = prepare(request, b.model->served, b.context->settings, gone.get_token());
  BOOST_REQUIRE(!call);
  BOOST_TEST((call.error().kind == error_kind::cancelled));
}

BOOST_AUTO_TEST_CASE(an_outcome_that_cannot_be_posted_at_once_still_comes_back) {
  bench b;
  b.failing_posts = 3;
  b.send(R"({"prompt":")" + std::string(100'000, 'x') + R"("})", protocol::dialects::completions);
  b.pool.run_one();
  b.read_mailbox();
  BOOST_TEST(b.failing_posts == 0);
  BOOST_TEST(b.submitted.size() == 1u);
}

BOOST_AUTO_TEST_CASE(work_that_throws_on_the_worker_pool_is_a_500) {
  bench b;
  const std::string body = R"({"prompt":")" + std::string(2 << 20, 'x') + R"("})";
  b.send(body, protocol::dialects::completions);
  b.pool.run_one();
  {
    const test::failing_new no_memory(2 << 20);
    b.pool.run_one();
  }
  BOOST_TEST(b.out->status == 500u);
  BOOST_TEST(b.has(R"({"error":{"message":"the server failed while it processed this request","type":"server_error")"));
  BOOST_TEST(b.submitted.empty());
  b.send(body, protocol::dialects::completions);
  b.pool.run_one();
  b.pool.run_one();
  b.read_mailbox();
  BOOST_TEST(b.submitted.size() == 1u);
}

BOOST_AUTO_TEST_CASE(what_requests_hold_has_a_ceiling_in_bytes) {
  bench b;
  b.context->settings.queue.bytes_max = b.context->settings.queue.key_bytes_max = 2000;
  const std::string body = R"({"prompt":")" + std::string(400, 'x') + R"("})";  // 1,600 bytes as tokens
  b.send(body, protocol::dialects::completions);
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 1u);
  BOOST_TEST(b.context->memory->held() > 1600u);
  const auto waiting = std::move(b.call);
  b.send(body, protocol::dialects::completions);
  BOOST_TEST(b.out->status == 429u);
  BOOST_TEST(!b.out->header("Retry-After").empty());
  BOOST_TEST(b.has(R"("code":"rate_limit_exceeded")"));
  BOOST_TEST(b.has("queue.key_bytes_max"));
  waiting->gone("client closed", connection::client_gone);
  BOOST_TEST(b.context->memory->held() > 1600u);  // the device has not dropped it yet
  b.submitted.clear();
  BOOST_TEST(b.context->memory->held() == 0u);
  b.send(body, protocol::dialects::completions);
  BOOST_TEST(b.submitted.size() == 1u);
  b.call.reset();
  b.submitted.clear();
  b.send(R"({"prompt":")" + std::string(2000, 'x') + R"("})", protocol::dialects::completions);
  BOOST_TEST(b.out->status == 413u);  // it would never fit
  BOOST_TEST(b.has("queue.bytes_max"));
  b.send(R"({"prompt":")" + std::string(600, 'x') + R"("})", protocol::dialects::completions);
  BOOST_TEST(b.out->status == 413u);  // nor this, as tokens
  BOOST_TEST(b.context->memory->held() == 0u);
}

BOOST_AUTO_TEST_CASE(a_prompt_counts_once_while_it_is_prepared) {
  bench b;
  b.send(R"({"prompt":")" + std::string(100'000, 'x') + R"("})", protocol::dialects::completions);
  BOOST_REQUIRE_EQUAL(b.pool.long_work.size(), 1u);
  auto work = b.pool.long_work[0];  // the pool's thread still holds it while the call goes on
  b.pool.run_one();
  const std::size_t held = b.context->memory->held();
  work = nullptr;
  BOOST_TEST(held == b.context->memory->held());
  BOOST_TEST(held > 400'000u);
}

BOOST_AUTO_TEST_CASE(a_prompts_penalties_are_made_where_it_is_prepared_and_count_once_for_its_rows) {
  bench b;
  const auto held = [&](const std::string& text, bool penalised) {
    b.submitted.clear();
    b.send(R"({"prompt":")" + text + R"(","n":3,"presence_penalty":1,"global_penalty":)" +
               (penalised ? "true}" : "false}"),
           protocol::dialects::completions);
    if (!b.pool.long_work.empty()) b.pool.run_one();
    b.read_mailbox();
    BOOST_REQUIRE_EQUAL(b.submitted.size(), 1u);
    return b.context->memory->held();
  };
  const std::size_t alone = held("abcabc", false);
  BOOST_TEST(held("abcabc", true) == alone + 3 * sizeof(sampling::token_penalty));
  const auto& rows = b.submitted[0].rows;
  BOOST_REQUIRE_EQUAL(rows.size(), 3u);
  for (const auto& row : rows) BOOST_TEST(row.prior == rows[0].prior);  // not copied

  protocol::generation_request request;
  request.chat = false;
  request.penalises_prompt = true;
  request.prompts = {{"ab", {}, false}, {"aa", {}, false}};
  const auto call = prepare(request, b.model->served, b.context->settings);
  BOOST_REQUIRE(call.has_value());
  BOOST_REQUIRE_EQUAL(call->priors.size(), 2u);
  BOOST_TEST(call->priors[0]->size() == 2u);
  BOOST_TEST(call->priors[1]->size() == 1u);

  std::string all;  // some distinct bytes, which would fit without their penalties
  for (char c = 'A'; c <= 'z'; ++c)
    if (c != '\\') all += c;
  b.context->settings.queue.bytes_max = b.context->settings.queue.key_bytes_max = held(all, false) + all.size();
  b.submitted.clear();
  b.send(R"({"prompt":")" + all + R"(","n":3,"global_penalty":true})", protocol::dialects::completions);
  BOOST_TEST(b.out->status == 413u);
}

BOOST_AUTO_TEST_CASE(a_suffix_counts_with_each_prompt) {
  bench b;
  const auto body = [](int prompts, std::size_t suffix_bytes) {
    std::string list = R"("a")";
    for (int i = 1; i < prompts; ++i) list += R"(,"a")";
    return R"({"prompt":[)" + list + R"(],"suffix":")" + std::string(suffix_bytes, 'x') + R"("})";
  };
  b.context->settings.queue.bytes_max = b.context->settings.queue.key_bytes_max = 100'000;
  b.send(body(40, 3000), protocol::dialects::completions);
  BOOST_TEST(b.out->status == 413u);  // before a text is put together
  BOOST_TEST(b.has("120040 bytes of memory are needed; the limit of one client is 100000 bytes (queue.bytes_max"));
  b.send(body(10, 3000), protocol::dialects::completions);
  BOOST_TEST(b.out->status == 413u);  // the texts fit, their tokens do not
  BOOST_TEST(b.has("the limit of one client is 100000 bytes (queue.bytes_max"));
  BOOST_TEST(b.submitted.empty());
  BOOST_TEST(b.context->memory->held() == 0u);

  b.context->settings = {};
  b.send(body(40, 3000), protocol::dialects::completions);
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
  settings.queue.bytes_max = settings.queue.key_bytes_max = 1 << 20;
  protocol::generation_request request;
  request.chat = false;
  request.prompts.assign(128, {"a", {}, false});
  request.suffix = std::string(100'000, 'x');
  const auto call = prepare(request, model, settings);  // 400,000 bytes a prompt, twice: the second is too many
  BOOST_REQUIRE(!call);
  BOOST_TEST((call.error().kind == error_kind::too_large));
  BOOST_TEST(call.error().message.find("bytes of memory are needed") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_common_beginning_is_charged_for_each_prompt) {
  served_model model;
  model.vocabulary = tokenizer::vocabulary::bytes();
  model.vocab = 256;
  protocol::generation_request request;
  request.chat = false;
  request.lead = "xyz";
  request.prompts = {{"a", {}, false, true}, {"bc", {}, false}};
  BOOST_TEST(text_bytes(request) == 6u);
  const auto call = prepare(request, model, service_settings());
  BOOST_REQUIRE(call.has_value());
  BOOST_TEST(call->prompts.at(0) == (std::vector<token_id>{'x', 'y', 'z', 'a'}), boost::test_tools::per_element());
  BOOST_TEST(call->prompts.at(1) == (std::vector<token_id>{'b', 'c'}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_result_of_a_tool_is_charged_as_it_may_be_written) {
  protocol::generation_request request;
  request.messages = {{"user", "ab", ""}, {"tool", "[1]", ""}};
  BOOST_TEST(text_bytes(request) == 5u);
  request.style.turns = protocol::turn_form::headings;
  BOOST_TEST(text_bytes(request) == 2 + protocol::indented_bytes_max(3));
}

BOOST_AUTO_TEST_CASE(what_a_request_keeps_besides_its_prompt_is_charged_until_it_ends) {
  served_model model;
  model.vocabulary = tokenizer::vocabulary::bytes();
  model.vocab = 256;
  protocol::response_facts facts;
  facts.tools = std::string(1000, ' ');
  protocol::generation_request request;
  request.messages = {{"user", "ab", ""}};
  const std::size_t text = text_bytes(request);
  request.writer = std::make_shared<protocol::response_writer>(facts);
  request.user = "u";
  BOOST_TEST(text_bytes(request) == text + 2001u);
  const auto call = prepare(request, model, service_settings());
  BOOST_REQUIRE(call.has_value());
  BOOST_TEST(held_bytes(*call) >= 2001u);
  request.writer = nullptr;
  BOOST_TEST(held_bytes(*prepare(request, model, service_settings())) < 2001u);
}

BOOST_AUTO_TEST_CASE(a_prompt_is_kept_for_an_echo_only) {
  bench b;
  for (const bool echo : {false, true}) {
    prepared_call call;
    call.request.echo = echo;
    call.prompts = {{1, 2, 3}};
    const token_id* const where = call.prompts[0].data();
    answer_state answer(std::move(call), b.model->served, {}, "req-1");
    const auto given = answer.give_prompt(0);
    BOOST_TEST(given.size() == 3u);
    BOOST_TEST((given.data() == where) == !echo);  // moved, not copied
    BOOST_TEST(answer.usage().prompt_tokens == 3u);
  }
}

BOOST_AUTO_TEST_CASE(a_whole_answer_ends_at_its_ceiling) {
  bench b;
  b.context->settings.limits.response_bytes_max = 3000;
  b.send(R"({"prompt":"x","n":2})", protocol::dialects::completions);
  b.admit();
  b.say(std::string(700, 'a'), 0);
  b.say(std::string(2300, 'b'), 1);
  BOOST_TEST(b.cancelled_rows == std::vector<std::uint32_t>{1}, boost::test_tools::per_element());
  BOOST_TEST(!b.out->ended);
  b.say("a", 0);
  BOOST_TEST(b.out->status == 200u);
  BOOST_TEST(b.has('"' + std::string(700, 'a') + '"'));
  BOOST_TEST(b.has(R"("finish_reason":"length")"));
  BOOST_TEST(b.has(R"("rwkv":{"stop_reason":"response_bytes_max","request_id":"req-1"})"));

  b.send(R"({"prompt":"x","stream":true})", protocol::dialects::completions);  // a stream holds nothing
  b.admit(1);
  b.say(std::string(4000, 'c'), 0, 1);
  BOOST_TEST(b.streamed("text").size() == 4000u);
}

// All of the body counts, whatever the dialect: what stands around the texts, and how JSON writes them.
BOOST_AUTO_TEST_CASE(no_whole_answer_is_longer_than_its_ceiling) {
  const std::string chat = R"({"messages":[{"role":"user","content":"x"}])";
  const std::pair<const protocol::dialect*, std::string> bodies[] = {
      {&protocol::dialects::completions, R"({"prompt":"x"})"},
      {&protocol::dialects::completions, R"({"prompt":"x","n":3})"},
      {&protocol::dialects::completions, R"({"prompt":"xyz","echo":true,"logprobs":5})"},
      {&protocol::dialects::chat, chat + "}"},
      {&protocol::dialects::chat, chat + R"(,"think":true})"},
      {&protocol::dialects::chat, chat + R"(,"logprobs":true,"top_logprobs":20})"},
      {&protocol::dialects::batch, R"({"contents":["x","y"]})"},
      {&protocol::dialects::infill, R"({"input_prefix":"x","input_suffix":"y"})"},
      {&protocol::dialects::ai_chat, chat + "}"}};
  for (const auto& [as, body] : bodies)
    for (const char said : {'a', '"', '\x01', '\n', '\xff'})
      for (const std::size_t most : {3000u, 3001u, 9000u}) {
        bench b;
        b.context->settings.limits.response_bytes_max = most;
        b.send(body, *as);
        for (std::size_t p = 0; p < b.submitted.size(); ++p) {
          b.admit(p);
          if (b.submitted[p].score_prompt)
            b.tell(device::prompt_scored{b.submitted[p].id, std::vector<sampling::token_logprobs>(2)});
        }
        for (std::size_t p = 0; p < b.submitted.size(); ++p)
          for (std::uint32_t row = 0; row < b.submitted[p].rows.size(); ++row) {
            for (std::size_t i = 0; i < most + 20 && !b.out->ended; ++i)
              b.say(std::string(1, i == 0 ? 'x' : said), row, p);
            if (!b.out->ended) b.finish(device::finish_cause::budget, row, p);
          }
        BOOST_TEST_CONTEXT(as->name << ' ' << body << ' ' << int{said} << ' ' << most) {
          BOOST_TEST(b.out->ended);
          BOOST_TEST(b.out->status == 200u);
          BOOST_TEST(b.out->text.size() <= most);
        }
      }
}

BOOST_AUTO_TEST_CASE(an_answer_whose_frame_alone_is_too_long_is_refused) {
  bench b;
  b.context->settings.limits.response_bytes_max = 3000;
  b.send(R"({"prompt":"x","n":100})", protocol::dialects::completions);
  BOOST_TEST(b.out->status == 400u);
  BOOST_TEST(b.has("limits.response_bytes_max (3000 bytes)"));
  BOOST_TEST(b.submitted.empty());
}

BOOST_AUTO_TEST_CASE(an_echo_counts_as_the_json_that_it_becomes) {
  bench b;
  b.context->settings.limits.response_bytes_max = 5000;
  const auto fits = [&](const char* character, int count, const std::string& more) {
    std::string text;
    for (int i = 0; i < count; ++i) text += character;
    const std::size_t before = b.submitted.size();
    b.send(R"({"prompt":")" + text + R"(","echo":true)" + more + "}", protocol::dialects::completions);
    if (b.submitted.size() == before) BOOST_TEST(b.out->status == 400u);
    return b.submitted.size() > before;
  };
  BOOST_TEST(fits("\\u0001", 300, R"(,"n":2)"));  // six bytes each
  BOOST_TEST(!fits("\\u0001", 417, R"(,"n":2)"));
  BOOST_TEST(fits("\xe4\xbd\xa0", 1300, ""));  // three tokens each, but one character
  BOOST_TEST(!fits("\xe4\xbd\xa0", 1667, ""));
}

BOOST_AUTO_TEST_CASE(an_echo_in_a_stream_fits_into_the_queue_of_its_connection) {
  bench b;
  b.context->settings.limits.outbound_bytes_max = 1000;
  const auto ask = [&](std::size_t bytes, const std::string& more) {
    b.send(R"({"prompt":[")" + std::string(bytes, 'x') + R"(","x"],"n":2,"echo":true)" + more + "}",
           protocol::dialects::completions);
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
  b.context->settings.limits.response_bytes_max = 2000;
  const std::string prompt = R"({"prompt":")" + std::string(400, 'x') + '"';
  b.send(prompt + R"(,"echo":true,"n":2})", protocol::dialects::completions);
  BOOST_TEST(b.submitted.size() == 1u);
  for (const char* more : {R"(,"echo":true,"n":6})", R"(,"echo":true,"logprobs":1})"}) {
    b.send(prompt + more, protocol::dialects::completions);
    BOOST_TEST(b.out->status == 400u);
    BOOST_TEST(b.has(R"("param":"echo")"));
    BOOST_TEST(b.has("limits.response_bytes_max (2000 bytes)"));
  }
}
