// The device actor as it runs: its own thread, the fake engine behind it, many senders before it. Every answer must be
// the fake model's text for its prompt; shutdown, a lost device and a destroyed actor must leave no request
// without an answer.
#include "actors/device/device_actor.hpp"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <thread>

#include "engine/fake/fake_engine.hpp"
#include "tests/support/failing_new.hpp"

namespace {

using namespace skein;
using namespace skein::device;
using namespace std::chrono_literals;

/// Collects events of all io threads and lets the test wait for them.
class collector final : public event_sink {
 public:
  void deliver(std::uint32_t, events&& batch) override {
    if (deliveries_.fetch_add(1) + 1 == throws_at_delivery) throw std::bad_alloc();
    const auto ends = [](const event& e) { return std::holds_alternative<row_finished>(e); };
    if (throws_at_end && std::ranges::any_of(batch.items, ends)) {
      throws_at_end = false;
      throw std::bad_alloc();
    }
    const std::lock_guard lock(mutex_);
    for (auto& e : batch.items) std::visit([this](auto& one) { take(one); }, e);
    changed_.notify_all();
  }
  void congestion(std::vector<std::uint8_t>& by_io_thread) const override {
    by_io_thread.assign(2, 0);
    if (in_every_tick) in_every_tick();
  }
  /// On the device thread. Set before the actor starts.
  std::function<void()> in_every_tick;

  /// Waits until `count` requests are over; the limit only ends a test that would hang.
  bool wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&] { return over_.size() >= count; });
  }
  bool wait_for_tokens(request_id id, std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&] { return tokens_[id].size() >= count; });
  }
  std::vector<token_id> tokens(request_id id) {
    const std::lock_guard lock(mutex_);
    return tokens_[id];
  }
  std::size_t count(finish_cause cause) {
    const std::lock_guard lock(mutex_);
    return causes_[cause];
  }
  /// Set before the first delivery; 0: never.
  std::size_t throws_at_delivery = 0;
  /// Throws at the first delivery that has the end of a row. Set before the first delivery.
  bool throws_at_end = false;

  std::size_t answers() {
    const std::lock_guard lock(mutex_);
    return answers_;
  }
  std::size_t rejections() {
    const std::lock_guard lock(mutex_);
    return rejected_;
  }

 private:
  void take(admitted&) {}
  void take(prompt_scored&) {}
  void take(rejected& e) {
    ++rejected_;
    ++answers_;
    over_.insert(e.id);
  }
  void take(token& e) { tokens_[e.id].push_back(e.id_of_token); }
  void take(row_finished& e) {
    ++causes_[e.cause];
    ++answers_;
    over_.insert(e.id);
  }

  std::atomic<std::size_t> deliveries_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<request_id, std::vector<token_id>> tokens_;
  std::map<finish_cause, std::size_t> causes_;
  std::set<request_id> over_;
  std::size_t rejected_ = 0, answers_ = 0;
};

engine::fake_engine_options small_engine() {
  engine::fake_engine_options o;
  o.slots = 4;
  o.max_tick_tokens = 32;
  o.max_tick_rows = 4;
  return o;
}

submit request(request_id id, std::uint32_t budget) {
  submit s;
  s.id = id;
  s.reply_to = static_cast<std::uint32_t>(id % 2);
  s.client = std::to_string(id % 3);
  for (request_id i = 0; i < 5 + id % 40; ++i) s.prompt.push_back(static_cast<token_id>(1 + (id * 31 + i * 7) % 200));
  sampling::sampling_params p;
  p.temperature = 0;
  p.max_tokens = budget;
  s.rows.push_back(p);
  s.queue_deadline = s.total_deadline = real_clock().now() + 10min;
  return s;
}

}  // namespace

