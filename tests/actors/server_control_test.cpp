// What operators may do with requests, stepped by hand: who is running and how far, the end of an answer on their word,
// and a chat that goes on after a pause where it broke off. The test plays device, clock and the way between threads.
#include "actors/request/status/server_control.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

#include "actors/request/service/api_service.hpp"
#include "tests/actors/generation_bench.hpp"

using namespace skein;
using namespace skein::request;
using namespace std::chrono_literals;

/// Calls as a client makes them, and a second connection for the operator.
struct control_bench : test::generation_bench {
  control_bench() {
    counters.slots = 8;
    model->served.path = "/secret/tiny.pth";
  }
  /// Sends a request, and keeps it open in `call` and `out`.
  void open(const std::string& path, const std::string& body, const std::string& name = "job") {
    out = std::make_shared<test::response_recorder>();
    call = service.accept(head("POST", path, name), out);
    BOOST_REQUIRE(call);
    call->body(body);
    read_mailbox();
  }
  /// What an operator asks on the side.
  std::string ask(const std::string& method, const std::string& path, const std::string& body = "",
                  connection::header_list fields = {}) {
    auto answer = std::make_shared<test::response_recorder>();
    connection::request_head h = head(method, path, "operator");
    h.fields.insert(h.fields.end(), fields.begin(), fields.end());
    const auto asked = service.accept(h, answer);
    if (asked) asked->body(body);
    while (!pool.posted.empty()) {  // to the io thread of the request, and back
      const auto work = std::exchange(pool.posted, {});
      for (const auto& each : work) each();
    }
    read_mailbox();
    BOOST_TEST(answer->ended);
    return std::to_string(answer->status) + ' ' + answer->text;
  }
  static connection::request_head head(const std::string& method, const std::string& path, const std::string& name) {
    connection::request_head h;
    h.method = method;
    h.raw_path = h.path = path;
    h.fields = {{"x-request-id", name}};
    h.remote_address = "127.0.0.1";
    return h;
  }
  static bool in(const std::string& text, const std::string& piece) {
    BOOST_TEST_CONTEXT(text) BOOST_TEST(text.find(piece) != std::string::npos, "lacks " << piece);
    return true;
  }

  api_service service{context, hub, [this](std::function<void()> w) { pool.posted.push_back(std::move(w)); }};
  std::unique_ptr<connection::http_call> call;
};

