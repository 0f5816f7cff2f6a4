#pragma once
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/device/scheduler.hpp"
#include "actors/request/service/api_service.hpp"
#include "engine/engine.hpp"
#include "tests/actors/engine_sessions.hpp"
#include "tests/actors/generation_bench.hpp"
#include "tests/support/thorough.hpp"

namespace skein::test {

/// An engine that the routes can be tried on. Its vocabulary has an end of text, all bytes and `</`.
struct byte_engine {
  static constexpr std::uint32_t vocab = 1200;
  [[nodiscard]] static std::shared_ptr<const tokenizer::vocabulary> words();

  const char* name;
  std::function<std::unique_ptr<skein::engine::engine>(std::uint32_t slots, std::uint32_t forced_max)> make;
  bool emulated = false;  ///< slow

  /// By day an emulated engine has a part of the cases only.
  [[nodiscard]] bool in_part() const { return emulated && !is_nightly(); }
};
/// The fake engine, the CPU's and, where it is built, the emulated GPU's. All with room for sampling::row_limits.
[[nodiscard]] const std::vector<byte_engine>& byte_engines();
/// By day without the emulated GPU's.
[[nodiscard]] const std::vector<byte_engine>& fast_byte_engines();
inline std::ostream& operator<<(std::ostream& out, const byte_engine& line) { return out << line.name; }

/// All routes over a scheduler and a real engine, stepped by hand: a turn is one round of a device thread.
class engine_bench : public generation_bench {
 public:
  struct client {
    std::shared_ptr<response_recorder> out;
    std::unique_ptr<connection::http_call> call;
    std::string sent = {};
  };

  enum class stores : std::uint8_t { none, sessions };

  explicit engine_bench(const byte_engine& with, std::uint32_t slots = 3, stores kept = stores::none,
                        std::uint32_t forced_max = engine::usual_forced_max)
      : with_(with), slots_(slots), keeps_(kept == stores::sessions), forced_max_(forced_max) {
    load("tiny");
    if (!keeps_) return;
    sessions = std::make_unique<engine_sessions>(questions, time, devices_.front()->work->info().state,
                                                 byte_engine::vocab, [this](persistence::session_uid gone) {
                                                   for (const auto& one : devices_)
                                                     one->schedule.handle(device::forget{gone}, time.now());
                                                 });
    context->persistence = &questions;
    context->persistence_counters = &sessions->counters;
  }
  ~engine_bench() {
    clients.clear();
    for (const auto& one : devices_) read(*one);
  }
  engine_bench(const engine_bench&) = delete;  // sequences point into it
  engine_bench& operator=(const engine_bench&) = delete;

  /// Sends a request and keeps its connection open under `name`, which is its X-Request-Id.
  client& open(const std::string& name, const std::string& path, const std::string& body,
               const std::string& method = "POST", const std::string& request_key = "") {
    client& c = clients[name];
    c = {};
    c.sent = path + " " + body;
    c.out = std::make_shared<response_recorder>();
    connection::request_head head;
    head.method = method;
    const auto question = path.find('?');
    head.raw_path = head.path = path.substr(0, question);
    if (question != std::string::npos) head.query = path.substr(question + 1);
    head.fields = {{"x-request-id", name}};
    if (!request_key.empty()) head.fields.emplace_back("idempotency-key", request_key);
    head.remote_address = "127.0.0.1";
    c.call = service.accept(head, c.out);
    if (c.call) c.call->body(body);
    run_posted();
    return c;
  }
  /// What another connection is answered meanwhile: status and body.
  std::string ask(const std::string& path, const std::string& body) {
    const client& c = open("operator", path, body);
    BOOST_TEST(c.out->ended, path);
    const std::string answer = std::to_string(c.out->status) + ' ' + c.out->text;
    clients.erase("operator");
    return answer;
  }
  /// The client hangs up.
  void hang_up(const std::string& name) {
    const auto c = clients.find(name);
    if (c == clients.end()) return;
    if (c->second.call && !c->second.out->ended) c->second.call->gone("client_gone", 499);
    clients.erase(c);
    run_posted();
  }