BOOST_AUTO_TEST_CASE(many_senders_get_their_own_texts) {
  collector sink;
  const auto options = small_engine();
  device_actor_options settings;
  settings.scheduling.turn_tokens = 8;
  device_actor actor(engine::make_fake_engine(options), settings, sink, real_clock());
  std::vector<std::thread> senders;
  for (request_id thread = 0; thread < 4; ++thread) {
    senders.emplace_back([&, thread] {
      for (request_id i = 0; i < 25; ++i) {
        message m = request(1 + thread * 25 + i, 20);
        while (!actor.inbox().push(m)) std::this_thread::yield();
      }
    });
  }
  for (auto& s : senders) s.join();
  BOOST_REQUIRE(sink.wait_for(100));
  for (request_id id = 1; id <= 100; ++id) {
    const submit s = request(id, 20);
    BOOST_TEST(sink.tokens(id) == engine::fake_text(options.model, s.prompt, s.rows[0]),
               boost::test_tools::per_element());
  }
  BOOST_TEST(actor.counters().generated_tokens > 0u);
}

BOOST_AUTO_TEST_CASE(an_idle_device_owes_no_progress) {
  class : public clock {
   public:
    [[nodiscard]] steady_time now() const override { return steady_time(std::chrono::hours(hour)); }
    std::atomic<int> hour = 1;
  } slow;
  collector sink;
  auto options = small_engine();
  options.tick_latency = 200ms;  // long enough to be looked at before it is over
  device_actor actor(engine::make_fake_engine(options), {}, sink, slow);
  slow.hour = 5;
  submit late = request(1, 1);
  late.queue_deadline = late.total_deadline = steady_time(std::chrono::hours(100));
  BOOST_REQUIRE(actor.inbox().push(std::move(late)));
  while (!actor.counters().busy && actor.counters().finished == 0) std::this_thread::yield();
  BOOST_TEST((duration(actor.counters().last_tick_at) >= std::chrono::hours(5)));
  BOOST_TEST(sink.wait_for(1));
}

BOOST_AUTO_TEST_CASE(shutdown_lets_running_requests_end) {
  collector sink;
  device_actor actor(engine::make_fake_engine(small_engine()), {}, sink, real_clock());
  BOOST_REQUIRE(actor.inbox().push(request(1, 200)));
  BOOST_REQUIRE(sink.wait_for_tokens(1, 1));
  BOOST_REQUIRE(actor.inbox().push_urgent(shutdown{real_clock().now() + 1min}));
  actor.join();
  BOOST_TEST(sink.count(finish_cause::shutdown) == 0u);
  BOOST_TEST(sink.wait_for(1));
  BOOST_TEST(!actor.inbox().push(request(2, 1)));
}

BOOST_AUTO_TEST_CASE(a_destroyed_actor_answers_all_requests) {
  collector sink;
  {
    auto options = small_engine();
    options.tick_latency = 1ms;
    device_actor actor(engine::make_fake_engine(options), {}, sink, real_clock());
    for (request_id id = 1; id <= 30; ++id) BOOST_REQUIRE(actor.inbox().push(request(id, 1u << 30)));
    BOOST_REQUIRE(sink.wait_for_tokens(1, 3));
  }
  BOOST_TEST(sink.wait_for(30));
  BOOST_TEST(sink.count(finish_cause::shutdown) + sink.rejections() + sink.count(finish_cause::stop_id) == 30u);
}

BOOST_AUTO_TEST_CASE(a_lost_device_is_reported_to_all_requests_and_the_supervisor) {
  collector sink;
  auto options = small_engine();
  options.lost_at_tick = 5;
  std::atomic<int> told = 0;
  device_actor actor(engine::make_fake_engine(options), {}, sink, real_clock(), [&](const error&) { ++told; });
  for (request_id id = 1; id <= 10; ++id) BOOST_REQUIRE(actor.inbox().push(request(id, 1000)));
  BOOST_REQUIRE(sink.wait_for(10));
  BOOST_REQUIRE(actor.inbox().push(request(11, 5)));
  BOOST_REQUIRE(sink.wait_for(11));
  BOOST_TEST(told == 1);
  BOOST_TEST(actor.counters().lost.load());
}

