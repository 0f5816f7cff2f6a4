// The parts of a generation call, each alone: what the device_run sends to the device, that a session_part gives its
// lease back, what a client_output writes, that the request_reader waits for a model, and which phases follow which.
#include <boost/test/unit_test.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/request/generation/client_output.hpp"
#include "actors/request/generation/device_run.hpp"
#include "actors/request/generation/phase.hpp"
#include "actors/request/generation/request_reader.hpp"
#include "actors/request/generation/session_part.hpp"
#include "tests/actors/generation_bench.hpp"

namespace {

using namespace skein;
using namespace skein::request;
using namespace std::chrono_literals;

/// A bench without a call: the test plays the call.
struct bench : test::generation_bench, device_client, persistence_client {
  void on_event(std::uint32_t, device::event&) override { ++events; }
  void on_events_done() override {}
  void on_tick(steady_time) override {}
  void on_reply(persistence::reply&) override { ++replies; }

  [[nodiscard]] std::vector<persistence::message_in> asked() {
    std::vector<persistence::message_in> all;
    questions.drain(all);
    return all;
  }
  int events = 0, replies = 0;
};

prepared_call raw_call(std::size_t prompts) {
  prepared_call call;
  call.request.chat = false;
  call.request.sampling.max_tokens = 5;
  call.request.n = 1;
  call.request.best_of = 1;
  call.prompts.assign(prompts, {1, 2, 3});
  return call;
}

session_turn turn_of(bench& b, const std::string& more) {
  const auto read =
      protocol::read_request(R"({"session_id":"s","messages":[{"role":"user","content":"Hi"}])" + more + "}",
                             protocol::dialects::chat, {}, b.context->settings.limits);
  return session_turn(*read.request);
}

}  // namespace

// ---------------------------------------------------------------- device_run

namespace {

struct run_bench : bench {
  explicit run_bench(std::size_t prompts)
      : run(hub, *this, session,
            {model, "req-1", "tenant", "127.0.0.1", std::nullopt, entry, time.now() + 1h, 60s, 2, &time},
            answer_state(raw_call(prompts), model->served, {}, "req-1")) {
    run.begin();
  }
  [[nodiscard]] bool submit() {
    const bool taken = run.submit_more(nullptr);
    read_mailbox();
    return taken;
  }

  std::shared_ptr<running_request> entry = std::make_shared<running_request>(running_request::facts{}, nullptr);
  session_part session{hub, *this};
  device_run run;
};

}  // namespace

BOOST_AUTO_TEST_CASE(only_some_prompts_wait_for_slots_at_a_time) {
  run_bench b(3);
  BOOST_TEST(b.submit());
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 2u);
  BOOST_TEST((b.submitted[0].queue_deadline == b.time.now() + 60s));
  BOOST_TEST((b.submitted[1].queue_deadline == b.time.now() + 1h));  // it waits for the first
  BOOST_TEST(!b.run.begun());
  device::admitted admitted{b.submitted[0].id, 5us};
  b.run.on(0, admitted);
  BOOST_TEST(b.run.begun());
  BOOST_TEST(b.submit());
  BOOST_TEST(b.submitted.size() == 3u);
  BOOST_TEST(b.run.running() == 3u);
}

BOOST_AUTO_TEST_CASE(a_prompt_that_was_sent_back_waits_for_a_tick) {
  run_bench b(2);
  BOOST_TEST(b.submit());
  device::admitted admitted{b.submitted[0].id, 5us};
  b.run.on(0, admitted);
  device::rejected rejected{b.submitted[1].id, {}};
  b.run.on(1, rejected);
  b.run.put_back(1);
  BOOST_TEST(b.submit());
  BOOST_TEST(b.submitted.size() == 2u);
  b.run.on_tick();
  BOOST_TEST(b.submit());
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 3u);
  BOOST_TEST(b.submitted[2].id != b.submitted[1].id);
  BOOST_TEST(b.submitted[2].prompt.size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_full_device_is_told_nothing_more) {
  run_bench b(1);
  for (int i = 0; i < 100; ++i) BOOST_REQUIRE(b.inbox.push(device::cancel{1}));
  BOOST_TEST(!b.run.submit_more(nullptr));
  BOOST_TEST(b.run.running() == 0u);
}

