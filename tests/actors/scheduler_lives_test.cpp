// Seeded lives of sessions, mixtures and other requests: beginnings, copies, texts settled below and above what was
// drawn, kept slots, forgotten owners, cancels, pauses, congestion, preemption, shutdown and lost devices in any order.
// Every token and every state must be the right hash, and every key is answered once.
#include <boost/test/unit_test.hpp>
#include <random>
#include <set>

#include "tests/actors/scheduler_world.hpp"
#include "tests/support/failing_new.hpp"
#include "tests/support/random_cases.hpp"
#include "tests/support/thorough.hpp"

namespace {

using namespace skein;
using namespace skein::test;

/// One seeded life of sessions among other requests.
class random_life {
 public:
  explicit random_life(std::uint64_t seed) : random_(seed), w_(options(random_)) {
    if (random_() % 4) w_.engine.moves_at_once = [this, most = 1 + random_() % 3] { return random_() % (most + 1); };
    w_.engine.forced_max = static_cast<std::uint32_t>(random_() % 5);
  }

  void live() {
    try {
      live_on();
    } catch (const std::bad_alloc&) {
      lose();
    }
  }

 private:
  void live_on() {
    const std::size_t steps = 20 + random_() % 200;
    const std::size_t last = random_() % 4 ? steps : random_() % steps;  // then the device is lost
    for (std::size_t i = 0; i < steps; ++i) {
      if (i == last) return lose();
      if (i == memory_lacks_at_) w_.fails_from = 1 + random_() % 300;
      if (shutdown_at_ == 0 && random_() % 400 == 0) begin_shutdown();
      step();
    }
    w_.fails_from = 0;
    end();
  }

  static scheduler_options options(std::mt19937_64& random) {
    scheduler_options o = small(1 + static_cast<std::uint32_t>(random() % 6));
    o.max_tick_tokens = 1 + static_cast<std::uint32_t>(random() % 20);
    if (random() % 2) o.chunk_tokens = some_chunk(random, o.max_tick_tokens);
    o.max_tick_rows = 1 + static_cast<std::uint32_t>(random() % 8);
    o.turn_tokens = 1 + static_cast<std::uint32_t>(random() % 10);
    o.parked_max = static_cast<std::uint32_t>(random() % 5);
    o.parked_bytes_max = random() % 4 * state_bytes;
    o.copies_max = static_cast<std::uint32_t>(random() % 5);
    o.vram_states_max = static_cast<std::uint32_t>(random() % 7);
    o.undo_bytes_max = random() % 4 * state_bytes;
    if (random() % 2) o.leaving_max = 1 + static_cast<std::uint32_t>(random() % 4);
    if (random() % 2) o.coming_max = 1 + static_cast<std::uint32_t>(random() % 3);
    return o;
  }

  void step() {
    const request_id some = w_.last_id ? 1 + random_() % w_.last_id : 0;
    switch (random_() % 12) {
      case 0:
      case 1: return send();
      case 2:
        if (some && random_() % 3 == 0) w_.cancel(some);
        return;
      case 3:
        if (some) w_.schedule.handle(device::pause{some}, w_.time.now());
        return;
      case 4:
        if (some) w_.schedule.handle(resume{some}, w_.time.now());
        return;
      case 5:
      case 6:
        if (some) settle(some);
        return;
      case 7:
        if (some && random_() % 4 == 0) cancel_row(some);
        return;
      case 8:
        if (random_() % 4 == 0) w_.schedule.handle(forget{random_() % 7}, w_.time.now());
        return;
      default: {
        std::vector<std::uint8_t> congested(3);
        for (auto& c : congested) c = random_() % 8 == 0;
        w_.turn(congested);
      }
    }
  }

