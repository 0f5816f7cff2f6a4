// Models that come and go, with fake engines and the test in the place of the main thread: who may begin what and when,
// what a failure leaves behind, and what those who wait are told. The clock of idleness is turned by hand.
#include "actors/supervisor/models/model_keeper.hpp"

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actors/request/call/awaited_model.hpp"
#include "base/clock.hpp"
#include "tests/support/oracle.hpp"

namespace {

using namespace skein;
using namespace std::chrono_literals;
using request::model_change;
using task = model_change::task;
using absence = request::loaded_models::absence;
using supervisor::model_keeper;

struct no_events final : device::event_sink {
  void deliver(std::uint32_t, device::events&&) override {}
  void congestion(std::vector<std::uint8_t>&) const override {}
};
struct no_states final : device::state_sink {
  void state_kept(const device::state_key&, device::state_buffer) override {}
  void slot_kept(const device::state_key&, device_id) override {}
  void slot_dropped(const device::state_key&, device_id) override {}
};

using outcome = std::shared_ptr<std::optional<result<std::string>>>;

struct world {
  explicit world(const std::function<void(config::config&)>& change = [](config::config&) {}) {
    settings->engine.device = "fake";
    settings->engine.slots = 2;
    settings->model.idle_unload_s = 60;
    change(*settings);
    context.time = &time;
    keeper = std::make_unique<model_keeper>(
        main, settings, context,
        model_keeper::ports{{events, states, [this](const error&) { ++losses; }}, known, [this] { ++changes; }});
    context.change_model = [this](model_change what, request::model_changed done) {
      keeper->ask(std::move(what), std::move(done));
    };
    auto opened = supervisor::open_engine(*settings);
    BOOST_REQUIRE(opened.has_value());
    keeper->install(std::move(*opened));
  }
  ~world() { keeper->stop(); }

  [[nodiscard]] request::model_ref current() const { return context.models->current(); }
  [[nodiscard]] absence why_none() const { return context.models->why_none(); }

  /// Runs the main thread until `done`; the limit only ends a test that would hang.
  void run_until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!done()) {
      BOOST_REQUIRE(std::chrono::steady_clock::now() < end);
      main.restart();
      main.run_one_for(100ms);
    }
  }
  outcome ask(task what, const std::string& id = "fake", const std::string& strategy = "", bool force = false) {
    auto heard = send(what, id, strategy, force);
    main.restart();
    main.poll();  // begins, and hears what is refused at once
    return heard;
  }
  /// Asks, but nothing begins yet.
  outcome send(task what, const std::string& id = "fake", const std::string& strategy = "", bool force = false) {
    model_change change;
    change.what = what;
    change.file = id;
    change.by_id = true;
    change.strategy = strategy;
    change.force = force;
    auto heard = std::make_shared<std::optional<result<std::string>>>();
    keeper->ask(std::move(change), [heard](const result<std::string>& r) { heard->emplace(r); });
    return heard;
  }
  [[nodiscard]] bool comes(const std::string& name = "") const {
    return request::model_comes(context, context.models->find(name, true));
  }
  void hear(const outcome& o) {
    run_until([&] { return o->has_value(); });
  }
  void idle() {
    time.advance(24h * 365);  // devices have a clock of their own
    keeper->tick();
  }

  boost::asio::io_context main;
  std::shared_ptr<config::config> settings = std::make_shared<config::config>();
  request::service_context context;
  fake_clock time;
  no_events events;
  no_states states;
  storage::model_table known;
  std::atomic<int> losses = 0;
  int changes = 0;
  std::unique_ptr<model_keeper> keeper;
};

/// Several fake models, which are empty files.
struct shelf : world {
  explicit shelf(
      std::uint32_t resident_max, const std::function<void(config::config&)>& change = [](config::config&) {})
      : world([&](config::config& c) {
          c.model.root = folder();
          c.model.resident_max = resident_max;
          change(c);
        }) {
    time.advance(24h * 365);  // beyond the clock of the devices, so that this one says who was used
  }
  static std::string folder() {
    static const test::temporary_folder made;
    for (const char* name : {"a", "b", "c"})
      std::ofstream(std::filesystem::path(made.path()) / (std::string(name) + ".pth"));
    return made.path();
  }

