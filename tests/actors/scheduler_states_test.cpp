// States that come and go: sequences that begin with one, copies of what a prompt made of it, settled states and the
// slots that keep them; stepped by hand against the model of an engine (scheduler_world). Every state that the sink
// gets must be the hash of exactly the tokens that it stands for, and every key is answered once.
#include <boost/test/unit_test.hpp>

#include "tests/actors/scheduler_world.hpp"
#include "tests/support/random_cases.hpp"

namespace {

using namespace skein;
using namespace skein::test;

device::beginning begin_with(std::uint64_t hash) { return {state_of(hash), {}}; }

/// Runs until the row has so many tokens.
void run_until(world& w, request_id id, std::size_t tokens) {
  for (int i = 0; i < 2000 && w.clients[id].rows[0].got.size() < tokens; ++i) w.turn();
  BOOST_REQUIRE_EQUAL(w.clients[id].rows[0].got.size(), tokens);
}

}  // namespace

BOOST_AUTO_TEST_CASE(sequences_begin_with_a_state) {
  world w(small(2));
  const auto one = w.send({.prompt = {1, 2, 3}, .beginning = 77, .from = begin_with(77)});
  const auto rows = w.send({.prompt = {4, 5}, .n = 5, .beginning = 88, .from = begin_with(88)});
  const auto short_rows = w.send({.prompt = {6}, .n = 3, .beginning = 99, .from = begin_with(99)});
  w.run_dry();
  w.judge();
  for (const auto id : {one, rows, short_rows}) BOOST_TEST(w.clients[id].over());
}

BOOST_AUTO_TEST_CASE(a_state_of_another_size_is_rejected) {
  world w(small(2));
  const auto id = w.send({.prompt = {1},
                          .from = {std::make_shared<const std::vector<float>>(state_floats + 1), {}},
                          .copies = {1},
                          .settles = true});
  w.run_dry();
  BOOST_TEST((w.clients[id].refused == error_kind::internal));
  w.judge_keys();
}

BOOST_AUTO_TEST_CASE(copies_are_taken_where_they_are_wanted) {
  world w(small(2));
  std::vector<token_id> prompt(40);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<token_id>(i);
  w.send({.prompt = prompt, .beginning = 5, .from = begin_with(5), .copies = {1, 2, 16, 17, 39, 40, 40}});
  w.send({.prompt = prompt, .n = 3, .copies = {3, 39, 40}});
  w.send({.prompt = prompt, .budget = 0, .copies = {40}});
  w.run_dry();
  w.judge();
  w.judge_keys();
  for (const auto& [key, a] : w.asked) BOOST_TEST(a.state != nullptr);
  BOOST_TEST(w.schedule.counts().copies_taken == 11u);
  BOOST_TEST(w.schedule.counts().copies_refused == 0u);
}

BOOST_AUTO_TEST_CASE(copies_above_their_ceiling_are_refused_at_once) {
  scheduler_options o = small(4);
  o.copies_max = 2;
  world w(o);
  for (int i = 0; i < 4; ++i) w.send({.prompt = {1, 2}, .copies = {2}});
  w.run_dry();
  w.judge_keys();
  std::size_t taken = 0;
  for (const auto& [key, a] : w.asked) taken += a.state != nullptr;
  BOOST_TEST(taken == 2u);
  BOOST_TEST(w.schedule.counts().copies_refused == 2u);
}

BOOST_AUTO_TEST_CASE(a_position_outside_the_prompt_is_answered_with_nothing) {
  world w(small(1));
  submit s;
  s.id = 1;
  s.reply_to = 1;
  s.prompt = {1, 2};
  s.rows.resize(1);
  s.rows[0].max_tokens = 2;
  s.queue_deadline = s.total_deadline = w.time.now() + 1h;
  s.copies = {{w.ask(0, 0), 0}, {w.ask(0, 0), 3}};
  w.clients[1].rows.resize(1);
  w.clients[1].wish = {.prompt = {1, 2}, .budget = 2};
  w.schedule.handle(std::move(s), w.time.now());
  w.run_dry();
  w.judge();
  w.judge_keys();
}

BOOST_AUTO_TEST_CASE(a_cancelled_prompt_answers_for_its_copies) {
  world w(small(1));
  const auto id = w.send({.prompt = std::vector<token_id>(100, 3), .copies = {5, 90}});
  const auto queued = w.send({.prompt = {1}, .copies = {1}, .settles = true});
  for (int i = 0; i < 3; ++i) w.turn();
  w.cancel(id);
  w.cancel(queued);
  w.run_dry();
  w.judge_keys();
  std::size_t taken = 0;
  for (const auto& [key, a] : w.asked) taken += a.state != nullptr;
  BOOST_TEST(taken == 1u);
}