BOOST_AUTO_TEST_CASE(an_exception_in_a_tick_is_reported_to_all_requests_and_the_supervisor) {
  collector sink;
  auto options = small_engine();
  options.throws_at_tick = 5;
  std::promise<error> told;
  device_actor actor(engine::make_fake_engine(options), {}, sink, real_clock(),
                     [&](const error& why) { told.set_value(why); });
  for (request_id id = 1; id <= 10; ++id) BOOST_REQUIRE(actor.inbox().push(request(id, 1000)));
  BOOST_REQUIRE(sink.wait_for(10));
  BOOST_TEST(sink.count(finish_cause::device_lost) + sink.rejections() == 10u);
  BOOST_TEST(sink.count(finish_cause::device_lost) > 0u);
  const error why = told.get_future().get();
  BOOST_TEST((why.kind == error_kind::internal));
  BOOST_TEST(why.message == "the engine failed: tick 5 threw on purpose");
}

BOOST_AUTO_TEST_CASE(an_exception_on_the_device_thread_loses_the_device_and_not_the_process) {
  collector sink;
  sink.throws_at_delivery = 8;  // in the middle of the answers
  std::promise<error> told;
  device_actor actor(engine::make_fake_engine(small_engine()), {}, sink, real_clock(),
                     [&](const error& why) { told.set_value(why); });
  for (request_id id = 1; id <= 10; ++id) BOOST_REQUIRE(actor.inbox().push(request(id, 1u << 30)));
  BOOST_REQUIRE(sink.wait_for(10));
  const error why = told.get_future().get();
  BOOST_TEST((why.kind == error_kind::internal));
  BOOST_TEST(why.message.starts_with("the device thread failed: "));
  BOOST_TEST(actor.counters().lost.load());
  BOOST_TEST(sink.count(finish_cause::device_lost) > 0u);
  BOOST_REQUIRE(actor.inbox().push(request(11, 5)));
  BOOST_REQUIRE(sink.wait_for(11));
  BOOST_REQUIRE(actor.inbox().push_urgent(shutdown{real_clock().now()}));
  actor.join();
  BOOST_TEST(actor.counters().ended.load());
}

BOOST_AUTO_TEST_CASE(events_that_the_sink_could_not_take_are_delivered_again) {
  collector sink;
  sink.throws_at_end = true;  // the scheduler has forgotten the request by then
  device_actor actor(engine::make_fake_engine(small_engine()), {}, sink, real_clock(), [](const error&) {});
  BOOST_REQUIRE(actor.inbox().push(request(1, 5)));
  BOOST_REQUIRE(sink.wait_for(1));
  BOOST_TEST(sink.tokens(1).size() == 5u);
  BOOST_TEST(sink.answers() == 1u);
}

BOOST_AUTO_TEST_CASE(without_memory_for_a_request_the_device_is_lost_and_all_are_answered_once) {
  // On the device thread the allocation of very many rows fails, or every one.
  for (const std::size_t fails_from : {std::size_t{40000}, std::size_t{1}}) {
    collector sink;
    std::optional<test::failing_new> no_memory;  // touched by the device thread only
    std::atomic<bool> armed = false, in_force = false;
    sink.in_every_tick = [&] {
      if (!armed) return;
      no_memory.emplace(fails_from);
      in_force = true;
      in_force.notify_all();
    };
    std::atomic<int> told = 0;
    device_actor actor(engine::make_fake_engine(small_engine()), {}, sink, real_clock(), [&](const error&) {
      if (++told < 3) throw std::bad_alloc();
      no_memory.reset();
    });
    BOOST_REQUIRE(actor.inbox().push(request(1, 1u << 30)));
    BOOST_REQUIRE(sink.wait_for_tokens(1, 1));
    armed = true;
    in_force.wait(false);
    submit large = request(2, 5);
    large.rows.resize(1000, large.rows[0]);
    BOOST_REQUIRE(actor.inbox().push(std::move(large)));
    BOOST_REQUIRE(actor.inbox().push(request(3, 5)));
    BOOST_REQUIRE(sink.wait_for(3));
    BOOST_REQUIRE(actor.inbox().push_urgent(shutdown{real_clock().now()}));
    actor.join();
    BOOST_TEST(told == 3);
    BOOST_TEST(actor.counters().lost.load());
    BOOST_TEST(sink.answers() == 3u);
    BOOST_TEST(sink.rejections() == 2u);
  }
}
