// States through the running device actor, on every engine of the table (fake, toy, reference, CPU, emulated GPU): a
// conversation of many turns gets the same tokens and the same states to the bit, whether each turn goes on in the slot
// that kept its state, with the state from host memory, or by feeding everything again.
#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

#include "actors/device/device_actor.hpp"
#include "engine/fake/fake_engine.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace {

using namespace skein;
using namespace skein::device;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

/// Everything the device says, for a test that waits for parts of it. The limits only end a test that would hang.
class listener final : public event_sink, public state_sink {
 public:
  void deliver(std::uint32_t, events&& batch) override {
    change([&] {
      for (auto& e : batch.items) {
        if (const auto* t = std::get_if<token>(&e)) tokens_[t->id].push_back(t->id_of_token);
        if (const auto* f = std::get_if<row_finished>(&e)) over_.insert(f->id);
        if (const auto* r = std::get_if<rejected>(&e)) over_.insert(r->id);
      }
    });
  }
  void congestion(std::vector<std::uint8_t>& by_io_thread) const override { by_io_thread.assign(1, 0); }
  void state_kept(const state_key& key, state_buffer state) override {
    if (throws_once.exchange(false)) throw std::bad_alloc();
    change([&] {
      ++answers_[key];
      states_[key] = std::move(state);
    });
  }
  void slot_kept(const state_key& key, device_id) override {
    change([&] { kept_.insert(key); });
  }
  void slot_dropped(const state_key& key, device_id) override {
    change([&] { kept_.erase(key); });
  }

  std::vector<token_id> wait_for_end(request_id id) {
    wait([&] { return over_.contains(id); });
    return tokens_[id];
  }
  void wait_for_tokens(request_id id, std::size_t count) {
    wait([&] { return tokens_[id].size() >= count || over_.contains(id); });
  }
  state_buffer wait_for_state(const state_key& key) {
    wait([&] { return answers_.contains(key); });
    return states_[key];
  }
  void wait_for_kept(std::size_t count) {
    wait([&] { return kept_.size() == count; });
  }
  std::map<state_key, int> answers() {
    const std::lock_guard lock(mutex_);
    return answers_;
  }
  std::atomic<bool> throws_once = false;

 private:
  template <typename Change>
  void change(Change change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }
  template <typename Condition>
  void wait(Condition holds) {
    std::unique_lock lock(mutex_);
    BOOST_REQUIRE(changed_.wait_for(lock, 60s, holds));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<request_id, std::vector<token_id>> tokens_;
  std::set<request_id> over_;
  std::map<state_key, int> answers_;
  std::map<state_key, state_buffer> states_;
  std::set<state_key> kept_;
};

submit request(request_id id, std::vector<token_id> prompt, std::uint32_t budget) {
  submit s;
  s.id = id;
  s.client = "a";
  s.prompt = std::move(prompt);
  sampling::sampling_params p;
  p.seed = id;
  p.max_tokens = budget;
  s.rows.push_back(p);
  s.queue_deadline = s.total_deadline = real_clock().now() + 10min;
  return s;
}

/// Sends one prompt after many states and mixtures.
struct asker {
  device_actor& actor;
  listener& all;
  const std::vector<token_id>& prompt;
  request_id& last_id;