  /// A new model comes and answers from now on; by force, what runs on the one before ends with an error.
  void load(const std::string& name, bool by_force = false) {
    if (by_force) {
      model->cut_off = true;
      devices_.back()->schedule.handle(device::shutdown{time.now()}, time.now());
    }
    auto& fresh = *devices_.emplace_back(std::make_unique<device_line>(with_.make(slots_, forced_max_), keeps_));
    model = fresh.model;
    model->served.names = {name};
    model->served.card.identity = engine_sessions::identity;
    model->served.vocabulary = byte_engine::words();
    model->served.vocab = byte_engine::vocab;
    context->models->put(model, true);
  }

  /// One more device of the current model, with a copy of its weights.
  void add_device() {
    auto& more = *devices_.emplace_back(std::make_unique<device_line>(with_.make(slots_, forced_max_), keeps_));
    more.id = static_cast<device_id>(model->devices.size());
    model->devices.add(more.inbox, &more.counters);
  }
  [[nodiscard]] std::uint64_t generated_on(device_id device) const {
    return devices_.at(device)->schedule.counts().generated_tokens;
  }
  /// A device of the first model fails in the middle of its work.
  void lose(device_id device) {
    device_line& lost = *devices_.at(device);
    lost.counters.lost = true;
    lost.schedule.lose_device({error_kind::internal, "lost on purpose", ""});
    lost.schedule.end_lost();
    hand_out(lost);
  }

  /// One round of each device thread, and what it brings the io thread.
  void turn() {
    ++turns;
    for (std::size_t i = 0; i < devices_.size(); ++i) turn(*devices_[i]);
    if (sessions) sessions->turn(hub);
    hub.tick(time.now());
    run_posted();
    time.advance(1ms);
  }
  /// Turns until `holds`, or the server has nothing to do.
  template <typename Holds>
  void turn_until(Holds holds) {
    for (int left = 20'000; !holds(); --left) {
      BOOST_REQUIRE(left > 0);
      turn();
    }
  }
  void turn_until_ended(const std::string& name) {
    turn_until([&] { return clients.at(name).out->ended; });
  }
  [[nodiscard]] std::uint64_t sampled(const std::string& name) const {
    for (const auto& each : context->requests->running())
      if (each->what().id == name) return each->generated_tokens;
    return 0;
  }
  [[nodiscard]] std::uint64_t fed(const std::string& name) const {
    for (const auto& each : context->requests->running())
      if (each->what().id == name) return each->fed_tokens;
    return 0;
  }
  void change_limits(device::change_limits limits) { devices_.back()->schedule.handle(std::move(limits), time.now()); }
  /// The settings are read again.
  void reload(const std::function<void(request::service_settings&)>& change) {
    context = std::make_shared<service_context>(*context);
    change(context->settings);
    service.use(context);
  }
  void self_check() const {
    for (const auto& one : devices_) one->schedule.self_check();
    if (sessions) sessions->self_check();
  }
  /// Nothing runs: everything was given back, what was cancelled last soon after.
  void expect_idle() {
    turn_until([&] {
      return std::ranges::all_of(devices_, [](const auto& one) { return one->schedule.counts().requests == 0; });
    });
    self_check();
    for (const auto& one : devices_) {
      BOOST_TEST(one->schedule.counts().requests == 0u);
      BOOST_TEST(one->schedule.counts().slots_used == 0u);
      BOOST_TEST(one->schedule.counts().parked == 0u);
    }
    BOOST_TEST(context->requests->running().empty());
    if (!sessions) return;
    BOOST_TEST(sessions->counters.leases.load() == 0u);
    BOOST_TEST(sessions->counters.waiters.load() == 0u);
  }

  /// The text that a stream's deltas make: thinking and content.
  [[nodiscard]] static std::string text_of(const response_recorder& out) {
    std::string all;
    for (std::size_t at = 0; at < out.text.size();) {
      const auto next = std::min(out.text.find("\"content\":\"", at), out.text.find("\"reasoning_content\":\"", at));
      if (next == std::string::npos) break;
      at = out.text.find(":\"", next) + 2;
      auto end = at;
      while (out.text[end] != '"') end += out.text[end] == '\\' ? 2 : 1;
      all += out.text.substr(at, end - at);
      at = end;
    }
    return all;
  }