BOOST_AUTO_TEST_CASE(a_pause_is_told_once_and_stops_new_prompts) {
  run_bench b(3);
  BOOST_TEST(b.submit());
  b.run.resume();
  b.run.pause();
  b.run.pause();
  device::admitted admitted{b.submitted[0].id, 5us};
  b.run.on(0, admitted);
  BOOST_TEST(b.submit());
  BOOST_TEST(b.submitted.size() == 2u);
  b.run.resume();
  b.run.resume();
  BOOST_TEST(b.submit());
  BOOST_TEST(b.submitted.size() == 3u);
  BOOST_TEST(b.pauses == 2);   // one for each prompt
  BOOST_TEST(b.resumes == 2);  // likewise
}

BOOST_AUTO_TEST_CASE(what_is_settled_is_not_cancelled) {
  run_bench b(2);
  BOOST_TEST(b.submit());
  b.run.settle(3, {7});
  b.run.cancel();
  b.run.cancel();
  b.read_mailbox();
  BOOST_REQUIRE_EQUAL(b.settled.size(), 1u);
  BOOST_TEST(b.settled[0].id == b.submitted[0].id);
  BOOST_TEST(b.cancelled == std::vector<request_id>{b.submitted[1].id}, boost::test_tools::per_element());
  b.tell(device::admitted{b.submitted[1].id, 5us});
  BOOST_TEST(b.events == 0);
}

namespace {

/// Two devices, of which generation_bench has the first.
struct two_devices_bench : run_bench {
  explicit two_devices_bench(std::size_t prompts) : run_bench(prompts) {
    for (auto* each : {&counters, &counters_1}) each->slots = 4;
    model->devices.add(inbox_1, &counters_1);
  }
  ~two_devices_bench() { run.cancel(); }
  two_devices_bench(const two_devices_bench&) = delete;  // the model points into it
  two_devices_bench& operator=(const two_devices_bench&) = delete;
  /// Messages of that kind to the second device.
  template <typename Message>
  std::vector<Message> told() {
    std::vector<device::message> all;
    inbox_1.drain(all);
    std::vector<Message> of_kind;
    for (auto& m : all)
      if (auto* one = std::get_if<Message>(&m)) of_kind.push_back(std::move(*one));
    return of_kind;
  }
  device::mailbox inbox_1{100, 100};
  device::device_counters counters_1;
};

}  // namespace

BOOST_AUTO_TEST_CASE(each_prompt_has_a_device_and_only_that_device_is_told_of_it) {
  two_devices_bench b(2);
  BOOST_TEST(b.submit());
  const auto second = b.told<device::submit>();
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 1u);
  BOOST_REQUIRE_EQUAL(second.size(), 1u);
  BOOST_TEST(b.submitted[0].device == 0u);
  BOOST_TEST(second[0].device == 1u);
  b.run.pause();
  b.read_mailbox();
  BOOST_TEST(b.pauses == 1);
  const auto paused = b.told<device::pause>();
  BOOST_REQUIRE_EQUAL(paused.size(), 1u);
  BOOST_TEST(paused[0].id == second[0].id);
  b.run.settle(0, {});
  BOOST_TEST(b.told<device::settle>().empty());  // it is the first prompt's
  b.run.cancel();
  b.read_mailbox();
  BOOST_TEST(b.settled.size() == 1u);
  BOOST_TEST(b.cancelled.empty());
  const auto cancelled = b.told<device::cancel>();
  BOOST_REQUIRE_EQUAL(cancelled.size(), 1u);
  BOOST_TEST(cancelled[0].id == second[0].id);
}

BOOST_AUTO_TEST_CASE(a_prompt_that_is_over_counts_no_more) {
  two_devices_bench b(2);
  BOOST_TEST(b.submit());
  BOOST_TEST(b.model->devices.place(1, std::nullopt).id() == 0u);  // one prompt on each
  device::row_finished over{b.told<device::submit>().at(0).id, 0, device::finish_cause::budget};
  b.run.on(1, over);
  for (int i = 0; i < 2; ++i) BOOST_TEST(b.model->devices.place(1, std::nullopt).id() == 1u);  // not in turns
  b.run.cancel();
  BOOST_TEST(b.model->devices.place(1, std::nullopt).id() == 0u);  // both are idle
}