  [[nodiscard]] request::loaded_models::meant meant(const std::string& name) const {
    return context.models->find(name, true);
  }
  /// Ids of the models in memory, the current one first.
  [[nodiscard]] std::string resident() const {
    std::string ids;
    for (const auto& model : context.models->resident()) ids += (ids.empty() ? "" : " ") + model->id();
    return ids;
  }
  void load(const std::string& id) {
    time.advance(1s);
    hear(ask(task::load, id));
  }
  /// What a request that names it does, and then has: the model.
  request::model_ref use(const std::string& name) {
    time.advance(1s);
    BOOST_TEST((meant(name).model || comes(name)));
    run_until([&] { return meant(name).model || !comes_now(name); });
    return meant(name).model;
  }
  [[nodiscard]] bool comes_now(const std::string& name) const { return meant(name).why == absence::coming; }
};

constexpr const char* fails = "cuda:7 fp16";  // a strategy that can be spelled, on a device that is not there

void replace_first(config::config& c) { c.model.on_switch = "replace"; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_new_model_replaces_one_that_serves_until_no_request_holds_it) {
  world w;
  auto old = w.current();
  const auto heard = w.ask(task::load);
  BOOST_TEST((w.current() == old) == !heard->has_value());  // it serves while the other one is read
  w.hear(heard);
  BOOST_TEST(heard->value().value() == "fake");
  BOOST_TEST(w.current() != old);
  BOOST_TEST(w.changes == 1);
  BOOST_TEST(!old->devices.ended());
  const std::weak_ptr gone(old);
  BOOST_TEST(!gone.expired());
  old.reset();
  w.run_until([&] { return gone.expired(); });
}

BOOST_AUTO_TEST_CASE(by_force_the_old_device_ends_at_once) {
  world w;
  const auto old = w.current();
  w.hear(w.ask(task::load, "fake", "", true));
  BOOST_TEST(old->cut_off);
  w.run_until([&] { return old->devices.ended(); });
}

device::message endless(request_id id, device_id device = 0) {
  device::submit request;
  request.id = id;
  request.device = device;
  request.prompt = {1};
  request.rows.emplace_back();
  request.rows.front().max_tokens = 1'000'000;
  request.queue_deadline = request.total_deadline = steady_time::max();
  return request;
}

