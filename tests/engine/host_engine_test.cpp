// Shows that the worker of a host_engine keeps a device busy: it launches a tick that is queued before it waits for the
// one that runs, and what is lost is what the device did not finish; with a back end that writes down how it is called.
#include "engine/host_engine.hpp"

#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <stdexcept>
#include <thread>

#include "tests/engine/engine_fixture.hpp"

namespace {

using namespace skein;
using namespace skein::engine;

/// A device that completes a tick when it is told so, or when a thread waits for it.
struct watched_device {
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> launched{0}, settled{0};
  std::atomic<std::uint32_t> leaving{0}, coming{0};  // states that stand still
  std::atomic<bool> fails_to_move{false};
  std::array<std::atomic<std::uint64_t>, 8> launched_at_completion{};
  std::uint64_t fails_at_launch = 0, fails_at_completion = 0, throws_at_completion = 0;
};

class watched_backend final : public backend {
 public:
  explicit watched_backend(watched_device& device) : device_(device) {}
  void start(slot_id, const sampling::sampling_params&) override {}
  void restart_sampler(slot_id, const sampling::sampling_params&) override {}
  void copy_state(slot_id, slot_id) override {}
  void clear(slot_id) override {}
  result<void> park(slot_id, parked_sequence&) override { return {}; }
  result<void> unpark(slot_id, const sampling::sampling_params&, const parked_sequence&) override { return {}; }
  result<void> write_state(slot_id, const model::state_view&) override { return {}; }
  result<void> read_state(slot_id, model::state_value&) override { return {}; }
  result<void> launch(const tick_plan&, tick_result& out) override {
    if (out.tick == device_.fails_at_launch) return error{error_kind::unavailable, "launch", {}};
    device_.launched = out.tick;
    return {};
  }
  bool ready() override { return device_.done; }
  result<void> complete(const tick_plan&, tick_result& out) override {
    device_.launched_at_completion[out.tick] = device_.launched.load();
    if (out.tick == device_.fails_at_completion) return error{error_kind::unavailable, "completion", {}};
    if (out.tick == device_.throws_at_completion) throw std::runtime_error("thrown");
    out.rows.clear();
    return {};
  }
  result<states_on_way> move_states() override {
    if (device_.fails_to_move) return error{error_kind::unavailable, "move", {}};
    return states_on_way{device_.leaving, device_.coming};
  }
  result<void> settle() override { return ++device_.settled, result<void>(); }
  result<row_result> sample(slot_id, std::span<const std::uint32_t>) override { return row_result{}; }

 private:
  watched_device& device_;
};

std::unique_ptr<skein::engine::engine> make_watched(watched_device& device) {
  engine_info info;
  info.slots = 2, info.vocab = 4, info.max_tick_rows = 2, info.max_tick_tokens = 2;
  return make_host_engine(info, std::make_unique<watched_backend>(device));
}

void submit(skein::engine::engine& e, int ticks) {
  for (int i = 0; i < ticks; ++i) BOOST_REQUIRE(e.submit({}).has_value());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(host_engine)

BOOST_AUTO_TEST_CASE(launches_the_next_tick_before_it_waits) {
  watched_device device;  // never done by itself: only a wait ends its ticks
  const auto e = make_watched(device);
  submit(*e, 2);
  for (std::uint64_t tick = 1; tick <= 5; ++tick) {
    const auto done = e->collect();
    BOOST_REQUIRE(done.has_value());
    BOOST_TEST((*done)->tick == tick);
    submit(*e, 1);
    BOOST_TEST(device.launched_at_completion[tick] == tick + 1);
  }
}

BOOST_AUTO_TEST_CASE(a_tick_alone_is_complete_when_the_device_says_so) {
  watched_device device;
  const auto e = make_watched(device);
  submit(*e, 1);
  while (device.launched < 1) std::this_thread::yield();
  BOOST_TEST(!e->ready());
  device.done = true;
  BOOST_TEST(e->collect().has_value());
  BOOST_TEST(device.launched_at_completion[1] == 1u);
}

BOOST_AUTO_TEST_CASE(finish_waits_for_ticks_and_then_for_the_rest) {
  watched_device device;
  const auto e = make_watched(device);
  submit(*e, 2);
  BOOST_TEST(e->finish().has_value());
  BOOST_TEST(device.launched_at_completion[2] == 2u);
  BOOST_TEST(device.settled == 1u);
  BOOST_TEST(e->ready());
  BOOST_TEST(e->ticks_in_flight() == 2u);
}

BOOST_AUTO_TEST_CASE(states_are_counted_when_they_have_moved) {
  watched_device device;
  device.leaving = 2, device.coming = 1;
  const auto e = make_watched(device);
  parked_sequence out;
  for (int i = 0; i < 3; ++i) e->park(0, out);
  e->unpark(1, test::greedy(1), out);
  const auto has_moved = [&](std::uint64_t departed, std::uint64_t arrived) {
    const auto now = e->moved();
    BOOST_REQUIRE(now.has_value());
    return now->departed == departed && now->arrived == arrived;
  };
  BOOST_TEST(e->finish().has_value());
  BOOST_TEST(has_moved(1, 0));
  device.done = true;
  submit(*e, 1);  // no tick waits for them
  BOOST_TEST(e->collect().has_value());
  BOOST_TEST(has_moved(1, 0));
  device.leaving = 1;
  while (!has_moved(2, 0)) std::this_thread::yield();
  device.leaving = 0, device.coming = 0;
  while (!has_moved(3, 1)) std::this_thread::yield();
}

BOOST_AUTO_TEST_CASE(a_state_that_does_not_move_loses_the_device) {
  watched_device device;
  device.leaving = 1;
  const auto e = make_watched(device);
  parked_sequence out;
  submit(*e, 1);
  e->park(0, out);
  while (device.launched < 1) std::this_thread::yield();
  device.fails_to_move = true;
  while (!e->ready()) std::this_thread::yield();  // what was launched before is completed
  BOOST_TEST(e->moved().has_value());             // there is a tick to collect
  BOOST_TEST(e->collect().has_value());
  error why;
  while (why.message.empty())
    if (const auto moved = e->moved(); !moved) why = moved.error();
  BOOST_TEST(why.message == "move");
  BOOST_TEST(e->submit({}).error().message == "move");
}

BOOST_AUTO_TEST_CASE(a_loss_leaves_what_was_done_before_it) {
  for (const bool at_launch : {true, false}) {
    watched_device device;
    (at_launch ? device.fails_at_launch : device.fails_at_completion) = 2;
    const auto e = make_watched(device);
    submit(*e, 2);
    BOOST_TEST(e->collect().has_value());
    device.done = true;
    const auto lost = e->collect();
    BOOST_REQUIRE(!lost.has_value());
    BOOST_TEST(lost.error().message == (at_launch ? "launch" : "completion"));
    BOOST_TEST(!e->submit({}).has_value());
  }
}

BOOST_AUTO_TEST_CASE(a_loss_takes_what_runs_behind_it) {
  watched_device device;
  device.throws_at_completion = 1;
  const auto e = make_watched(device);
  submit(*e, 2);
  const auto lost = e->collect();
  BOOST_REQUIRE(!lost.has_value());
  BOOST_TEST(lost.error().message == "the engine failed: thrown");
  BOOST_TEST(device.launched_at_completion[2] == 0u);
  BOOST_TEST(e->finish().error().message == "the engine failed: thrown");
}

BOOST_AUTO_TEST_SUITE_END()