BOOST_AUTO_TEST_CASE(a_turn_runs_on_the_device_that_has_its_state) {
  two_devices_bench b(1);
  b.session.take(turn_of(b, ""), 0);
  BOOST_REQUIRE(b.session.open({"model", "", "tenant"}, b.time.now() + 1h));
  persistence::session_opened reply;
  reply.lease = 5;
  reply.key = {7, 2};
  reply.resume.key = {7, 1};
  reply.resume.state = std::make_shared<const model::state_value>();
  reply.resume.device = 1;
  BOOST_REQUIRE(b.session.opened(std::move(reply)).has_value());
  BOOST_TEST(b.submit());
  BOOST_TEST(b.submitted.empty());
  const auto told = b.told<device::submit>();
  BOOST_REQUIRE_EQUAL(told.size(), 1u);
  BOOST_TEST((told[0].from.key == device::state_key{7, 1}));
  BOOST_TEST((told[0].from.state != nullptr));  // should the slot have been taken meanwhile
}

BOOST_AUTO_TEST_CASE(a_failure_of_the_device_is_kept) {
  run_bench b(1);
  BOOST_TEST(b.submit());
  device::row_finished lost{b.submitted[0].id, 0, device::finish_cause::device_lost};
  b.run.on(0, lost);
  BOOST_REQUIRE(b.run.failure().has_value());
  BOOST_TEST((b.run.failure()->kind == error_kind::internal));
  BOOST_TEST(b.run.running() == 0u);
}

// ---------------------------------------------------------------- session_part

BOOST_AUTO_TEST_CASE(a_session_is_left_by_whatever_asked_for_it) {
  for (const bool leased : {false, true}) {
    bench b;
    {
      session_part session(b.hub, b);
      session.take(turn_of(b, ""), 0);
      BOOST_REQUIRE(session.open({"model", "", "tenant"}, b.time.now() + 1h));
      auto questions = b.asked();
      BOOST_REQUIRE_EQUAL(questions.size(), 1u);
      const auto& open = std::get<persistence::open_session>(questions[0]);
      BOOST_TEST(open.session.tenant == "tenant");
      BOOST_TEST(open.model == "model");
      if (!leased) continue;
      persistence::session_opened reply;
      reply.lease = 5;
      BOOST_REQUIRE(session.opened(std::move(reply)).has_value());
      BOOST_TEST(b.asked().empty());
    }
    const auto last = b.asked();
    BOOST_REQUIRE_EQUAL(last.size(), 1u);
    BOOST_TEST(std::get<persistence::release>(last[0]).lease == (leased ? 5u : 0u));
  }
}

BOOST_AUTO_TEST_CASE(a_turn_that_is_not_stored_gives_its_lease_back_at_once) {
  bench b;
  session_part session(b.hub, b);
  session.take(turn_of(b, R"(,"store":false)"), 0);
  BOOST_REQUIRE(session.open({}, b.time.now() + 1h));
  (void)b.asked();
  persistence::session_opened reply;
  reply.lease = 5;
  BOOST_REQUIRE(session.opened(std::move(reply)).has_value());
  BOOST_TEST(std::get<persistence::release>(b.asked().at(0)).lease == 5u);
  BOOST_TEST(!session.is_named());
  session.close();
  BOOST_TEST(b.asked().empty());
}

BOOST_AUTO_TEST_CASE(a_commit_ends_the_lease) {
  bench b;
  session_part session(b.hub, b);
  session.take(turn_of(b, ""), 0);
  BOOST_REQUIRE(session.open({}, b.time.now() + 1h));
  (void)b.asked();
  persistence::session_opened reply;
  reply.lease = 5;
  BOOST_REQUIRE(session.opened(std::move(reply)).has_value());
  session.commit({});
  session.close();
  const auto told = b.asked();
  BOOST_REQUIRE_EQUAL(told.size(), 1u);
  BOOST_TEST(std::get<persistence::commit_turn>(told[0]).lease == 5u);
}

BOOST_AUTO_TEST_CASE(copies_that_no_device_was_asked_for_are_cancelled) {
  bench b;
  session_part session(b.hub, b);
  session.take(std::nullopt, 0);
  auto call = raw_call(1);
  call.request.use_prefix_cache = true;
  BOOST_REQUIRE(session.find_prefix({}, call, 0, b.time.now() + 2s));
  BOOST_TEST(!session.waited_long_for_prefix(b.time.now()));
  BOOST_TEST(session.waited_long_for_prefix(b.time.now() + 2s));
  (void)b.asked();
  persistence::prefix_found reply;
  reply.position = 1;
  reply.keep = {{{1, 7}, 2}};
  session.found(std::move(reply));
  session.close();
  session.close();
  const auto told = b.asked();
  BOOST_REQUIRE_EQUAL(told.size(), 1u);
  const auto& kept = std::get<persistence::state_kept>(told[0]);
  BOOST_TEST((kept.key == persistence::state_key{1, 7}));
  BOOST_TEST(!kept.state);
}