BOOST_AUTO_TEST_CASE(a_row_that_is_over_is_settled) {
  for (const std::uint32_t budget : {0u, 1u, 6u, endless}) {
    world w(small(2));
    const auto id = w.send({.prompt = {1, 2, 3}, .budget = budget, .settles = true});
    w.run_dry();
    BOOST_REQUIRE(w.clients[id].over());
    BOOST_TEST(w.schedule.counts().slots_used == 1u);  // waits for its text
    w.settle(id, static_cast<std::uint32_t>(w.clients[id].rows[0].got.size()), {10, 11});
    w.run_dry();
    w.judge();
    w.judge_keys();
    BOOST_TEST(w.settled(id).state != nullptr);
    BOOST_TEST(w.schedule.counts().settles == 1u);
    BOOST_TEST(w.schedule.counts().settles_back == 0u);
    BOOST_TEST(w.schedule.counts().slots_used == 0u);
    BOOST_TEST(w.schedule.counts().requests == 0u);
    BOOST_TEST(w.kept.contains(w.clients[id].settles_as));
  }
}

BOOST_AUTO_TEST_CASE(a_text_cut_below_what_was_swallowed_goes_back) {
  for (const bool may_cut : {true, false})
    for (const std::size_t undo_states : {std::size_t{0}, std::size_t{1}}) {
      scheduler_options o = small(2);
      o.undo_bytes_max = undo_states * state_bytes;
      world w(o);
      const auto id = w.send({.prompt = endless_prompt(),
                              .budget = endless,
                              .beginning = 9,
                              .from = begin_with(9),
                              .settles = true,
                              .may_cut = may_cut});
      run_until(w, id, 12);
      BOOST_TEST(w.schedule.counts().undo_bytes == (may_cut ? undo_states * state_bytes : 0u));
      w.settle(id, 7, {500});
      w.read_events();
      BOOST_TEST((w.clients[id].rows[0].end == finish_cause::cancelled));  // at once
      w.run_dry();
      w.judge();
      w.judge_keys();
      BOOST_TEST(w.settled(id).state != nullptr);
      BOOST_TEST(w.schedule.counts().settles_back == 1u);
      BOOST_TEST(w.schedule.counts().undo_bytes == 0u);
    }
}

BOOST_AUTO_TEST_CASE(what_was_swallowed_and_is_in_the_text_stays) {
  world w(small(1));
  const auto id = w.send({.prompt = endless_prompt(), .budget = endless, .settles = true});
  run_until(w, id, 12);
  const auto& got = w.clients[id].rows[0].got;
  w.settle(id, 8, {got.begin() + 8, got.end()});  // the same tokens, said otherwise
  w.run_dry();
  w.judge_keys();
  BOOST_TEST(w.settled(id).state != nullptr);
  BOOST_TEST(w.schedule.counts().settles_back == 0u);
}

BOOST_AUTO_TEST_CASE(a_cut_to_nothing_settles_the_prompt) {
  world w(small(1));
  const auto id = w.send({.prompt = endless_prompt(), .budget = endless, .settles = true});
  run_until(w, id, 5);
  w.settle(id, 0);
  w.settle(id, 3);  // a second one is ignored
  w.run_dry();
  w.judge_keys();
  BOOST_TEST(w.settled(id).state != nullptr);
}

BOOST_AUTO_TEST_CASE(a_text_decided_before_the_prompt_was_fed_is_settled_too) {
  world w(small(1));
  const auto id = w.send({.prompt = std::vector<token_id>(60, 4), .copies = {30, 60}, .settles = true});
  w.turn();
  w.turn();
  w.settle(id, 0, {8, 9});
  w.run_dry();
  w.judge_keys();
  for (const auto& [key, a] : w.asked) BOOST_TEST(a.state != nullptr);
}

BOOST_AUTO_TEST_CASE(a_parked_row_is_settled) {
  world w(small(1));
  const auto id = w.send({.prompt = endless_prompt(), .budget = endless, .who = "a", .settles = true});
  run_until(w, id, 4);
  w.schedule.handle(device::pause{id}, w.time.now());
  const auto other = w.send({.prompt = endless_prompt(), .budget = 4, .who = "b"});
  w.run_dry();
  BOOST_TEST(w.schedule.counts().parked == 1u);
  BOOST_TEST(w.clients[other].over());
  w.settle(id, 3, {1});  // though its reader is slow
  w.run_dry();
  w.judge();
  w.judge_keys();
  BOOST_TEST(w.settled(id).state != nullptr);
  BOOST_TEST(w.schedule.counts().parked == 0u);
}

