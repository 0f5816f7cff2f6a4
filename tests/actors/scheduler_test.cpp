// The scheduler, stepped by hand with a seeded order of messages, a clock that the test turns and a model of an engine
// (scheduler_world): every token that comes out must be the one that the row's own prompt and earlier tokens give,
// regardless of slots, parking, pauses, cancels and batch composition.
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
}  // namespace

BOOST_AUTO_TEST_CASE(one_request_gets_its_tokens) {
  world w(small(2));
  const auto id = w.send({1, 2, 3}, 1, 5);
  w.run_dry();
  w.judge();
  BOOST_TEST(w.clients[id].over());
  BOOST_TEST(w.schedule.counts().slots_used == 0u);
  BOOST_TEST(w.schedule.counts().requests == 0u);
}

BOOST_AUTO_TEST_CASE(no_tokens_wanted_still_prefills_and_ends) {
  world w(small(2));
  const auto id = w.send({1, 2, 3}, 2, 0);
  w.run_dry();
  BOOST_TEST(w.clients[id].over());
  BOOST_TEST((w.clients[id].rows[1].end == finish_cause::budget));
}

BOOST_AUTO_TEST_CASE(rows_of_one_request_share_the_prompt_and_differ_by_row) {
  world w(small(3));
  const auto id = w.send({5, 6, 8, 9}, 7, 9);  // more rows than slots
  w.run_dry();
  w.judge();
  BOOST_TEST(w.clients[id].over());
  BOOST_TEST(w.clients[id].rows[0].got != w.clients[id].rows[1].got);
}