void slow(config::config& c) { c.engine.fake_tick_us = 500'000; }

/// Its device computes, and reads its mailbox, which is full, only after that.
void make_busy(world& w, request::loaded_model& model) {
  BOOST_REQUIRE(model.devices[0].inbox->push(endless(1)));
  const auto fill = [&] {
    while (model.devices[0].inbox->push_urgent(device::cancel{99})) {
    }
  };
  w.run_until([&] { return model.devices[0].counters->requests > 0; });
  fill();
  w.run_until([&] { return model.devices[0].inbox->size() == 0; });  // just read; the next tick has begun
  fill();
}

// ---------------------------------------------------------------- several devices

namespace {

void two_devices(config::config& c) { c.engine.device = "fake,fake"; }

/// Ends requests that a test leaves behind.
void close_all(const request::loaded_model& model) { model.devices.shut_down(real_clock().now()); }

}  // namespace

BOOST_AUTO_TEST_CASE(a_model_has_the_devices_of_the_list) {
  world w(two_devices);
  const auto model = w.current();
  BOOST_REQUIRE_EQUAL(model->devices.size(), 2u);
  for (device_id id = 0; id < 2; ++id) {
    BOOST_TEST(model->devices[id].id == id);
    BOOST_TEST(model->devices[id].actor->id() == id);
    BOOST_TEST(model->devices[id].counters->slots.load() == 2u);  // each has its own
  }
  BOOST_TEST(model->served.card.device == "fake, fake");
  BOOST_TEST(model->devices.memory().slots == 4u);
}

BOOST_AUTO_TEST_CASE(a_model_that_is_unloaded_ends_all_its_devices) {
  world w(two_devices);
  const auto old = w.current();
  w.hear(w.ask(task::load));  // the same again
  BOOST_TEST(w.current() != old);
  BOOST_TEST(!old->devices.ended());
  w.ask(task::unload, "", "", true);
  w.run_until([&] { return old->devices.ended(); });
  for (const auto& device : old->devices) BOOST_TEST(device.counters->ended.load());
}

BOOST_AUTO_TEST_CASE(all_devices_hear_of_new_limits) {
  world w([](config::config& c) {
    slow(c);
    two_devices(c);
  });
  const auto model = w.current();
  auto fresh = std::make_shared<config::config>(*w.settings);
  fresh->queue.waiting_max = 1;
  w.keeper->change(fresh);
  for (device_id id = 0; id < 2; ++id) {
    const auto& device = model->devices[id];
    for (request_id request = 1; request <= 6; ++request) BOOST_TEST(device.inbox->push(endless(request, id)));
    w.run_until([&] { return device.counters->rejected >= 3; });  // two have slots, one waits
  }
  BOOST_TEST(w.keeper->requests() == 6u);
  BOOST_TEST(w.keeper->waiting() == 2u);
  close_all(*model);
}

BOOST_AUTO_TEST_CASE(only_the_loss_of_the_last_device_is_a_loss_of_the_model) {
  world w([](config::config& c) {
    two_devices(c);
    c.engine.fake_lost_tick = 3;
    c.engine.fake_faulty_device = 1;
  });
  const auto model = w.current();
  BOOST_TEST(model->devices[1].inbox->push(endless(1, 1)));
  w.run_until([&] { return model->devices[1].lost() && model->devices[1].counters->requests == 0; });
  BOOST_TEST(!model->devices.lost());
  BOOST_TEST(model->devices.memory().slots == 2u);
  BOOST_TEST(model->devices.place(1, 1).id() == 0u);
  BOOST_TEST(w.losses.load() == 0);
}

BOOST_AUTO_TEST_CASE(a_model_without_a_working_device_is_lost) {
  world w([](config::config& c) { c.engine.fake_lost_tick = 3; });
  const auto model = w.current();
  BOOST_TEST(model->devices[0].inbox->push(endless(1)));
  w.run_until([&] { return w.losses == 1; });
  BOOST_TEST(model->devices.lost());
}

BOOST_AUTO_TEST_CASE(by_force_a_device_ends_also_where_its_mailbox_is_full) {
  world w(slow);
  const auto old = w.current();
  make_busy(w, *old);
  w.ask(task::unload, "", "", true);
  w.run_until([&] { return old->devices.ended(); });
}

BOOST_AUTO_TEST_CASE(a_device_whose_mailbox_is_full_hears_of_new_limits_later) {
  world w(slow);
  const auto model = w.current();
  make_busy(w, *model);
  auto fresh = std::make_shared<config::config>(*w.settings);
  fresh->queue.waiting_max = 1;
  w.keeper->change(fresh);
  w.run_until([&] { return model->devices[0].inbox->size() == 0; });
  w.keeper->tick();
  for (request_id id = 2; id <= 6; ++id) BOOST_TEST(model->devices[0].inbox->push(endless(id)));
  w.run_until([&] { return model->devices[0].counters->requests >= 3; });
  BOOST_TEST(model->devices[0].counters->rejected.load() == 3u);  // one has the second slot, one waits
}

BOOST_AUTO_TEST_CASE(what_cannot_be_loaded_changes_nothing) {
  world w;
  const auto old = w.current();
  const auto unknown = w.ask(task::load, "nobody"), unclear = w.ask(task::load, "fake", "what is this");
  BOOST_REQUIRE(unknown->has_value());
  BOOST_TEST((unknown->value().error().kind == error_kind::forbidden));  // model.root is not set
  BOOST_REQUIRE(unclear->has_value());
  BOOST_TEST((unclear->value().error().kind == error_kind::invalid_argument));
  const auto heard = w.send(task::load, "fake", fails);  // the next one comes while it is read, however short that is
  const auto second = w.ask(task::load);
  BOOST_REQUIRE(second->has_value());
  BOOST_TEST((second->value().error().kind == error_kind::conflict));
  w.hear(heard);
  BOOST_TEST(!heard->value());
  BOOST_TEST(w.current() == old);
  BOOST_TEST(!w.context.models->loading());
}

BOOST_AUTO_TEST_CASE(the_old_model_goes_first_where_both_do_not_fit) {
  world w(replace_first);
  auto old = w.current();
  const auto heard = w.ask(task::load);
  BOOST_TEST(w.current() == nullptr);
  BOOST_TEST((w.why_none() == absence::coming));
  BOOST_TEST(w.comes());
  BOOST_TEST(w.context.models->loading()->percent == 0u);
  for (int i = 0; i < 20; ++i) w.main.run_one_for(10ms);
  BOOST_TEST(!w.keeper->loading());  // a request runs on the old one
  BOOST_TEST((w.ask(task::load)->value().error().kind == error_kind::conflict));
  BOOST_TEST(w.changes == 0);
  old.reset();
  w.hear(heard);
  BOOST_TEST(heard->value().value() == "fake");
  BOOST_TEST(w.current() != nullptr);
  BOOST_TEST(w.changes == 1);
}

BOOST_AUTO_TEST_CASE(an_operator_need_not_wait_for_who_holds_the_old_model) {
  world w(replace_first);
  const auto old = w.current();
  const auto heard = w.ask(task::load);
  w.ask(task::unload, "", "", true);
  BOOST_TEST(old->cut_off);
  w.run_until([&] { return old->devices.ended(); });
  w.hear(heard);
  BOOST_TEST(w.current() != nullptr);
}

BOOST_AUTO_TEST_CASE(a_load_that_fails_brings_the_old_model_back_as_it_was) {
  world w(replace_first);
  BOOST_REQUIRE(w.current()->tuned.put({"poet", "identity", nullptr, {}, {}}, 8).has_value());
  const auto heard = w.ask(task::load, "fake", fails);
  w.hear(heard);
  BOOST_TEST(!heard->value());
  w.run_until([&] { return w.current() != nullptr; });
  BOOST_TEST(w.current()->tuned.all()->size() == 1u);
  BOOST_TEST(w.changes > 0);
  w.hear(w.ask(task::load));  // a model that is loaded by request starts without them
  BOOST_TEST(w.current()->tuned.all()->empty());
}

BOOST_AUTO_TEST_CASE(while_models_take_turns_a_request_always_finds_one_or_one_that_comes) {
  for (const bool others : {false, true}) {
    shelf w(1, replace_first);
    std::atomic<bool> ends{false};
    std::uint64_t looks = 0, in_vain = 0;
    std::thread requests([&] {
      for (; !ends; ++looks) {
        const auto meant = w.context.models->find("", false);
        if (!meant.model && meant.why != absence::coming) ++in_vain;
      }
    });
    for (int i = 0; i < 40; ++i) {
      const char* const id = !others ? "fake" : i % 2 == 0 ? "a" : "b";
      w.hear(w.ask(task::load, id, i % 4 == 3 ? fails : ""));
      w.run_until([&] { return w.context.models->resident().size() == 1; });
    }
    ends = true;
    requests.join();
    BOOST_TEST(looks > 0u);
    BOOST_TEST(in_vain == 0u);
  }
}

BOOST_AUTO_TEST_CASE(an_unused_model_is_unloaded_and_loaded_again_with_its_states) {
  world w;
  BOOST_REQUIRE(w.current()->tuned.put({"poet", "identity", nullptr, {}, {}}, 8).has_value());
  auto held = w.current();
  w.idle();
  BOOST_TEST(w.current() == held);  // a request runs on it
  held.reset();
  w.keeper->tick();
  BOOST_TEST(w.current() != nullptr);  // a request ran just now
  w.idle();
  BOOST_TEST(w.current() == nullptr);
  BOOST_TEST((w.why_none() == absence::resting));

  BOOST_TEST(w.comes());
  BOOST_TEST(w.comes());
  w.run_until([&] { return w.current() != nullptr; });
  BOOST_TEST(w.current()->tuned.all()->size() == 1u);
  w.run_until([&] { return w.changes == 1; });
}

BOOST_AUTO_TEST_CASE(a_model_that_was_unloaded_stays_away) {
  world w;
  const auto heard = w.ask(task::unload, "");
  BOOST_TEST(heard->value().has_value());
  BOOST_TEST(w.current() == nullptr);
  BOOST_TEST(!w.comes());
  w.ask(task::wake, "nobody");
  BOOST_TEST(!w.keeper->loading());
  BOOST_TEST(w.current() == nullptr);
}

BOOST_AUTO_TEST_CASE(when_it_cannot_come_back_those_who_wait_hear_so_and_the_next_may_try) {
  world w;
  w.settings->model.vocab = "no such file";
  w.idle();
  BOOST_TEST(w.comes());
  w.run_until([&] { return w.changes == 1; });
  BOOST_TEST(w.current() == nullptr);
  BOOST_TEST((w.why_none() == absence::resting));
  w.settings->model.vocab.clear();
  BOOST_TEST(w.comes());
  w.run_until([&] { return w.current() != nullptr; });
}

BOOST_AUTO_TEST_CASE(what_is_about_to_go_gives_its_memory_first) {
  world w;
  std::weak_ptr<request::loaded_model> old = w.current();
  w.ask(task::unload, "");
  const auto heard = w.ask(task::load);
  w.run_until([&] { return w.keeper->loading() || heard->has_value(); });
  BOOST_TEST(old.expired());
  w.hear(heard);
  BOOST_TEST(w.current() != nullptr);
}

BOOST_AUTO_TEST_CASE(a_server_that_ends_changes_nothing_any_more) {
  world w;
  w.context.draining = true;
  BOOST_TEST((w.ask(task::load)->value().error().kind == error_kind::unavailable));
  w.keeper->shut_down(std::chrono::steady_clock::now());
  w.run_until([&] { return w.keeper->ended(); });
}

BOOST_AUTO_TEST_SUITE(several_in_memory)

BOOST_AUTO_TEST_CASE(a_request_has_the_model_loaded_that_it_names_and_the_current_one_stays) {
  shelf w(2);
  BOOST_TEST(w.use("b")->id() == "b");
  BOOST_TEST(w.resident() == "fake b");
  BOOST_TEST(w.meant("").id == "fake");
  BOOST_TEST(w.meant("rwkv7").id == "fake");  // a name of all
  BOOST_TEST(w.meant("nobody").id == "fake");
  BOOST_TEST(w.meant("b poet").id == "fake");
  BOOST_REQUIRE(w.meant("b").model->tuned.put({"poet", "identity", nullptr, {}, {}}, 8).has_value());
  BOOST_TEST(w.meant("b poet").id == "b");
  BOOST_TEST(w.meant("poet").id == "b");
  BOOST_TEST((w.context.models->find("c", true).why == absence::available));
  BOOST_TEST(w.context.models->find("c", false).id == "fake");  // who may load none means the current one
  w.load("c");
  BOOST_TEST(w.meant("").id == "c");  // who has it loaded wants it current
}

BOOST_AUTO_TEST_CASE(the_least_recently_used_model_is_unloaded_and_restored) {
  shelf w(2);
  BOOST_TEST(w.use("b")->id() == "b");
  BOOST_REQUIRE(w.meant("fake").model->tuned.put({"poet", "identity", nullptr, {}, {}}, 8).has_value());
  BOOST_TEST(w.use("c")->id() == "c");
  BOOST_TEST(w.resident() == "b c");
  BOOST_TEST((w.meant("").id == "fake" && w.meant("").why == absence::resting));  // it stays the current one
  BOOST_TEST((w.meant("fake poet").why == absence::resting));
  BOOST_TEST(w.use("")->tuned.all()->size() == 1u);
  BOOST_TEST(w.resident() == "fake c");
  BOOST_TEST((w.meant("b").why == absence::resting));
}

BOOST_AUTO_TEST_CASE(who_is_idle_goes_before_who_is_not_and_that_one_ends_its_work) {
  shelf w(2);
  const auto held = w.meant("fake").model;
  BOOST_TEST(w.use("b")->id() == "b");
  BOOST_TEST(w.use("c")->id() == "c");
  BOOST_TEST(w.resident() == "fake c");
  auto also_held = w.meant("c").model;
  BOOST_TEST(w.use("b")->id() == "b");  // both are in use: one has to
  BOOST_TEST(w.resident() == "b c");
  for (int i = 0; i < 20; ++i) w.main.run_one_for(10ms);
  BOOST_TEST(!held->devices.ended());
}

BOOST_AUTO_TEST_CASE(those_who_wait_for_several_get_one_after_another) {
  shelf w(3);
  for (const char* id : {"a", "b", "a", "b"}) BOOST_TEST(w.comes(id));
  w.run_until([&] { return w.meant("a").model && w.meant("b").model; });
  BOOST_TEST(w.resident() == "fake a b");
  BOOST_TEST(w.changes == 2);
}

BOOST_AUTO_TEST_CASE(a_name_whose_load_fails_is_dropped_and_disturbs_no_request) {
  shelf w(2);
  w.settings->model.vocab = "no such file";
  BOOST_TEST(w.use("b") == nullptr);
  BOOST_TEST(w.resident() == "fake");
  BOOST_TEST((w.meant("b").why == absence::available));
  w.settings->model.vocab.clear();
  BOOST_TEST(w.use("b")->id() == "b");
}

BOOST_AUTO_TEST_CASE(where_one_too_many_does_not_fit_the_least_used_goes_first_and_comes_back_when_the_load_fails) {
  shelf w(2, replace_first);
  BOOST_TEST(w.use("b")->id() == "b");
  BOOST_TEST(w.resident() == "fake b");  // there was room
  const auto held = w.meant("fake").model;
  const auto heard = w.ask(task::load, "c");
  BOOST_TEST(w.resident() == "fake");
  BOOST_TEST(w.comes_now("c"));
  BOOST_TEST((w.meant("").id == "c"));  // who names none waits for what is to be current
  w.hear(heard);
  BOOST_TEST(w.resident() == "c fake");

  w.time.advance(1s);
  BOOST_TEST((w.meant("fake").model == held));
  const auto broken = w.ask(task::load, "a", fails);
  BOOST_TEST(w.resident() == "fake");
  w.hear(broken);
  BOOST_TEST(!broken->value());
  w.run_until([&] { return w.meant("c").model != nullptr; });
  BOOST_TEST(w.resident() == "c fake");
  BOOST_TEST(w.meant("").id == "c");
}

BOOST_AUTO_TEST_CASE(one_or_all_are_unloaded) {
  shelf w(3);
  for (const char* id : {"a", "b"}) BOOST_TEST(w.use(id)->id() == id);
  BOOST_TEST((w.ask(task::unload, "nobody")->value().error().kind == error_kind::not_found));
  BOOST_TEST(w.ask(task::unload, "fake")->value().has_value());
  BOOST_TEST(w.resident() == "b a");  // the one used last is current now
  BOOST_TEST((w.meant("fake").why == absence::available));
  BOOST_TEST(w.ask(task::unload, "")->value().has_value());
  BOOST_TEST(w.resident().empty());
  BOOST_TEST((w.meant("").why == absence::unloaded));
  BOOST_TEST(!w.comes());
  BOOST_TEST(w.use("a")->id() == "a");
  BOOST_TEST(w.meant("").id == "a");
}

BOOST_AUTO_TEST_CASE(each_unused_model_is_unloaded) {
  shelf w(2);
  auto held = w.use("b");
  w.idle();
  BOOST_TEST(w.resident() == "b");
  held.reset();
  w.idle();
  BOOST_TEST(w.resident().empty());
  BOOST_TEST((w.meant("b").why == absence::resting));
  BOOST_TEST(w.use("b")->id() == "b");
  BOOST_TEST(w.resident() == "b");
}

BOOST_AUTO_TEST_CASE(only_some_of_those_that_rest_are_known) {
  shelf w(2, [](config::config& c) { c.model.resting_max = 1; });
  for (const char* id : {"a", "b", "c"}) w.load(id);
  BOOST_TEST(w.resident() == "c b");
  BOOST_TEST((w.meant("a").why == absence::resting));
  BOOST_TEST((w.meant("fake").why == absence::available));
  BOOST_TEST(w.context.models->find("fake", false).id == "c");
}

BOOST_AUTO_TEST_CASE(with_room_for_one_names_load_nothing) {
  shelf w(1);
  BOOST_TEST((w.meant("b").id == "fake" && w.meant("b").model));
  w.load("b");
  BOOST_TEST(w.resident() == "b");
  BOOST_TEST(w.meant("fake").id == "b");
  BOOST_TEST(!w.context.models->may_choose());
}

BOOST_AUTO_TEST_SUITE_END()