BOOST_AUTO_TEST_CASE(a_row_that_ran_out_of_time_waits_for_its_text) {
  world w(small(1));
  const auto id = w.send({.prompt = endless_prompt(), .budget = endless, .settles = true, .life = 10ms});
  for (int i = 0; i < 20; ++i) w.turn();
  BOOST_TEST((w.clients[id].rows[0].end == finish_cause::timeout));
  BOOST_TEST(w.schedule.counts().requests == 1u);
  w.settle(id, static_cast<std::uint32_t>(w.clients[id].rows[0].got.size()));
  w.run_dry();
  w.judge_keys();
  BOOST_TEST(w.settled(id).state != nullptr);
  BOOST_TEST(w.schedule.counts().settles_back == 0u);
}

BOOST_AUTO_TEST_CASE(a_cancel_ends_the_wait_for_a_text) {
  world w(small(1));
  const auto id = w.send({.prompt = {1}, .budget = 3, .settles = true});
  w.run_dry();
  w.cancel(id);
  w.run_dry();
  w.judge_keys();
  BOOST_TEST(w.settled(id).state == nullptr);
  BOOST_TEST(w.schedule.counts().slots_used == 0u);
  w.settle(id, 0);  // late, and harmless
}

BOOST_AUTO_TEST_CASE(shutdown_waits_for_settling_until_its_deadline) {
  for (const bool in_time : {true, false}) {
    world w(small(1));
    const auto id = w.send({.prompt = {1}, .budget = 3, .settles = true});
    w.run_dry();
    w.schedule.handle(device::shutdown{w.time.now() + 1s}, w.time.now());
    w.run_dry();
    BOOST_TEST(!w.schedule.finished());
    if (in_time)
      w.settle(id, 1);
    else
      w.time.advance(2s);
    w.run_dry();
    BOOST_TEST(w.schedule.finished());
    w.judge_keys();
    BOOST_TEST((w.settled(id).state != nullptr) == in_time);
  }
}

BOOST_AUTO_TEST_CASE(without_a_sink_nothing_waits) {
  scheduler_options o = small(1);
  o.keeps_states = false;
  world w(o);
  const auto ended = w.send({.prompt = {1}, .budget = 3, .copies = {1}, .settles = true});
  w.run_dry();
  BOOST_TEST(w.schedule.counts().requests == 0u);
  const auto cut = w.send({.prompt = endless_prompt(), .budget = endless, .settles = true});
  run_until(w, cut, 4);
  w.settle(cut, 2);  // stands for cancel_row
  w.run_dry();
  BOOST_TEST(w.clients[ended].over());
  BOOST_TEST((w.clients[cut].rows[0].end == finish_cause::cancelled));
  BOOST_TEST(w.schedule.counts().slots_kept == 0u);
  for (const auto& [key, a] : w.asked) BOOST_TEST(!a.answered);
}

BOOST_AUTO_TEST_CASE(a_kept_slot_is_taken_up_without_a_copy) {
  world w(small(3));
  std::vector<token_id> whole = {1, 2, 3};
  std::uint64_t hash = 0;
  device::beginning from;
  for (int turn = 0; turn < 20; ++turn) {
    const auto id = w.send({.prompt = whole, .budget = 4, .beginning = hash, .from = from, .settles = true});
    w.run_dry();
    w.settle(id, static_cast<std::uint32_t>(w.clients[id].rows[0].got.size()));
    w.run_dry();
    const asked_state& settled = w.settled(id);
    BOOST_REQUIRE(settled.state);
    BOOST_TEST(w.kept.size() == 1u);
    hash = *settled.hash;
    from = {turn % 2 ? settled.state : nullptr, w.clients[id].settles_as};  // the slot has it, whoever else does
    whole = {static_cast<token_id>(turn)};
  }
  w.judge();
  BOOST_TEST(w.schedule.counts().kept_hits == 19u);
}

BOOST_AUTO_TEST_CASE(the_state_kept_longest_goes_first) {
  scheduler_options o = small(3);
  o.vram_states_max = 2;
  world w(o);
  std::vector<request_id> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(w.send({.prompt = {1, static_cast<token_id>(i)}, .budget = 2, .settles = true}));
    w.run_dry();
    w.settle(ids.back(), 1);
    w.run_dry();
  }
  const auto key = [&](int i) { return w.clients[ids[static_cast<std::size_t>(i)]].settles_as; };
  BOOST_TEST((w.kept == std::set<state_key>{key(1), key(2)}));
  const auto others = [&](int n) {
    for (int i = 0; i < n; ++i) w.send({.prompt = endless_prompt(), .budget = endless});
    w.turn();
  };
  others(1);  // there is an empty slot
  BOOST_TEST(w.kept.size() == 2u);
  others(1);
  BOOST_TEST((w.kept == std::set<state_key>{key(2)}));
  const auto gone = w.send({.prompt = {1}, .from = {nullptr, key(1)}, .settles = true});
  w.turn();
  BOOST_TEST((w.clients[gone].refused == error_kind::unavailable));
  BOOST_TEST(w.asked.at(w.clients[gone].settles_as).answered);
}

