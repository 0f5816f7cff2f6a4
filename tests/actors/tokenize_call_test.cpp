// /tokenize and /detokenize, with the test in the place of the worker pool: short bodies are answered at once, long
// ones come back from the pool, and what cannot be answered (too long, no memory, no room) is refused with its reason.
#include "actors/request/models/tokenize_call.hpp"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "actors/request/call/memory.hpp"
#include "tests/actors/hand_run_pool.hpp"
#include "tests/actors/response_recorder.hpp"
#include "tests/support/failing_new.hpp"

namespace {

using namespace skein;
using namespace skein::request;

struct bench {
  bench() {
    model->served.vocabulary = tokenizer::vocabulary::bytes();
    model->served.vocab = 256;
    model->served.names = {"tiny"};
    context->models->put(model, true);
    context->run_long = [this](const auto&, std::function<void()> work) { return pool.take(std::move(work)); };
  }

  void send(bool to_tokens, const std::string& body) {
    out = std::make_shared<test::response_recorder>();
    out->failures = failures;
    call = std::make_unique<tokenize_call>(
        to_tokens ? text_task::tokenize : text_task::detokenize,
        plain_origin{.request_name = "req-1",
                     .client = {},
                     .headers = {{"X-Request-Id", "req-1"}},
                     .share = share_of(*context, *anybody(), "127.0.0.1", true)},
        context, [this](std::function<void()> w) { pool.posted.push_back(std::move(w)); }, out);
    call->body(body);
  }
  std::shared_ptr<loaded_model> model = std::make_shared<loaded_model>();
  std::shared_ptr<service_context> context = std::make_shared<service_context>();
  test::hand_run_pool pool;
  int failures = 0;  // of the response_writer
  std::shared_ptr<test::response_recorder> out;
  std::unique_ptr<tokenize_call> call;
};

std::string text_body(std::size_t bytes, const std::string& more = "") {
  return R"({"content":")" + std::string(bytes, 'x') + '"' + more + '}';
}

constexpr std::size_t long_text = 2 << 20;

}  // namespace

BOOST_AUTO_TEST_CASE(short_bodies_are_answered_at_once) {
  bench b;
  b.send(true, R"({"content":"ab"})");
  BOOST_TEST(b.out->status == 200u);
  BOOST_TEST(b.out->text == R"({"tokens":[97,98]})");
  b.send(false, R"({"tokens":[97,98]})");
  BOOST_TEST(b.out->text == R"({"content":"ab"})");
  b.send(false, R"({"tokens":[97,256]})");
  BOOST_TEST(b.out->status == 400u);
}

BOOST_AUTO_TEST_CASE(members_that_are_not_read_are_told) {
  bench b;
  const auto ignored = [&](text_task task, const std::string& body) {
    b.out = std::make_shared<test::response_recorder>();
    b.call = std::make_unique<tokenize_call>(
        task, plain_origin{.request_name = "req-1", .client = {}, .headers = {}}, b.context,
        [&](std::function<void()> w) { b.pool.posted.push_back(std::move(w)); }, b.out);
    b.call->body(body);
    BOOST_TEST(b.out->status == 200u);
    return b.out->header("X-Skein-Ignored-Fields");
  };
  const std::string chat = R"("messages":[{"role":"user","content":"x"}],"temperature":1)";
  BOOST_TEST(ignored(text_task::tokenize, R"({"content":"a","x":1})") == "");
  b.context->settings.limits.tells_ignored = true;
  BOOST_TEST(ignored(text_task::tokenize, R"({"content":"a","parse_special":true,"model":"tiny","y":[1]})") ==
             "parse_special, y");
  BOOST_TEST(ignored(text_task::tokenize, R"({"content":"a","add_special":true,"with_pieces":true})") == "");
  BOOST_TEST(ignored(text_task::detokenize, R"({"tokens":[97],"x":1})") == "x");
  BOOST_TEST(ignored(text_task::apply_template, "{" + chat + R"(,"x":1})") == "x");
  BOOST_TEST(ignored(text_task::count, R"({"text":"a","contents":["b"]})") == "contents");
  BOOST_TEST(ignored(text_task::count, "{" + chat + R"(,"return_tokens":true,"x":1})") == "x");
}

BOOST_AUTO_TEST_CASE(long_bodies_come_back_from_the_worker_pool) {
  bench b;
  b.send(true, text_body(long_text));
  BOOST_TEST(!b.out->ended);
  b.pool.run_one();
  BOOST_TEST(b.out->status == 200u);
  BOOST_TEST(b.context->memory->held() == 0u);
}

BOOST_AUTO_TEST_CASE(an_answer_that_is_too_long_is_refused_by_its_field) {
  bench b;
  b.context->settings.limits.response_bytes_max = 10'000;
  b.send(true, text_body(300));
  BOOST_TEST(b.out->status == 200u);
  b.send(true, text_body(1000, R"(,"with_pieces":true)"));
  BOOST_TEST(b.out->status == 400u);
  BOOST_TEST(b.out->has(R"("param":"with_pieces")"));
  BOOST_TEST(b.out->has("limits.response_bytes_max (10000 bytes)"));
}

BOOST_AUTO_TEST_CASE(work_that_throws_on_the_worker_pool_is_a_500) {
  bench b;
  b.context->settings.limits.response_bytes_max = 100 << 20;
  b.send(true, text_body(long_text, R"(,"with_pieces":true)"));
  {
    const test::failing_new no_memory(32 << 20);  // the parser has what it needs, the answer grows beyond
    b.pool.run_one();
  }
  BOOST_TEST(b.out->status == 500u);
  BOOST_TEST(b.out->header("X-Request-Id") == "req-1");
  BOOST_TEST(
      b.out->has(R"({"error":{"message":"the server failed while it processed this request","type":"server_error")"));
  b.send(true, text_body(long_text));
  b.pool.run_one();
  BOOST_TEST(b.out->status == 200u);
}

BOOST_AUTO_TEST_CASE(texts_that_wait_count_against_the_memory_of_all) {
  bench b;
  b.context->settings.queue.bytes_max = b.context->settings.queue.key_bytes_max = 3 * long_text / 2;
  b.send(true, text_body(long_text));
  const auto first = b.out;
  b.send(true, text_body(long_text));
  BOOST_TEST(b.out->status == 429u);
  BOOST_TEST(!b.out->header("Retry-After").empty());
  BOOST_TEST(b.out->has("queue.key_bytes_max"));
  b.pool.run_one();
  BOOST_TEST(first->status == 200u);
  BOOST_TEST(b.context->memory->held() == 0u);
}

BOOST_AUTO_TEST_CASE(no_long_work_is_begun_for_a_client_that_left) {
  for (const bool to_tokens : {true, false}) {
    bench b;
    b.send(to_tokens, text_body(long_text));
    b.call->gone("client closed", connection::client_gone);
    b.pool.long_work.at(0)();
    b.pool.long_work.clear();
    BOOST_TEST(b.pool.posted.empty());
    BOOST_TEST(b.context->memory->held() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(an_answer_that_cannot_be_sent_is_a_500_or_the_end) {
  for (const std::size_t bytes : {std::size_t{2}, long_text})
    for (const int failures : {1, 2}) {
      bench b;
      b.failures = failures;
      b.send(true, text_body(bytes));
      if (bytes == long_text) b.pool.run_one();
      BOOST_TEST(b.out->ended);
      BOOST_TEST(b.out->status == (failures == 1 ? 500u : 0u));
    }
}