  std::vector<token_id> operator()(std::vector<weighted_beginning> mixture, state_buffer from = nullptr) const {
    submit s = request(++last_id, prompt, 12);
    s.rows[0].seed = 1;
    s.from.state = std::move(from);
    s.mixture = std::move(mixture);
    BOOST_REQUIRE(actor.inbox().push(std::move(s)));
    return all.wait_for_end(last_id);
  }
};

enum class way { slot, host, prefill };

constexpr std::uint32_t budget = 9, cut = 4;  // every third turn is cut

struct conversation {
  std::vector<std::vector<token_id>> answers;
  std::vector<model::state_value> states;
  bool operator==(const conversation&) const = default;
};

conversation talk(const test::engine_under_test& line, way how) {
  const request_id turns = line.in_part() ? 9 : 20;
  listener all;
  device_actor actor(line.make({.slots = 3, .max_tick_tokens = 8, .max_tick_rows = 3}), {}, all, real_clock(), {},
                     &all);
  const request_id words = actor.info().vocab - 1;
  conversation got;
  std::vector<token_id> history;
  beginning from;
  for (request_id turn = 1; turn <= turns; ++turn) {
    std::vector<token_id> said;
    for (request_id i = 0; i < 3 + turn % 7; ++i)
      said.push_back(static_cast<token_id>(1 + (turn * 31 + i * 7) % words));
    history.insert(history.end(), said.begin(), said.end());
    submit s = request(turn, how == way::prefill ? history : said, budget);
    s.from = from;
    s.settles_as = {9, turn};
    s.may_cut = true;
    BOOST_REQUIRE(actor.inbox().push(std::move(s)));

    const std::vector<token_id> more = {5, static_cast<token_id>(turn % words)};
    std::uint32_t sampled = 0;
    if (turn % 3 == 0) {
      all.wait_for_tokens(turn, cut + 2);
      sampled = cut;
    } else {
      sampled = static_cast<std::uint32_t>(all.wait_for_end(turn).size());
    }
    BOOST_REQUIRE(actor.inbox().push(settle{turn, sampled, more}));
    auto answer = all.wait_for_end(turn);
    BOOST_REQUIRE_GE(answer.size(), sampled);
    answer.resize(sampled);
    history.insert(history.end(), answer.begin(), answer.end());
    history.insert(history.end(), more.begin(), more.end());

    const state_buffer state = all.wait_for_state({9, turn});
    BOOST_REQUIRE(state);
    got.answers.push_back(std::move(answer));
    got.states.push_back(*state);
    if (how != way::prefill) from = {state, how == way::slot ? state_key{9, turn} : state_key{}};
    if (how == way::host) {
      BOOST_REQUIRE(actor.inbox().push(forget{9}));
      all.wait_for_kept(0);
    }
  }
  BOOST_TEST(actor.counters().kept_hits == (how == way::slot ? turns - 1 : 0));
  BOOST_TEST(actor.counters().settles == turns);
  BOOST_TEST(actor.counters().settles_back > 0u);
  BOOST_REQUIRE(actor.inbox().push_urgent(shutdown{real_clock().now() + 1min}));
  actor.join();
  all.wait_for_kept(0);
  for (const auto& [key, count] : all.answers()) BOOST_TEST(count == 1);
  return got;
}

engine::fake_engine_options small_fake() {
  engine::fake_engine_options o;
  o.slots = 2;
  o.max_tick_tokens = 8;
  o.max_tick_rows = 2;
  return o;
}

}  // namespace

BOOST_DATA_TEST_CASE(a_conversation_is_the_same_however_it_continues, data::make(test::engines_under_test())) {
  const conversation fed = talk(sample, way::prefill);
  BOOST_TEST((talk(sample, way::slot) == fed));
  BOOST_TEST((talk(sample, way::host) == fed));
}

BOOST_DATA_TEST_CASE(copies_inside_a_prompt_are_states_to_begin_with, data::make(test::engines_under_test())) {
  listener all;
  device_actor actor(sample.make({.slots = 2, .max_tick_tokens = 8, .max_tick_rows = 2}), {}, all, real_clock(), {},
                     &all);
  std::vector<token_id> prompt;
  for (token_id t = 1; t <= 30; ++t) prompt.push_back(t * 3 % static_cast<token_id>(actor.info().vocab));
  submit whole = request(1, prompt, 6);
  whole.copies = {{{0, 1}, 3}, {{0, 2}, 16}, {{0, 3}, 29}, {{0, 4}, 30}};
  const sampling::sampling_params params = whole.rows[0];
  BOOST_REQUIRE(actor.inbox().push(std::move(whole)));
  const auto expected = all.wait_for_end(1);
  request_id id = 1;
  for (const auto& [number, position] : {std::pair{1u, 3u}, {2u, 16u}, {3u, 29u}}) {
    submit rest = request(++id, {prompt.begin() + position, prompt.end()}, 6);
    rest.rows[0] = params;
    rest.from.state = all.wait_for_state({0, number});
    rest.copies = {{{1, number}, 30 - position}};
    BOOST_REQUIRE(rest.from.state);
    BOOST_REQUIRE(actor.inbox().push(std::move(rest)));
    BOOST_TEST(all.wait_for_end(id) == expected, boost::test_tools::per_element());
    const state_buffer end = all.wait_for_state({1, number}), same = all.wait_for_state({0, 4});
    BOOST_REQUIRE((end && same));
    BOOST_TEST((*end == *same));
  }
}

