// Shows that the fake engine answers fake_text whatever the engine does around it, that damaged states are found out,
// and that its troubles come as ordered: a lost device at one tick, and the same answer from then on.
#include "engine/fake/fake_engine.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <thread>

#include "tests/engine/engine_fixture.hpp"

namespace {

using namespace skein;
using namespace skein::engine;
using namespace skein::test;

const std::vector<token_id> prompt = {72, 101, 108, 108, 111};

/// Left to be collected.
void submit_two_ticks(skein::engine::engine& e) {
  e.start(0, greedy(50));
  tick_plan plan;
  add_prefill(plan, 0, prompt, true);
  for (int i = 0; i < 2; ++i) BOOST_REQUIRE(e.submit(plan).has_value());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fake_engine)

BOOST_AUTO_TEST_CASE(answers_fake_text) {
  fake_engine_options options;
  options.model.end_of_text_chance = 0.05;
  const auto e = make_fake_engine(options);
  std::size_t ended = 0;
  for (std::uint32_t i = 0; i < 40; ++i) {
    auto params = i % 2 ? greedy(30) : seeded(i, 30);
    params.stop_ids = {end_of_text};
    auto own_prompt = prompt;
    own_prompt.push_back(static_cast<token_id>(i));
    const auto text = generate_alone(*e, i % 16, own_prompt, params, 3);
    BOOST_TEST(text.tokens == fake_text(options.model, own_prompt, params), boost::test_tools::per_element());
    if (text.stopped == stop_cause::stop_id) {
      ++ended;
      BOOST_TEST(text.tokens.back() == end_of_text);
    }
  }
  BOOST_TEST(ended > 10u);  // 1 - 0.95^30 of 40 texts are 31
  BOOST_TEST(ended < 40u);
}

BOOST_AUTO_TEST_CASE(text_is_printable_and_rows_differ_only_when_sampled) {
  const fake_model model;
  auto params = seeded(5, 200);
  const auto row0 = fake_text(model, prompt, params);
  for (const token_id t : row0) BOOST_TEST((t >= model.first_text_token && t <= model.last_text_token));
  params.row = 1;
  BOOST_TEST(!(fake_text(model, prompt, params) == row0));
  auto still = greedy(50);
  const auto greedy0 = fake_text(model, prompt, still);
  still.row = 1;
  BOOST_TEST(fake_text(model, prompt, still) == greedy0, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(one_other_token_changes_the_text) {
  const fake_model model;
  const auto text = fake_text(model, prompt, greedy(20));
  auto other = prompt;
  other[1] ^= 1;
  BOOST_TEST(!(fake_text(model, other, greedy(20)) == text));
  other = prompt;
  std::swap(other[0], other[1]);
  BOOST_TEST(!(fake_text(model, other, greedy(20)) == text));
}

BOOST_AUTO_TEST_CASE(a_state_survives_its_floats) {
  sha256_digest state = fake_initial_state;
  for (const token_id t : prompt) state = fake_feed(state, t);
  std::vector<float> floats(100);
  write_fake_state(state, floats);
  sha256_digest read;
  BOOST_TEST(read_fake_state(floats, read));
  BOOST_TEST((read == state));
}

BOOST_AUTO_TEST_CASE(a_state_damaged_anywhere_is_found_out) {
  sha256_digest a = fake_feed(fake_initial_state, 1), b = fake_feed(fake_initial_state, 2), read;
  std::vector<float> whole(64), other(64);
  write_fake_state(a, whole);
  write_fake_state(b, other);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto damaged = whole;
    damaged[i] = static_cast<float>((static_cast<int>(whole[i]) + 1) % 256);
    BOOST_TEST(!read_fake_state(damaged, read));
    damaged[i] = whole[i] + 0.5f;
    BOOST_TEST(!read_fake_state(damaged, read));
  }
  for (std::size_t torn = 1; torn < whole.size(); ++torn) {
    auto mixed = whole;
    std::copy_n(other.begin(), torn, mixed.begin());
    if (mixed == whole || mixed == other) continue;
    BOOST_TEST(!read_fake_state(mixed, read));
  }
}

BOOST_AUTO_TEST_CASE(a_torn_state_loses_the_device) {
  const auto e = make_fake_engine({});
  parked_sequence parked;
  e->start(0, greedy(5));
  BOOST_REQUIRE(prefill(*e, 0, prompt, true).sampled);
  e->park(0, parked);
  BOOST_REQUIRE(e->finish().has_value());
  model::floats_in(parked.state).back() += 1;
  e->unpark(1, greedy(5), parked);
  const auto r = e->finish();
  BOOST_REQUIRE(!r);
  BOOST_TEST(r.error().message == "the state written to slot 1 is torn or mixed");
  BOOST_TEST(!e->finish());

  const auto again = make_fake_engine({});
  again->write_state(2, parked.state);
  BOOST_TEST(!again->finish());
}

BOOST_AUTO_TEST_CASE(a_lost_device_is_lost_for_good) {
  fake_engine_options options;
  options.lost_at_tick = 3;
  const auto e = make_fake_engine(options);
  e->start(0, greedy(50));
  tick_plan plan;
  add_prefill(plan, 0, prompt, true);
  BOOST_REQUIRE(e->submit(plan).has_value());
  plan.clear();
  add_decode(plan, 0);
  const auto expected = fake_text(options.model, prompt, greedy(2));
  for (const token_id token : expected) {  // ticks 1 and 2 are answered though 3 may be lost already
    BOOST_REQUIRE(e->submit(plan).has_value());
    const auto done = e->collect();
    BOOST_REQUIRE(done.has_value());
    BOOST_TEST((*done)->rows[0].token == token);
  }
  const auto lost = e->collect();
  BOOST_REQUIRE(!lost.has_value());
  BOOST_CHECK(lost.error().kind == error_kind::unavailable);
  BOOST_TEST(lost.error().message == "fake device lost in tick 3");

  parked_sequence parked;
  e->start(1, greedy(1));
  e->park(1, parked);
  BOOST_TEST(e->ready());
  for (const error& again :
       {e->submit(plan).error(), e->collect().error(), e->finish().error(), e->sample(0, {}).error()})
    BOOST_TEST(again.message == lost.error().message);
  BOOST_TEST(parked.state.empty());
}

BOOST_AUTO_TEST_CASE(an_exception_in_a_tick_loses_the_device_and_not_the_process) {
  fake_engine_options options;
  options.throws_at_tick = 2;
  const auto e = make_fake_engine(options);
  submit_two_ticks(*e);
  BOOST_TEST(e->collect().has_value());
  const auto lost = e->collect();
  BOOST_REQUIRE(!lost.has_value());
  BOOST_CHECK(lost.error().kind == error_kind::internal);
  BOOST_TEST(lost.error().message == "the engine failed: tick 2 threw on purpose");
  BOOST_TEST(!e->finish());
}

BOOST_AUTO_TEST_CASE(what_was_done_before_a_loss_can_be_collected) {
  fake_engine_options options;
  options.lost_at_tick = 2;
  const auto e = make_fake_engine(options);
  submit_two_ticks(*e);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // gives the loss time to come first; either way it holds
  BOOST_TEST(e->collect().has_value());
  BOOST_TEST(!e->collect().has_value());
}

BOOST_AUTO_TEST_CASE(a_slow_device_takes_its_time) {
  fake_engine_options options;
  options.tick_latency = std::chrono::microseconds(300);
  options.tick_jitter = std::chrono::microseconds(100);
  const auto e = make_fake_engine(options);
  const auto begin = std::chrono::steady_clock::now();
  BOOST_REQUIRE(e->submit({}).has_value());
  BOOST_REQUIRE(e->collect().has_value());
  BOOST_TEST(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() >= 300e-6);
}

BOOST_AUTO_TEST_SUITE_END()