  void send() {
    order o{.prompt = random_prompt(random_, 40)};
    o.n = random_() % 4 ? 1 : 1 + static_cast<std::uint32_t>(random_() % 4);
    o.budget = static_cast<std::uint32_t>(random_() % 30);
    o.scored = random_() % 4 == 0;
    o.who = std::string(1, "abc"[random_() % 3]);
    o.patience = std::chrono::milliseconds(1 + random_() % 200);
    if (random_() % 4 == 0) o.life = std::chrono::milliseconds(1 + random_() % 100);
    std::set<std::uint32_t> copies;
    for (auto left = random_() % 4; left > 0; --left)
      copies.insert(1 + static_cast<std::uint32_t>(random_() % o.prompt.size()));
    o.copies.assign(copies.begin(), copies.end());
    o.settles = o.n == 1 && random_() % 3;
    o.may_cut = random_() % 2;
    if (o.n == 1 && random_() % 4 == 0)
      mix_states(o);
    else if (random_() % 3 == 0)
      part_prompt(o);
    switch (random_() % 4) {
      case 0:
        o.beginning = random_();
        o.from = {state_of(o.beginning), {}};
        break;
      case 1:
        if (!w_.kept.empty()) begin_in_slot(o);
        break;
      default: break;
    }
    w_.send(std::move(o));
  }
  void part_prompt(order& o) {
    for (auto left = static_cast<std::uint32_t>(o.prompt.size()); left > 0; left -= o.parts.back().tokens)
      o.parts.push_back({1 + static_cast<std::uint32_t>(random_() % left), random_() % 2 == 0});
  }
  void mix_states(order& o) {
    for (auto left = 1 + random_() % 4; left > 0; --left)
      o.mixture.push_back({random_() % 3 ? random_() : 0, static_cast<float>(1 + random_() % 7)});
    o.scored = o.settles = false;
    o.copies.clear();
  }
  void begin_in_slot(order& o) {
    auto at = w_.kept.begin();
    std::advance(at, random_() % w_.kept.size());
    const asked_state& known = w_.asked.at(*at);
    o.beginning = *known.hash;
    o.from = {random_() % 3 ? state_of(*known.hash) : nullptr, *at};
  }

  void settle(request_id id) {
    client& c = w_.clients[id];
    if (!c.settles_as || !c.admitted || c.cancelled) return;
    const auto& got = c.rows[0].got;
    const auto sampled = static_cast<std::uint32_t>(random_() % 2 ? got.size() : random_() % (got.size() + 1));
    std::vector<token_id> more = random_() % 2 ? std::vector<token_id>{} : random_prompt(random_, 4);
    if (random_() % 4 == 0) {
      const auto want = expected_tokens(c.wish.prompt, 0, c.wish.budget, c.wish.beginning, c.wish.parts);
      more.assign(want.begin() + sampled, want.begin() + std::min<std::size_t>(want.size(), sampled + 3));
    }
    w_.settle(id, sampled, std::move(more));
  }
  void cancel_row(request_id id) {
    const client& c = w_.clients[id];
    const auto row = static_cast<std::uint32_t>(random_() % c.rows.size());
    if (!c.rows[row].got.empty()) w_.schedule.handle(device::cancel_row{id, row}, w_.time.now());
  }

  void begin_shutdown() {
    shutdown_at_ = 1 + random_() % 50;
    w_.schedule.handle(device::shutdown{w_.time.now() + std::chrono::milliseconds(shutdown_at_)}, w_.time.now());
  }

  void lose() {
    w_.lose_device();
    w_.fails_from = 0;
    w_.judge();
    w_.judge_keys();
    for (auto& [id, c] : w_.clients) BOOST_REQUIRE(c.over());
    BOOST_REQUIRE(w_.kept.empty());
  }

  void end() {
    for (request_id id = 1; id <= w_.last_id; ++id) w_.schedule.handle(resume{id}, w_.time.now());
    w_.run_dry();
    w_.read_events();
    while (w_.schedule.counts().requests > 0) {  // rows that wait for their text hold up others
      for (request_id id = 1; id <= w_.last_id; ++id) settle(id);
      w_.run_dry();
    }
    w_.judge();
    w_.judge_keys();
    for (auto& [id, c] : w_.clients) {
      BOOST_REQUIRE(c.over());
      const bool kept_on = c.settled && !c.cancelled && shutdown_at_ == 0 && !c.begins_in_slot_only;
      if (kept_on) BOOST_REQUIRE(w_.settled(id).state);
    }
    BOOST_REQUIRE_EQUAL(w_.schedule.counts().slots_used, 0u);
    BOOST_REQUIRE_EQUAL(w_.schedule.counts().requests, 0u);
    BOOST_REQUIRE_EQUAL(w_.schedule.counts().parked, 0u);
    BOOST_REQUIRE_EQUAL(w_.schedule.counts().undo_bytes, 0u);
    w_.schedule.drop_kept();
    w_.read_events();
    BOOST_REQUIRE(w_.kept.empty());
  }

  std::mt19937_64 random_;
  world w_;
  std::uint64_t shutdown_at_ = 0;
  std::size_t memory_lacks_at_ = random_() % 4 ? ~std::size_t{0} : random_() % 200;  // which is a loss of the device
};

}  // namespace

BOOST_AUTO_TEST_CASE(random_lives_hand_out_the_right_states) {
  const auto given = given_seed();
  const std::uint64_t first = given.value_or(1), last = given.value_or(rounds(3000u));
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    BOOST_TEST_CONTEXT("SKEIN_SEED=" << seed) { random_life(seed).live(); }
  }
}