BOOST_DATA_TEST_CASE(a_mixture_of_states_samples_as_one, data::make(test::engines_under_test())) {
  listener all;
  device_actor actor(sample.make({.slots = 3, .max_tick_tokens = 8, .max_tick_rows = 3}), {}, all, real_clock(), {},
                     &all);
  const std::vector<token_id> first = {1, 2, 3, 4, 5}, second = {9, 8, 7}, prompt = {6, 6, 11, 12, 3, 4, 5, 20, 21, 22};
  for (const auto& [id, text] : {std::pair{request_id{1}, first}, {2, second}}) {
    submit s = request(id, text, 1);
    s.copies = {{{0, id}, static_cast<std::uint32_t>(text.size())}};
    BOOST_REQUIRE(actor.inbox().push(std::move(s)));
  }
  const state_buffer one = all.wait_for_state({0, 1}), two = all.wait_for_state({0, 2});
  BOOST_REQUIRE((one && two));

  request_id id = 2;
  const asker answer{actor, all, prompt, id};
  const auto of_one = answer({}, one), of_two = answer({}, two);
  BOOST_TEST(of_one != of_two);
  // Halves of one state's logits add up to all of them, to the bit.
  BOOST_TEST(answer({{{one, {}}, 3}, {{one, {}}, 3}}) == of_one, boost::test_tools::per_element());
  BOOST_TEST(answer({{{one, {}}, 0}, {{two, {}}, 2}}) == of_two, boost::test_tools::per_element());
  BOOST_TEST(answer({{{one, {}}, 1e-30f}, {{two, {}}, 1}}) == of_two, boost::test_tools::per_element());
  const auto both = answer({{{one, {}}, 1}, {{two, {}}, 1}});
  BOOST_TEST(both.size() == 12u);
  BOOST_TEST(both == answer({{{one, {}}, 1}, {{two, {}}, 1}}), boost::test_tools::per_element());
  BOOST_TEST(answer({{{one, {}}, 1}, {{two, {}}, 1}, {{nullptr, {}}, 1}}).size() == 12u);
}

BOOST_AUTO_TEST_CASE(a_lost_device_answers_every_key_once) {
  for (const std::uint64_t tick : {1, 2, 3, 7, 12}) {
    listener all;
    auto options = small_fake();
    options.lost_at_tick = tick;
    device_actor actor(engine::make_fake_engine(options), {}, all, real_clock(), {}, &all);
    for (request_id id = 1; id <= 6; ++id) {
      submit s = request(id, std::vector<token_id>(20, 4), 1000);
      s.copies = {{{0, id * 10}, 5}, {{0, id * 10 + 1}, 20}};
      s.settles_as = {id, 1};
      BOOST_REQUIRE(actor.inbox().push(std::move(s)));
    }
    for (request_id id = 1; id <= 6; ++id) BOOST_TEST(!all.wait_for_state({id, 1}));
    BOOST_REQUIRE(actor.inbox().push_urgent(shutdown{real_clock().now()}));
    actor.join();
    const auto answers = all.answers();
    BOOST_TEST(answers.size() == 18u);
    for (const auto& [key, count] : answers) BOOST_TEST(count == 1);
  }
}

BOOST_AUTO_TEST_CASE(a_sink_that_throws_loses_the_device_and_no_key) {
  listener all;
  device_actor actor(engine::make_fake_engine(small_fake()), {}, all, real_clock(), {}, &all);
  all.throws_once = true;
  submit s = request(1, std::vector<token_id>(20, 4), 5);
  s.copies = {{{0, 1}, 5}, {{0, 2}, 20}};
  s.settles_as = {1, 1};
  BOOST_REQUIRE(actor.inbox().push(std::move(s)));
  BOOST_TEST(!all.wait_for_state({1, 1}));
  BOOST_REQUIRE(actor.inbox().push_urgent(shutdown{real_clock().now()}));
  actor.join();
  BOOST_TEST(actor.counters().lost.load());
  const auto answers = all.answers();
  BOOST_TEST(answers.size() == 3u);
  for (const auto& [key, count] : answers) BOOST_TEST(count == 1);
}

BOOST_AUTO_TEST_CASE(a_destroyed_actor_answers_every_key) {
  listener all;
  {
    auto options = small_fake();
    options.tick_latency = 1ms;
    device_actor actor(engine::make_fake_engine(options), {}, all, real_clock(), {}, &all);
    for (request_id id = 1; id <= 8; ++id) {
      submit s = request(id, std::vector<token_id>(20, 4), id % 2 ? 2 : 1u << 30);
      s.copies = {{{0, id}, 20}};
      s.settles_as = {id, 1};
      BOOST_REQUIRE(actor.inbox().push(std::move(s)));
    }
    all.wait_for_tokens(1, 1);
  }
  const auto answers = all.answers();
  BOOST_TEST(answers.size() == 16u);
  for (const auto& [key, count] : answers) BOOST_TEST(count == 1);
}