BOOST_AUTO_TEST_CASE(logits_that_are_not_finite_end_their_request_alone) {
  for (const bool scored : {false, true}) {
    world w(small(2));
    const auto spoiled = w.send({.prompt = {5, not_finite, 8}, .n = 3, .scored = scored});
    const auto other = w.send({5, 6, 8}, 3, 9);
    w.run_dry();
    for (const auto& row : w.clients[spoiled].rows) {
      BOOST_TEST((row.end == finish_cause::not_finite));
      BOOST_TEST(row.got.empty());
    }
    for (const auto& row : w.clients[other].rows) BOOST_TEST(!row.got.empty());
    BOOST_TEST(w.schedule.counts().slots_used == 0u);
    BOOST_TEST(w.schedule.counts().requests == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_cancelled_request_frees_its_slot_in_the_same_turn) {
  world w(small(1));
  const auto id = w.send({1}, 1, 1000000);
  for (int i = 0; i < 5; ++i) w.turn();
  BOOST_TEST(w.schedule.counts().slots_used == 1u);
  w.cancel(id);
  BOOST_TEST(w.schedule.counts().slots_used == 0u);
  w.run_dry();
  BOOST_TEST((w.clients[id].rows[0].end == finish_cause::cancelled));
  w.cancel(id);      // a late second one is harmless
  w.cancel(777777);  // and so is one for an id that never was
}

BOOST_AUTO_TEST_CASE(cancel_in_the_queue_and_in_prefill) {
  world w(small(1));
  const auto long_prompt = w.send(std::vector<token_id>(500, 3), 1, 4);
  const auto queued = w.send({4}, 1, 4);
  w.turn();
  w.cancel(queued);
  w.cancel(long_prompt);
  BOOST_TEST(w.schedule.counts().requests == 0u);
  BOOST_TEST(w.schedule.counts().slots_used == 0u);
  w.run_dry();
}

BOOST_AUTO_TEST_CASE(a_full_queue_rejects_as_overloaded) {
  world w(small(1));
  for (int i = 0; i < 60; ++i) w.send({1, 2}, 1, 3);
  std::size_t refused = 0;
  w.read_events();
  for (auto& [id, c] : w.clients) refused += c.refused == error_kind::overloaded;
  BOOST_TEST(refused == 9u);  // fifty wait, one has the slot
  w.run_dry();
  w.judge();
}

BOOST_AUTO_TEST_CASE(one_client_cannot_fill_the_queue) {
  scheduler_options o = small(1);
  o.waiting_per_client_max = 5;
  world w(o);
  for (int i = 0; i < 10; ++i) w.send({1, 2}, 1, 3, false, "many");
  const auto other = w.send({1, 2}, 1, 3, false, "one");
  w.read_events();
  std::size_t refused = 0;
  for (auto& [id, c] : w.clients) refused += c.refused == error_kind::overloaded;
  BOOST_TEST(refused == 4u);  // five wait, one has the slot
  w.run_dry();
  BOOST_TEST(w.clients[other].over());
  BOOST_TEST(!w.clients[other].refused);
}

BOOST_AUTO_TEST_CASE(what_gave_way_to_others_does_not_count_as_waiting) {
  scheduler_options o = small(1);
  o.waiting_per_client_max = 1;
  o.turn_tokens = 1;
  world w(o);
  w.send({1, 2}, 1, 50, false, "many");
  w.turn();
  w.send({1, 2}, 1, 50, false, "many");
  for (int i = 0; i < 10; ++i) w.turn();  // both have begun; one of them is parked
  const auto third = w.send({1, 2}, 1, 3, false, "many");
  w.read_events();
  BOOST_TEST(w.schedule.counts().parked == 1u);
  BOOST_TEST(!w.clients[third].refused);
  const auto fourth = w.send({1, 2}, 1, 3, false, "many");
  w.read_events();
  BOOST_TEST((w.clients[fourth].refused == error_kind::overloaded));
  w.run_dry();
  w.judge();
}

BOOST_AUTO_TEST_CASE(waiting_too_long_is_a_timeout) {
  scheduler_options o = small(1);
  o.turn_tokens = 1000000;  // no row is parked
  world w(o);
  const auto running = w.send({1}, 1, 100000);
  const auto late = w.send({2}, 1, 5, false, "b", 5ms);
  w.turn();
  BOOST_REQUIRE(!w.clients[running].over());
  w.time.advance(1s);
  w.turn();
  BOOST_TEST((w.clients[late].refused == error_kind::timeout));
  BOOST_TEST(!w.clients[late].admitted);
}

BOOST_AUTO_TEST_CASE(clients_take_turns_in_the_queue) {
  world w(small(1));
  for (int i = 0; i < 20; ++i) w.send({1, 2, 3}, 1, 2, false, "greedy");
  const auto modest = w.send({9}, 1, 2, false, "modest");
  while (!w.clients[modest].over()) w.turn();
  std::size_t done = 0;
  for (auto& [id, c] : w.clients) done += c.over() && id != modest;
  BOOST_TEST(done <= 2u);  // one was running, one had its turn before
  w.run_dry();
  w.judge();
}

BOOST_AUTO_TEST_CASE(a_long_answer_is_parked_after_its_turn_and_continues) {
  world w(small(1));
  const auto long_one = w.send(endless_prompt(), 1, 60, false, "a");
  w.turn();
  const auto short_one = w.send({2}, 1, 2, false, "b");
  for (int i = 0; i < 20; ++i) w.turn();
  BOOST_TEST(w.clients[short_one].over());
  w.run_dry();
  w.judge();
  BOOST_TEST(w.clients[long_one].over());
  BOOST_TEST(w.schedule.counts().preemptions > 0u);
}

BOOST_AUTO_TEST_CASE(a_paused_reader_gets_no_tokens_and_makes_room) {
  world w(small(1));
  const auto slow = w.send({3}, 1, 500, false, "a");
  for (int i = 0; i < 3; ++i) w.turn();
  w.schedule.handle(device::pause{slow}, w.time.now());
  w.run_dry();
  const auto before = w.clients[slow].rows[0].got.size();
  const auto other = w.send({4}, 1, 3, false, "b");
  w.run_dry();
  BOOST_TEST(w.clients[other].over());
  BOOST_TEST(w.clients[slow].rows[0].got.size() == before);
  w.schedule.handle(resume{slow}, w.time.now());
  w.run_dry();
  w.judge();
  BOOST_TEST(w.clients[slow].over());
}

BOOST_AUTO_TEST_CASE(a_crowd_shares_its_ticks) {
  scheduler_options o = small(64);
  o.max_tick_tokens = 80;
  o.max_tick_rows = 64;
  o.waiting_max = 64;
  world w(o);
  auto prompt = endless_prompt();
  for (int i = 0; i < 64; ++i) w.send(prompt, 1, 100);
  std::uint64_t turns = 0;
  while (w.turn()) ++turns;
  w.judge();
  BOOST_TEST(w.schedule.counts().generated_tokens == 6400u);
  BOOST_TEST(turns <= 120u);  // 100 draws and the prompts' ticks
}

BOOST_AUTO_TEST_CASE(a_long_prompt_does_not_hold_up_others) {
  world w(small(2));
  w.send(std::vector<token_id>(2000, 5), 1, 1);
  for (int i = 0; i < 3; ++i) w.turn();
  const auto quick = w.send({6, 5, 4}, 1, 3);
  for (int i = 0; i < 8; ++i) w.turn();
  BOOST_TEST(w.clients[quick].over());
  w.run_dry();
  w.judge();
}

BOOST_AUTO_TEST_CASE(shutdown_rejects_the_queue_and_lets_running_requests_end) {
  world w(small(1));
  const auto running = w.send({1}, 1, 5);
  w.turn();
  const auto waiting = w.send({2}, 1, 5);
  w.schedule.handle(shutdown{w.time.now() + 1h}, w.time.now());
  const auto after = w.send({3}, 1, 5);
  w.run_dry();
  BOOST_TEST((w.clients[waiting].refused == error_kind::unavailable));
  BOOST_TEST((w.clients[after].refused == error_kind::unavailable));
  BOOST_TEST(w.clients[running].rows[0].got.size() == expected_tokens({1}, 0, 5).size());
  BOOST_TEST(w.schedule.finished());
}

BOOST_AUTO_TEST_CASE(shutdown_cuts_at_its_deadline) {
  world w(small(1));
  const auto prompt = endless_prompt();
  const auto running = w.send(prompt, 1, endless);
  w.turn();
  const auto deadline = w.time.now() + 10s;
  w.schedule.handle(shutdown{deadline}, w.time.now());
  while (w.time.now() + 1ms < deadline) {  // a turn is a millisecond
    BOOST_REQUIRE(w.turn());
    if (w.clients[running].rows[0].got.size() == 20) w.time.advance(deadline - w.time.now() - 5ms);
  }
  BOOST_TEST(!w.clients[running].over());
  BOOST_TEST(!w.schedule.finished());
  w.turn();
  BOOST_REQUIRE(w.clients[running].over());
  BOOST_TEST((w.clients[running].rows[0].end == finish_cause::shutdown));
  BOOST_TEST(w.clients[running].rows[0].got.size() >= 20u);
  w.judge();
  w.run_dry();
  BOOST_TEST(w.schedule.finished());
}

BOOST_AUTO_TEST_CASE(states_outside_have_a_ceiling_in_bytes) {
  scheduler_options o = small(2);
  o.parked_bytes_max = 3 * state_bytes;
  world w(o);
  for (int i = 0; i < 12; ++i) w.send(endless_prompt(), 1, 40, false, std::string(1, static_cast<char>('a' + i)));
  for (int i = 0; i < 6; ++i) w.send({1, 2, 3}, 5, 40, false, "rows");
  std::size_t most = 0;
  while (w.turn()) most = std::max(most, w.schedule.counts().parked_bytes);
  BOOST_TEST(most == 3 * state_bytes);
  w.judge();
  for (auto& [id, c] : w.clients) BOOST_TEST(c.over());
  BOOST_TEST(w.schedule.counts().parked_bytes == 0u);
}

BOOST_AUTO_TEST_CASE(single_rows_cannot_starve_a_request_of_several) {
  for (const std::size_t states : {1, 3, 11}) {
    scheduler_options o = small(2);
    o.parked_bytes_max = states * state_bytes;
    world w(o);
    // A crowd that is never done: who gets an answer asks again, before the request of several rows and after it.
    const auto send_single = [&w] { return w.send(endless_prompt(), 1, 40, false, "single"); };
    std::set<request_id> crowd;
    while (crowd.size() < 20) crowd.insert(send_single());
    const auto turn = [&] {
      w.turn();
      for (const request_id id : std::set<request_id>(crowd))
        if (w.clients[id].over()) {
          crowd.erase(id);
          crowd.insert(send_single());
        }
    };
    while (w.schedule.counts().parked_bytes < o.parked_bytes_max) turn();
    const auto several = w.send({1, 2, 3}, 3, 4, false, "several");
    int turns = 0;
    for (; turns < 800 && !w.clients[several].over(); ++turns) turn();
    BOOST_TEST(w.clients[several].over(), "starved with room for " << states << " states");
    w.judge();
  }
}

BOOST_AUTO_TEST_CASE(rows_fork_without_any_room_outside) {
  scheduler_options o = small(2);
  o.parked_bytes_max = 0;
  world w(o);
  for (int i = 0; i < 4; ++i) w.send({1, 2, static_cast<token_id>(3 + i)}, 5, 10);
  std::size_t most = 0;
  while (w.turn()) most = std::max(most, w.schedule.counts().parked_bytes);
  BOOST_TEST(most == state_bytes);  // one at a time
  w.judge();
  for (auto& [id, c] : w.clients) BOOST_TEST(c.over());
}

BOOST_AUTO_TEST_CASE(a_lost_device_ends_everything_once) {
  world w(small(2));
  for (int i = 0; i < 6; ++i) w.send({1, 2, static_cast<token_id>(i)}, 2, 50);
  for (int i = 0; i < 4; ++i) w.turn();
  w.lose_device();
  for (auto& [id, c] : w.clients) BOOST_TEST(c.over());
  const auto after = w.send({1}, 1, 1);
  w.read_events();
  BOOST_TEST((w.clients[after].refused == error_kind::unavailable));
}

BOOST_AUTO_TEST_CASE(an_end_that_could_not_be_told_is_told_when_the_device_is_lost) {
  world w(small(2));
  for (int i = 0; i < 4; ++i) w.send(endless_prompt(), 2, 50);
  for (int i = 0; i < 4; ++i) w.turn();
  BOOST_CHECK_THROW((test::failing_new(1), w.schedule.handle(device::cancel{1}, w.time.now())), std::bad_alloc);
  w.schedule.lose_device({error_kind::unavailable, "gone", ""});
  w.schedule.end_lost();
  w.read_events();
  for (auto& [id, c] : w.clients) BOOST_TEST(c.over());
}

BOOST_AUTO_TEST_CASE(random_lives_give_every_row_its_own_text) {
  const auto given = test::given_seed();
  const std::uint64_t first = given.value_or(1), last = given.value_or(test::rounds(2000u));
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    BOOST_TEST_CONTEXT("SKEIN_SEED=" << seed) {
      std::mt19937_64 random(seed);
      scheduler_options o = small(1 + static_cast<std::uint32_t>(random() % 6));
      o.max_tick_tokens = 1 + static_cast<std::uint32_t>(random() % 20);
      o.max_tick_rows = 1 + static_cast<std::uint32_t>(random() % 8);
      o.turn_tokens = 1 + static_cast<std::uint32_t>(random() % 10);
      o.parked_max = static_cast<std::uint32_t>(random() % 5);
      o.parked_bytes_max = random() % 4 * state_bytes;
      if (random() % 2) o.chunk_tokens = some_chunk(random, o.max_tick_tokens);
      world w(o);
      const std::size_t steps = 20 + random() % 150;
      for (std::size_t step = 0; step < steps; ++step) {
        const request_id some = w.last_id ? 1 + random() % w.last_id : 0;
        switch (random() % 8) {
          case 0:
          case 1:
            w.send(random_prompt(random, 40), 1 + static_cast<std::uint32_t>(random() % 4),
                   static_cast<std::uint32_t>(random() % 30), random() % 3 == 0, std::string(1, "abc"[random() % 3]),
                   std::chrono::milliseconds(1 + random() % 200));
            break;
          case 2:
            if (some && random() % 3 == 0) w.cancel(some);
            break;
          case 3:
            if (some) w.schedule.handle(device::pause{some}, w.time.now());
            break;
          case 4:
            if (some) w.schedule.handle(resume{some}, w.time.now());
            break;
          case 5:
            if (some) {
              const auto& c = w.clients[some];
              const auto row = static_cast<std::uint32_t>(random() % c.rows.size());
              if (!c.rows[row].got.empty()) w.schedule.handle(cancel_row{some, row}, w.time.now());
            }
            break;
          default: w.turn();
        }
      }
      for (request_id id = 1; id <= w.last_id; ++id) w.schedule.handle(resume{id}, w.time.now());
      w.run_dry();
      w.judge();
      for (auto& [id, c] : w.clients) BOOST_REQUIRE(c.over());
      BOOST_REQUIRE_EQUAL(w.schedule.counts().slots_used, 0u);
      BOOST_REQUIRE_EQUAL(w.schedule.counts().requests, 0u);
      BOOST_REQUIRE_EQUAL(w.schedule.counts().parked, 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_the_engine_does_not_take_is_refused) {
  scheduler_options o = small(2);
  o.limits = {
      .vocab = 50, .row_max = {.logit_bias_max = 3, .stop_ids_max = 2}, .top_logprobs_max = 4, .prompt_tokens_max = 8};
  struct excess {
    const char* field;  // empty: within the limits
    std::function<void(submit&)> change;
  };
  const std::vector<excess> table = {
      {"", [](submit&) {}},
      {"",
       [](submit& s) {
         s.rows[1].logit_bias.resize(3, {1, 0.0f});
       }},
      {"logit_bias",
       [](submit& s) {
         s.rows[1].logit_bias.resize(4, {1, 0.0f});
       }},
      {"",
       [](submit& s) {
         s.rows[0].stop_ids = {1, 2};
       }},
      {"stop_token_ids",
       [](submit& s) {
         s.rows[0].stop_ids = {1, 2, 3};
       }},
      {"", [](submit& s) { s.rows[0].top_logprobs = s.score_top = 4; }},
      {"top_logprobs", [](submit& s) { s.rows[0].top_logprobs = 5; }},
      {"top_logprobs", [](submit& s) { s.score_top = 5; }},
      {"", [](submit& s) { s.prompt.assign(8, 49); }},
      {"prompt", [](submit& s) { s.prompt.assign(9, 1); }},
      {"prompt",
       [](submit& s) {
         s.prompt = {1, 50};
       }},
      {"prompt", [](submit& s) { s.prompt = {-1}; }},
      {"prompt", [](submit& s) { s.prompt.clear(); }},
  };
  for (std::size_t i = 0; i < table.size(); ++i) {
    scheduler schedule(o);
    submit s;
    s.id = 1;
    s.prompt = {1, 2};
    s.rows.resize(2);
    table[i].change(s);
    schedule.handle(std::move(s), {});
    std::string field;
    schedule.take_events([&](std::uint32_t, events&& batch) {
      for (const auto& e : batch.items) field = std::get<rejected>(e).why.field;
    });
    BOOST_TEST(field == table[i].field, "case " << i << " names '" << field << "'");
  }
}