BOOST_AUTO_TEST_CASE(a_forgotten_owner_leaves_nothing_in_slots) {
  world w(small(4));
  std::vector<request_id> ids;  // owners 2, 3, 4 and 5
  for (int i = 0; i < 4; ++i) {
    ids.push_back(w.send({.prompt = {1, static_cast<token_id>(i)}, .budget = 2, .settles = true}));
  }
  w.run_dry();
  for (int i = 0; i < 3; ++i) w.settle(ids[static_cast<std::size_t>(i)], 1);
  w.run_dry();
  BOOST_TEST(w.kept.size() == 3u);
  const auto owner = [&](std::size_t i) { return w.clients[ids[i]].settles_as.owner; };
  w.schedule.handle(forget{owner(0)}, w.time.now());
  w.schedule.handle(forget{owner(3)}, w.time.now());  // still to be settled
  w.settle(ids[3], 1);
  w.run_dry();
  BOOST_TEST(w.kept.size() == 2u);
  BOOST_TEST(w.settled(ids[3]).state != nullptr);
  std::uint32_t zero = 0;
  for (slot_id i = 0; i < 4; ++i) zero += w.engine.zeroed(i);
  BOOST_TEST(zero == 2u);
}

BOOST_AUTO_TEST_CASE(a_lost_device_answers_every_key) {
  world w(small(3));
  const auto kept = w.send({.prompt = {1}, .budget = 2, .settles = true});
  w.run_dry();
  w.settle(kept, 1);
  w.run_dry();
  BOOST_TEST(w.kept.size() == 1u);
  for (int i = 0; i < 9; ++i)
    w.send({.prompt = std::vector<token_id>(20, i), .budget = 3, .copies = {5, 6, 20}, .settles = true});
  for (int i = 0; i < 4; ++i) w.turn();
  w.lose_device();
  w.judge_keys();
  BOOST_TEST(w.kept.empty());
  for (auto& [id, c] : w.clients) BOOST_TEST(c.over());
  w.send({.prompt = {1}, .copies = {1}, .settles = true});
  w.read_events();
  w.judge_keys();
}

namespace {

/// One seeded life of sessions among other requests.
class random_life {
 public:
  explicit random_life(std::uint64_t seed) : random_(seed), w_(options(random_)) {}

  void live() {
    const std::size_t steps = 20 + random_() % 200;
    const std::size_t last = random_() % 4 ? steps : random_() % steps;  // then the device is lost
    for (std::size_t i = 0; i < steps; ++i) {
      if (i == last) return lose();
      if (shutdown_at_ == 0 && random_() % 400 == 0) begin_shutdown();
      step();
    }
    end();
  }

 private:
  static scheduler_options options(std::mt19937_64& random) {
    scheduler_options o = small(1 + static_cast<std::uint32_t>(random() % 6));
    o.max_tick_tokens = 1 + static_cast<std::uint32_t>(random() % 20);
    o.max_tick_rows = 1 + static_cast<std::uint32_t>(random() % 8);
    o.turn_tokens = 1 + static_cast<std::uint32_t>(random() % 10);
    o.parked_max = static_cast<std::uint32_t>(random() % 5);
    o.parked_bytes_max = random() % 4 * state_bytes;
    o.copies_max = static_cast<std::uint32_t>(random() % 5);
    o.vram_states_max = static_cast<std::uint32_t>(random() % 7);
    o.undo_bytes_max = random() % 4 * state_bytes;
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
    switch (random_() % 4) {
      case 0:
        o.beginning = random_();
        o.from = begin_with(o.beginning);
        break;
      case 1:
        if (!w_.kept.empty()) begin_in_slot(o);
        break;
      default: break;
    }
    w_.send(std::move(o));
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
    const auto drawn = static_cast<std::uint32_t>(random_() % 2 ? got.size() : random_() % (got.size() + 1));
    std::vector<token_id> more = random_() % 2 ? std::vector<token_id>{} : random_prompt(random_, 4);
    if (random_() % 4 == 0) {
      const auto want = expected_tokens(c.wish.prompt, 0, c.wish.budget, c.wish.beginning);
      more.assign(want.begin() + drawn, want.begin() + std::min<std::size_t>(want.size(), drawn + 3));
    }
    w_.settle(id, drawn, std::move(more));
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
      const bool kept_on = c.settled && !c.cancelled && shutdown_at_ == 0 && (c.wish.from.state || !c.wish.from.key);
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
};

}  // namespace

BOOST_AUTO_TEST_CASE(random_lives_hand_out_the_right_states) {
  const auto given = given_seed();
  const std::uint64_t first = given.value_or(1), last = given.value_or(3000);
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    BOOST_TEST_CONTEXT("SKEIN_SEED=" << seed) { random_life(seed).live(); }
  }
}
