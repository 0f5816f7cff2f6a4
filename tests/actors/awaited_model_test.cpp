// Calls that arrive while no model is loaded, stepped by hand: an idle model is loaded once and awaited, but not
// without a password, and no call waits for a model that will not be loaded.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "actors/request/generation/generation_call.hpp"
#include "tests/actors/generation_bench.hpp"

namespace {

using namespace skein;
using namespace skein::request;
using namespace std::chrono_literals;
using absence = loaded_models::absence;
using task = model_change::task;

struct late_model_bench : test::generation_bench {
  late_model_bench() {
    without_model(absence::resting);
    context->change_model = [this](model_change change, const model_changed&) { asked.push_back(change.what); };
  }
  void without_model(absence why) { context->models->put({{"tiny"}, nullptr, why}, true); }
  void ask() { send(R"({"prompt":"x"})", protocol::dialects::completions); }
  void tick() {
    hub.tick(time.now());
    read_mailbox();
  }
  std::vector<task> asked;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_model_that_rests_is_called_once_and_waited_for) {
  late_model_bench b;
  b.ask();
  BOOST_TEST((b.asked == std::vector{task::wake}));
  const auto first = std::move(b.call);
  const auto answer = b.out;
  b.ask();
  b.tick();
  BOOST_TEST(b.asked.size() == 1u);
  BOOST_TEST(b.submitted.empty());
  BOOST_TEST((answer->status == 0u && b.out->status == 0u));

  b.context->models->put(b.model, true);
  b.tick();
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    b.admit(i);
    b.finish(device::finish_cause::budget, 0, i);
  }
  BOOST_TEST(answer->status == 200u);
  BOOST_TEST(b.out->status == 200u);
}

BOOST_AUTO_TEST_CASE(when_the_load_fails_waiting_calls_get_the_error) {
  late_model_bench b;
  b.ask();
  b.without_model(absence::resting);
  b.tick();
  BOOST_TEST(b.out->status == 503u);
  BOOST_TEST(b.has("could not be loaded"));
  b.ask();  // the next one has it tried again
  BOOST_TEST(b.asked.size() == 2u);
}

BOOST_AUTO_TEST_CASE(no_call_waits_for_an_unloaded_model) {
  late_model_bench b;
  b.ask();
  b.context->models->forget("tiny");
  b.tick();
  BOOST_TEST(b.out->status == 503u);
  b.ask();
  BOOST_TEST(b.out->status == 503u);
  BOOST_TEST(b.has("no model is loaded"));
  BOOST_TEST(b.asked.size() == 1u);
}

BOOST_AUTO_TEST_CASE(waiting_has_the_limit_of_the_queue) {
  late_model_bench b;
  b.ask();
  b.time.advance(b.context->settings.queue_timeout());
  b.tick();
  BOOST_TEST(b.out->status == 0u);
  b.time.advance(1ms);
  b.tick();
  BOOST_TEST(b.out->status == 504u);
  b.context->models->put(b.model, true);
  b.tick();
  BOOST_TEST(b.submitted.empty());
}

BOOST_AUTO_TEST_CASE(who_leaves_waits_no_more) {
  late_model_bench b;
  b.ask();
  BOOST_TEST(b.context->memory->held() > 0u);
  b.call->gone("the client has left", 499);
  b.call.reset();
  BOOST_TEST(b.context->memory->held() == 0u);
  b.context->models->put(b.model, true);
  b.tick();
  BOOST_TEST(b.submitted.empty());
}

BOOST_AUTO_TEST_CASE(a_server_that_ends_keeps_no_call_waiting) {
  late_model_bench b;
  b.ask();
  b.context->draining = true;
  b.tick();
  BOOST_TEST(b.out->status == 503u);
  BOOST_TEST(b.has("shutting down"));
}

BOOST_AUTO_TEST_CASE(a_stranger_wakes_nothing) {
  late_model_bench b;
  b.context->settings.server.password = "secret";
  b.send(R"({"prompt":"x","password":"wrong"})", protocol::dialects::completions, false);
  BOOST_TEST(b.out->status == 401u);
  BOOST_TEST(b.asked.empty());
  b.send(R"({"prompt":"x","password":"secret"})", protocol::dialects::completions, false);
  BOOST_TEST(b.out->status == 0u);
  BOOST_TEST(b.asked.size() == 1u);
}