namespace {

const std::string chat = R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":20,"stream":true})";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(server_control, control_bench)

BOOST_AUTO_TEST_CASE(the_status_tells_of_every_request) {
  std::string s = ask("GET", "/v1/server/status");
  in(s, R"(200 {"status":"running")");
  in(s, R"("model":{"id":"tiny","name":"tiny",)");
  in(s, R"("hard_max_bsz":8,)");
  in(s, R"("active_request":null,"active_requests":[],"last_request":null,"paused_requests":[])");

  open("/v1/chat/completions", chat);
  s = ask("GET", "/v1/server/status");
  in(s, R"("active_requests":[{"id":"job","endpoint":"chat.completions","model":"tiny")");
  in(s, R"("prefilled_tokens":0,"generated_tokens":0,"max_tokens":20,"stop_requested":false)");

  admit();
  *submitted[0].fed += 9;  // of ticks
  in(ask("GET", "/v1/server/status"), R"("prefilled_tokens":9,"generated_tokens":0,)");
  in(ask("GET", "/v1/server/status"), R"("prefill_progress":0.25,)");
  *submitted[0].fed += 27;
  time.advance(2s);
  say("a");
  time.advance(1s);
  say("bc");
  s = ask("GET", "/v1/server/status");
  in(s, R"("prompt_tokens":36,"prefilled_tokens":36,"generated_tokens":3,)");
  in(s, R"("prefill_progress":1,"prefill_speed":18,"decode_speed":2})");

  finish(device::finish_cause::stop_id);
  s = ask("GET", "/v1/server/status");
  in(s, R"("active_requests":[],"last_request":{"id":"job")");
  in(s, R"("finished":true)");
}

BOOST_AUTO_TEST_CASE(the_path_is_shown_to_clients_with_the_password) {
  BOOST_TEST(ask("GET", "/v1/server/status").find("secret") == std::string::npos);
  context->settings.server.password = "word";
  BOOST_TEST(ask("GET", "/v1/server/status").starts_with("401 "));
  in(ask("GET", "/v1/server/status", "", {{"authorization", "Bearer word"}}), R"("path":"/secret/tiny.pth")");
  BOOST_TEST(ask("POST", "/v1/server/stop", "{}").starts_with("401 "));
  BOOST_TEST(ask("POST", "/v1/server/stop", R"({"password":"word"})").starts_with("200 "));
  BOOST_TEST(ask("POST", "/v1/server/resume", "{}").starts_with("401 "));
}

BOOST_AUTO_TEST_CASE(a_stopped_stream_ends_in_an_orderly_way) {
  open("/v1/completions", R"({"prompt":"x","stream":true,"n":2})");
  admit();
  say("ab", 1);
  in(ask("POST", "/v1/server/stop", R"({"request_id":"job"})"), R"(200 {"ok":true,"stopped":true,"active_request":{)");
  BOOST_TEST(out->ended);
  BOOST_TEST(streamed("text") == "ab");
  in(out->text,
     R"("finish_reason":"stop","stop_reason":null}],"rwkv":{"stop_reason":"admin_stop","request_id":"job"}})");
  BOOST_TEST(out->text.ends_with("data: [DONE]\n\n"));
  BOOST_TEST(cancelled.size() == 1u);
  in(ask("POST", "/v1/server/stop"), R"("stopped":false,"active_request":null)");
}

BOOST_AUTO_TEST_CASE(a_stopped_answer_that_waits_is_refused) {
  open("/state/chat/completions", R"({"contents":["x"]})");
  in(ask("POST", "/v1/server/stop", "{}"), R"("stopped":true)");
  BOOST_TEST(out->status == 409u);
  BOOST_TEST(out->text == R"({"error":"Request cancelled"})");
  BOOST_TEST(cancelled.size() == 1u);
}

BOOST_AUTO_TEST_CASE(others_continue) {
  open("/v1/chat/completions", chat, "one");
  admit();
  in(ask("POST", "/v1/server/stop", R"({"request_id":"two"})"), R"("stopped":false)");
  in(ask("POST", "/v1/server/pause", R"({"request_id":"two"})"), R"("paused":false,"request_id":null)");
  BOOST_TEST(!out->ended);
  BOOST_TEST(cancelled.empty());
}

BOOST_AUTO_TEST_CASE(a_paused_chat_continues_where_it_was_interrupted) {
  open("/v1/chat/completions", chat);
  const std::string prompt(submitted[0].prompt.begin(), submitted[0].prompt.end());
  const auto seed = submitted[0].rows[0].seed;
  admit();
  say(">\nab\xe4\xbd");
  in(ask("POST", "/v1/server/pause"), R"("paused":true,"request_id":"job")");
  BOOST_TEST(out->ended);
  BOOST_TEST(streamed("content") == "ab");
  in(out->text, R"("rwkv":{"stop_reason":"paused","request_id":"job"})");
  in(ask("GET", "/v1/server/status"), R"("paused_requests":[{"id":"job")");

  open("/v1/server/resume", R"({"request_id":"job"})", "again");
  BOOST_REQUIRE_EQUAL(submitted.size(), 2u);
  BOOST_TEST(std::string(submitted[1].prompt.begin(), submitted[1].prompt.end()) == prompt + ">\nab\xe4\xbd");
  BOOST_TEST(submitted[1].rows[0].max_tokens == 16u);  // `>` and the newline did not count
  BOOST_TEST(submitted[1].rows[0].seed == seed);
  BOOST_TEST(submitted[1].rows[0].sampled_before == 6u);  // draws are numbered on
  BOOST_TEST(submitted[1].rows[0].stop_ids == submitted[0].rows[0].stop_ids);
  in(ask("GET", "/v1/server/status"), R"("endpoint":"server.resume")");
  admit(1);
  say("\xa0"
      "c",
      0, 1);

  // And once more, now named by its new id.
  in(ask("POST", "/v1/server/pause", R"({"request_id":"again"})"), R"("paused":true)");
  BOOST_TEST(streamed("content") ==
             "\xe4\xbd\xa0"
             "c");
  open("/v1/server/resume", R"({"session_id":"again","max_tokens":5,"temperature":0.25})");
  BOOST_REQUIRE_EQUAL(submitted.size(), 3u);
  BOOST_TEST(submitted[2].prompt.size() == prompt.size() + 8);
  BOOST_TEST(submitted[2].rows[0].max_tokens == 5u);
  BOOST_TEST(submitted[2].rows[0].temperature == 0.25f);
  BOOST_TEST(submitted[2].rows[0].top_p == submitted[0].rows[0].top_p);
  admit(2);
  say("d", 0, 2);
  finish(device::finish_cause::budget, 0, 2);
  BOOST_TEST(streamed("content") == "d");
  in(out->text, R"("finish_reason":"length")");
  BOOST_TEST(out->text.ends_with("data: [DONE]\n\n"));
}

BOOST_AUTO_TEST_CASE(a_paused_chat_can_be_resumed_once_and_not_for_ever) {
  const auto pause_one = [&](const std::string& name) {
    open("/v1/chat/completions", chat, name);
    admit(submitted.size() - 1);
    in(ask("POST", "/v1/server/pause"), R"("paused":true)");
  };
  pause_one("job");
  BOOST_TEST(ask("POST", "/v1/server/resume", R"({"request_id":"job","max_tokens":"x"})").starts_with("400 "));
  open("/v1/server/resume", R"({"request_id":"job"})");
  BOOST_TEST(submitted.size() == 2u);
  BOOST_TEST(ask("POST", "/v1/server/resume", R"({"request_id":"job"})") ==
             R"(404 {"error":"Paused request not found"})");
  BOOST_TEST(ask("POST", "/v1/server/resume", "{}") == R"(400 {"error":"Missing request_id parameter"})");
  call.reset();

  pause_one("old");
  time.advance(2h);
  BOOST_TEST(ask("POST", "/v1/server/resume", R"({"request_id":"old"})").starts_with("404 "));

  context->requests = std::make_shared<request_register>(config::pause_settings{.requests_max = 1});
  pause_one("first");
  pause_one("second");
  BOOST_TEST(ask("POST", "/v1/server/resume", R"({"request_id":"first"})").starts_with("404 "));
  model->served.card.identity = "another";
  BOOST_TEST(ask("POST", "/v1/server/resume", R"({"request_id":"second"})").starts_with("409 "));
  model->served.card.identity.clear();  // its own model is back: nothing was lost
  open("/v1/server/resume", R"({"request_id":"second"})");
  BOOST_TEST(submitted.size() == 6u);
}

BOOST_AUTO_TEST_CASE(a_paused_chat_continues_with_its_tuned_state) {
  tuned_state state;
  state.name = "poet";
  state.values = std::make_shared<const model::state_value>();
  state.temperature = 0.25f;
  BOOST_REQUIRE(model->tuned.put(state, 1).has_value());
  open("/v1/chat/completions", R"({"state_name":"poet",)" + chat.substr(1));
  BOOST_TEST(submitted[0].rows[0].temperature == 0.25f);
  admit();
  in(ask("POST", "/v1/server/pause"), R"("paused":true)");
  model->tuned.clear();
  open("/v1/server/resume", R"({"request_id":"job","temperature":0.75})");
  BOOST_REQUIRE_EQUAL(submitted.size(), 2u);
  BOOST_TEST(submitted[1].from.state == state.values);
  BOOST_TEST(submitted[1].rows[0].temperature == 0.75f);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_paused_runs_on) {
  const auto refuses = [&] {
    in(ask("POST", "/v1/server/pause", R"({"request_id":"job"})"),
       R"(409 {"error":"request_id: request 'job' cannot be paused; only a chat that has begun can,)");
    in(ask("GET", "/v1/server/status"), R"("paused_requests":[])");
    BOOST_TEST(!out->ended);
    BOOST_TEST(cancelled.empty());
  };
  open("/v1/chat/completions", chat);
  refuses();  // it waits
  admit();
  say("a");
  finish(device::finish_cause::budget);

  open("/v1/completions", R"({"prompt":"x"})");
  admit(1);
  say("a", 0, 1);
  refuses();
  say("b", 0, 1);
  finish(device::finish_cause::budget, 0, 1);
  in(out->text, R"("text":"ab")");

  context->requests =
      std::make_shared<request_register>(config::pause_settings{.tokens_max = 38});  // the prompt has 36
  open("/v1/chat/completions", chat);
  admit(2);
  say("abc", 0, 2);
  refuses();
  say("d", 0, 2);
  BOOST_TEST(streamed("content") == "abcd");
}

BOOST_AUTO_TEST_CASE(a_resumed_chat_that_breaks_off_can_be_resumed_again) {
  open("/v1/chat/completions", chat);
  admit();
  say(">\nab");
  in(ask("POST", "/v1/server/pause"), R"("paused":true)");

  const auto resume = [&](std::size_t which) {
    open("/v1/server/resume", R"({"request_id":"job"})", "again");
    BOOST_REQUIRE_EQUAL(submitted.size(), which + 1);
    BOOST_TEST(submitted[which].prompt == submitted[1].prompt);
    BOOST_TEST(submitted[which].rows[0].sampled_before == 4u);
    BOOST_TEST(submitted[which].rows[0].max_tokens == 18u);  // `>` and the newline did not count
  };
  resume(1);
  admit(1);
  say("cd", 0, 1);
  call->gone("client_gone", 499);
  in(ask("GET", "/v1/server/status"), R"("paused_requests":[{"id":"job")");

  resume(2);  // there is no room for it
  tell(device::rejected{submitted[2].id, {error_kind::overloaded, "too many requests are waiting", ""}});
  BOOST_TEST(out->status == 429u);

  resume(3);
  admit(3);
  say("cde", 0, 3);
  finish(device::finish_cause::stop_id, 0, 3);
  BOOST_TEST(streamed("content") == "cde");
  in(ask("POST", "/v1/server/resume", R"({"request_id":"job"})"), "404 ");  // it has its end
}

/// A long body is read by the worker pool, which takes nothing away from who may ask again.
BOOST_AUTO_TEST_CASE(a_resume_whose_client_leaves_while_its_body_is_read_can_be_asked_for_again) {
  open("/v1/chat/completions", chat);
  admit();
  say(">\nab");
  in(ask("POST", "/v1/server/pause"), R"("paused":true)");

  context->settings.inline_json_bytes_max = 10;
  open("/v1/server/resume", R"({"request_id":"job"})", "again");
  BOOST_REQUIRE_EQUAL(pool.long_work.size(), 1u);
  pool.long_work[0]();  // it is read, and on its way back
  pool.long_work.clear();
  call->gone("client_gone", 499);
  call.reset();
  const auto late = std::exchange(pool.posted, {});
  for (const auto& each : late) each();
  BOOST_REQUIRE_EQUAL(submitted.size(), 1u);
  in(ask("GET", "/v1/server/status"), R"("paused_requests":[{"id":"job")");

  // Two at a time: the first takes it.
  open("/v1/server/resume", R"({"request_id":"job"})", "first");
  const auto first = std::move(call);
  const auto first_out = out;
  auto first_work = std::exchange(pool.long_work, {});
  open("/v1/server/resume", R"({"request_id":"job"})", "second");
  first_work[0]();
  pool.long_work[0]();
  pool.long_work.clear();
  for (const auto& each : std::exchange(pool.posted, {})) each();
  while (!pool.long_work.empty()) pool.run_one();
  read_mailbox();
  BOOST_TEST(out->status == 404u);
  BOOST_TEST(!first_out->ended);
}

BOOST_AUTO_TEST_CASE(who_wants_to_know_is_told_of_the_queue) {
  open("/v1/chat/completions", chat, "first");
  auto first = std::exchange(call, nullptr);
  open("/big_batch/completions", R"({"contents":["x"],"queue_events":true})");
  hub.tick(time.now());
  BOOST_TEST(out->text ==
             "data: {\"object\":\"queue.status\",\"status\":\"queued\",\"ticket\":2,\"queue_position\":2,"
             "\"requests_ahead\":1,\"waiting_requests\":2}\n\n");
  admit(0);
  hub.tick(time.now());
  in(out->text, R"("queue_position":1,"requests_ahead":0,"waiting_requests":1})");
  admit(1);
  in(out->text, R"("status":"processing","ticket":2,"queue_position":0,"requests_ahead":0,"waiting_requests":0})");
  const std::string told = out->text;
  hub.tick(time.now());
  BOOST_TEST(out->text == told);

  open("/big_batch/completions", R"({"contents":["x"]})");
  hub.tick(time.now());
  admit(2);
  BOOST_TEST(out->text.find("queue") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(tokens_are_counted) {
  BOOST_TEST(ask("POST", "/v1/tokens/count", R"({"text":"abc","contents":["x"]})") == R"(200 {"tokens":3})");
  BOOST_TEST(ask("POST", "/v1/tokens/count", R"({"contents":["ab","c"],"return_tokens":true})") ==
             R"(200 {"tokens":3,"token_ids":[97,98,99]})");
  BOOST_TEST(ask("POST", "/v1/tokens/count", R"({"messages":[{"role":"user","content":"Hi"}]})") ==
             R"(200 {"tokens":36})");
  BOOST_TEST(ask("POST", "/v1/tokens/count", "{}") == R"(400 {"error":"Missing text or messages"})");
  BOOST_TEST(ask("POST", "/v1/tokens/count", R"({"contents":[1]})") ==
             R"(400 {"error":"contents must be a list of strings"})");
  BOOST_TEST(ask("POST", "/v1/tokens/count", R"({"messages":[{"role":7}]})").starts_with("400 "));
}

BOOST_AUTO_TEST_CASE(probes_of_the_older_servers) {
  BOOST_TEST(ask("GET", "/healthz") == R"(200 {"status":"ok","model":"tiny"})");
  BOOST_TEST(ask("GET", "/healthcheck") == R"(200 {"message":"ok","status_code":200})");
  context->draining = true;
  BOOST_TEST(ask("GET", "/healthz").starts_with("503 "));
  BOOST_TEST(ask("GET", "/healthcheck") == R"(503 {"message":"draining","status_code":503})");
}

BOOST_AUTO_TEST_SUITE_END()