// ---------------------------------------------------------------- client_output

BOOST_AUTO_TEST_CASE(a_stream_begins_once_and_is_kept_alive) {
  fake_clock time;
  const auto out = std::make_shared<test::response_recorder>();
  client_output output(out, {{"X-Request-Id", "req-1"}}, &time);
  const steady_time received = time.now();
  output.add_header("X-Session-State", "new");
  output.keep_alive(time.now(), received, 15s);
  BOOST_TEST(!output.streaming());
  time.advance(15s);
  output.keep_alive(time.now(), received, 15s);
  BOOST_TEST(output.streaming());
  BOOST_TEST(out->text == ": keep-alive\n\n");
  output.begin_stream();
  output.write("");
  output.write("data");
  BOOST_TEST(out->text == ": keep-alive\n\ndata");
  BOOST_TEST(out->header("X-Request-Id") == "req-1");
  BOOST_TEST(out->header("X-Session-State") == "new");
  BOOST_TEST(out->header("Content-Type") == "text/event-stream; charset=utf-8");
}

// ---------------------------------------------------------------- request_reader

namespace {

struct reader_bench : bench, request_reader::client {
  reader_bench() : reader(origin(), context, work, output, *this) {}

  call_origin origin() {
    call_origin of;
    of.received = time.now();
    return of;
  }
  bool on_identified() override { return ++identified > 0; }
  void on_read(parsed_call call) override { read.push_back(std::move(call)); }
  void refuse(const error& why, std::chrono::seconds) override { refused.push_back(why.message); }

  int identified = 0;
  std::vector<parsed_call> read;
  std::vector<std::string> refused;
  call_work work{context, hub, *this, nullptr, "req-1", [](const auto& next) { next(); }};
  client_output output{std::make_shared<test::response_recorder>(), {}, &time};
  request_reader reader;
};

const std::string chat_head = R"({"messages":[{"role":"user","content":"Hi"}])";

}  // namespace

BOOST_AUTO_TEST_CASE(a_body_becomes_a_request) {
  reader_bench b;
  BOOST_TEST(!b.reader.has_body());
  b.reader.read(chat_head + R"(,"session_id":"s"})");
  BOOST_TEST(b.identified == 1);
  BOOST_REQUIRE_EQUAL(b.read.size(), 1u);
  BOOST_TEST(b.read[0].turn.has_value());
  BOOST_TEST(b.reader.origin().model == b.model);
}

BOOST_AUTO_TEST_CASE(a_body_that_is_no_request_is_refused_once) {
  reader_bench b;
  b.reader.read("{");
  BOOST_TEST(b.refused.size() == 1u);
  BOOST_TEST(b.read.empty());
}

BOOST_AUTO_TEST_CASE(a_body_waits_for_its_model) {
  reader_bench b;
  b.context->models->put({{"tiny"}, nullptr, loaded_models::absence::coming}, true);
  b.reader.read(chat_head + "}");
  b.reader.on_tick(b.time.now());
  BOOST_TEST(b.identified == 0);
  b.context->models->put(b.model, true);
  b.reader.on_tick(b.time.now());
  b.reader.on_tick(b.time.now());
  BOOST_TEST(b.read.size() == 1u);
  BOOST_TEST(b.refused.empty());
}

// ---------------------------------------------------------------- phases

BOOST_AUTO_TEST_CASE(phases_only_advance_and_every_phase_may_end) {
  using enum call_phase;
  for (int from = 0; from <= static_cast<int>(ended); ++from) {
    const auto now = static_cast<call_phase>(from);
    BOOST_TEST(may_follow(now, ended) == (now != ended));
    for (int to = 0; to <= from; ++to) BOOST_TEST(!may_follow(now, static_cast<call_phase>(to)));
    if (now != reading)
      BOOST_TEST(!may_follow(reading, now) == (now != opening_session && now != tokenising && now != ended));
  }
  static_assert(may_follow(queued, committing) && !may_follow(opening_session, queued) && !may_follow(reading, queued));
  static_assert(!may_follow(finding_prefix, committing));  // without device work there is nothing to commit
}