  std::uint64_t turns = 0;
  std::map<std::string, client> clients;
  std::unique_ptr<engine_sessions> sessions;  ///< null: without stores::sessions
  request::api_service service{context, hub, [this](std::function<void()> w) { pool.posted.push_back(std::move(w)); }};

 private:
  static device::scheduler_options options(const engine::engine_info& info, bool keeps_states) {
    device::scheduler_options o;
    o.slots = info.slots;
    o.max_tick_tokens = info.max_tick_tokens;
    o.max_tick_rows = info.max_tick_rows;
    o.limits = device::limits_of(info);
    o.state = info.state;
    o.leaving_max = info.leaving_max;
    o.coming_max = info.coming_max;
    o.chunk_tokens = info.chunk_tokens;
    o.keeps_states = keeps_states;
    o.prefill_chunk_tokens = 8;
    o.turn_tokens = 6;
    return o;
  }

  /// A model in memory, with its device.
  struct device_line {
    device_line(std::unique_ptr<skein::engine::engine> with, bool keeps_states)
        : work(std::move(with)),
          schedule(options(work->info(), keeps_states)),
          model(std::make_shared<request::loaded_model>()) {
      counters.slots = work->info().slots;
      model->devices.add(inbox, &counters);
    }
    ~device_line() { work.reset(); }  // its queued commands may still use the scheduler's buffers
    device_line(const device_line&) = delete;
    device_line& operator=(const device_line&) = delete;

    void run(const device::start_slot& c) { work->start(c.slot, *c.params); }
    void run(const device::restart_slot& c) { work->restart_sampler(c.slot, *c.params); }
    void run(const device::write_slot& c) { work->write_state(c.slot, *c.state); }
    void run(const device::clear_slot& c) { work->clear(c.slot); }
    void run(const device::copy_slot& c) { work->copy_state(c.from, c.to); }
    void run(const device::park_slot& c) { work->park(c.slot, *c.to); }
    void run(const device::unpark_slot& c) { work->unpark(c.slot, *c.params, *c.from); }

    device_id id = 0;
    device::mailbox inbox{100, 100};
    device::device_counters counters;
    std::unique_ptr<skein::engine::engine> work;
    device::scheduler schedule;
    std::shared_ptr<request::loaded_model> model;
  };

  void turn(device_line& of) {
    read(of);
    if (of.schedule.lost()) return hand_out(of);
    of.schedule.expire(time.now());
    const auto moved = of.work->moved();
    BOOST_REQUIRE(moved.has_value());
    of.schedule.absorb(*moved);
    const device::tick_work& work = of.schedule.plan(time.now());
    for (const auto& command : work.commands) std::visit([&](const auto& c) { of.run(c); }, command);
    const bool idle = work.plan.rows.empty();
    if (!idle) BOOST_REQUIRE(of.work->submit(work.plan).has_value());
    while (of.work->ticks_in_flight() > (idle ? 0u : 1u)) {
      const auto done = of.work->collect();
      BOOST_REQUIRE(done.has_value());
      of.schedule.absorb(**done, time.now());
    }
    hand_out(of);
  }
  void hand_out(device_line& of) {
    of.schedule.take_events([this](std::uint32_t, device::events&& batch) { hub.dispatch(std::move(batch.items)); });
    of.schedule.take_news([&](const device::state_news& news) {
      if (sessions) sessions->hear(news, of.id);
    });
  }
  void read(device_line& of) {
    std::vector<device::message> messages;
    of.inbox.drain(messages);
    for (auto& m : messages) {
      if (const auto* one = std::get_if<device::submit>(&m)) BOOST_REQUIRE_EQUAL(one->device, of.id);
      std::visit([&](auto&& one) { of.schedule.handle(std::move(one), time.now()); }, std::move(m));
    }
  }
  void run_posted() {
    while (!pool.posted.empty() || !pool.long_work.empty()) {
      for (const auto& each : std::exchange(pool.long_work, {})) each();
      for (const auto& each : std::exchange(pool.posted, {})) each();
    }
  }

  const byte_engine& with_;
  const std::uint32_t slots_;
  const bool keeps_;
  const std::uint32_t forced_max_;
  std::vector<std::unique_ptr<device_line>> devices_;
};

}  // namespace skein::test
