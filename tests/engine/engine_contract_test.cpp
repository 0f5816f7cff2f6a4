// Shows that every host-run engine keeps the rules of engine.hpp, one case a rule: ticks behind each other, freezing,
// forks, parking, order. Each case runs on every line of engines_under_test().
#include <algorithm>
#include <bit>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "sampling/sampler.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace {

using namespace skein;
using namespace skein::engine;
using namespace skein::test;
namespace data = boost::unit_test::data;

}  // namespace

BOOST_AUTO_TEST_SUITE(engine_contract)

BOOST_DATA_TEST_CASE(says_what_it_is, data::make(engines_under_test())) {
  const auto e = sample.make({.slots = 3, .max_tick_tokens = 20, .max_tick_rows = 5});
  BOOST_TEST(e->info().slots == 3u);
  BOOST_TEST(e->info().max_tick_tokens == 20u);
  BOOST_TEST(e->info().max_tick_rows == 5u);
  BOOST_TEST(e->info().ticks_in_flight_max == 2u);
  BOOST_TEST(e->info().vocab > 0u);
  BOOST_TEST(e->info().state.bytes() > 0u);
  BOOST_TEST(e->info().memory.slot_bytes >= e->info().state.bytes());
}

BOOST_DATA_TEST_CASE(decode_continues_where_prefill_ended, data::make(engines_under_test())) {
  const auto e = sample.make({});
  const auto text = generate_alone(*e, 0, ten_tokens, greedy(6), ten_tokens.size());
  BOOST_TEST(text.tokens.size() == 6u);
  BOOST_CHECK(text.stopped == stop_cause::budget);

  // Prefilling prompt and text up to a token draws the token after it.
  for (std::size_t known = 0; known < text.tokens.size(); ++known) {
    auto tokens = ten_tokens;
    tokens.insert(tokens.end(), text.tokens.begin(), text.tokens.begin() + static_cast<std::ptrdiff_t>(known));
    e->start(1, greedy(6));
    BOOST_TEST(prefill(*e, 1, tokens, true).token == text.tokens[known]);
  }
}

BOOST_DATA_TEST_CASE(neither_slot_nor_chunks_matter, data::make(engines_under_test())) {
  const auto e = sample.make({});
  auto params = seeded(7, 12);
  params.logprobs = true;
  const auto expected = generate_alone(*e, 0, ten_tokens, params, ten_tokens.size());
  BOOST_TEST(expected.logprobs.size() == expected.tokens.size());
  for (const std::size_t chunk : {1, 2, 3, 7})
    BOOST_TEST(generate_alone(*e, static_cast<slot_id>(chunk % 4), ten_tokens, params, chunk) == expected);
}

BOOST_DATA_TEST_CASE(runs_one_tick_behind, data::make(engines_under_test())) {
  const auto e = sample.make({});
  const auto expected = generate_alone(*e, 0, ten_tokens, greedy(8), ten_tokens.size());

  e->start(0, greedy(8));
  tick_plan plan;
  add_prefill(plan, 0, ten_tokens, true);
  BOOST_REQUIRE(e->submit(plan).has_value());
  plan.clear();
  add_decode(plan, 0);
  std::vector<token_id> tokens;
  for (int i = 0; i < 8; ++i) {  // the last tick in flight finds the slot frozen
    BOOST_REQUIRE(e->submit(plan).has_value());
    BOOST_TEST(e->ticks_in_flight() == 2u);
    const auto done = e->collect();
    BOOST_REQUIRE(done.has_value());
    tokens.push_back((*done)->rows.front().token);
  }
  BOOST_TEST(tokens == expected.tokens, boost::test_tools::per_element());
  const auto late = e->collect();
  BOOST_REQUIRE(late.has_value());
  BOOST_TEST((*late)->rows.front().frozen);
  BOOST_TEST(!(*late)->rows.front().sampled);
  BOOST_TEST(e->ticks_in_flight() == 0u);
}

BOOST_DATA_TEST_CASE(a_result_outlives_the_next_two_submits, data::make(engines_under_test())) {
  const auto e = sample.make({});
  e->start(0, greedy(100));
  const auto first = prefill(*e, 0, ten_tokens, true);
  tick_plan plan;
  add_decode(plan, 0);
  BOOST_REQUIRE(e->submit(plan).has_value());
  const auto held = e->collect();
  BOOST_REQUIRE(held.has_value());
  const token_id token = (*held)->rows.front().token;
  BOOST_REQUIRE(e->submit(plan).has_value());
  BOOST_REQUIRE(e->submit(plan).has_value());
  BOOST_REQUIRE(e->finish().has_value());
  BOOST_TEST(e->ready());
  BOOST_TEST((*held)->rows.front().token == token);
  BOOST_TEST((*held)->tick == 2u);
  BOOST_TEST(first.sampled);
}

BOOST_DATA_TEST_CASE(finish_leaves_results_to_collect, data::make(engines_under_test())) {
  const auto e = sample.make({});
  e->start(2, greedy(4));
  BOOST_TEST(!e->ready());
  tick_plan plan;
  add_prefill(plan, 2, ten_tokens, true);
  BOOST_REQUIRE(e->submit(plan).has_value());
  BOOST_REQUIRE(e->finish().has_value());
  BOOST_TEST(e->ready());
  BOOST_TEST(e->ticks_in_flight() == 1u);
  BOOST_REQUIRE(e->collect().has_value());
  BOOST_TEST(!e->ready());
}

BOOST_DATA_TEST_CASE(a_stop_id_freezes_without_swallowing_it, data::make(engines_under_test())) {
  const auto e = sample.make({});
  const auto unstopped = generate_alone(*e, 0, ten_tokens, greedy(9), ten_tokens.size());
  auto params = greedy(9);
  params.stop_ids = {unstopped.tokens[4]};
  const auto first = std::ranges::find(unstopped.tokens, unstopped.tokens[4]);
  const auto length = static_cast<std::size_t>(first - unstopped.tokens.begin()) + 1;

  const auto stopped = generate_alone(*e, 0, ten_tokens, params, ten_tokens.size());
  BOOST_CHECK(stopped.stopped == stop_cause::stop_id);
  BOOST_TEST(stopped.tokens.size() == length);
  const auto state = state_of(*e, 0);
  for (int i = 0; i < 2; ++i) {
    const auto frozen = decode(*e, 0);
    BOOST_TEST(frozen.frozen);
    BOOST_TEST(!frozen.sampled);
    BOOST_CHECK(frozen.stopped == stop_cause::none);
  }
  BOOST_TEST(state_of(*e, 0) == state, boost::test_tools::per_element());

  // The state is that of the prompt and the text before the stop token.
  auto fed = ten_tokens;
  fed.insert(fed.end(), stopped.tokens.begin(), stopped.tokens.end() - 1);
  e->start(1, greedy(1));
  BOOST_TEST(!prefill(*e, 1, fed, false).sampled);
  BOOST_TEST(state_of(*e, 1) == state, boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(the_last_budgeted_token_may_be_a_stop_id, data::make(engines_under_test())) {
  const auto e = sample.make({});
  const auto text = generate_alone(*e, 0, ten_tokens, greedy(1), ten_tokens.size());
  auto params = greedy(1);
  params.stop_ids = {text.tokens[0]};
  BOOST_CHECK(generate_alone(*e, 0, ten_tokens, params, ten_tokens.size()).stopped == stop_cause::stop_id);
}

BOOST_DATA_TEST_CASE(without_budget_a_prefill_feeds_but_samples_nothing, data::make(engines_under_test())) {
  const auto e = sample.make({});
  e->start(0, greedy(0));
  const auto r = prefill(*e, 0, ten_tokens, true);
  BOOST_TEST(!r.sampled);
  BOOST_TEST(!r.frozen);
  BOOST_CHECK(r.stopped == stop_cause::budget);
  const auto again = decode(*e, 0);
  BOOST_TEST(again.frozen);
  BOOST_CHECK(again.stopped == stop_cause::none);

  e->start(1, greedy(1));
  BOOST_TEST(prefill(*e, 1, ten_tokens, true).sampled);
  BOOST_TEST(state_of(*e, 0) == state_of(*e, 1), boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(a_frozen_slot_can_be_fed_and_thawed, data::make(engines_under_test())) {
  const auto e = sample.make({});
  const auto text = generate_alone(*e, 0, ten_tokens, greedy(3), ten_tokens.size());
  const auto fed = prefill(*e, 0, std::vector{text.tokens.back()}, true);
  BOOST_TEST(fed.frozen);
  BOOST_TEST(!fed.sampled);

  e->restart_sampler(0, greedy(5));
  const std::vector<token_id> question = {9, 4};
  auto whole = ten_tokens;
  whole.insert(whole.end(), text.tokens.begin(), text.tokens.end());
  whole.insert(whole.end(), question.begin(), question.end());
  e->start(1, greedy(5));
  BOOST_TEST(prefill(*e, 0, question, true).token == prefill(*e, 1, whole, true).token);
}

BOOST_DATA_TEST_CASE(a_restarted_sampler_keeps_the_last_token, data::make(engines_under_test())) {
  const auto e = sample.make({});
  const auto text = generate_alone(*e, 0, ten_tokens, greedy(6), ten_tokens.size());
  BOOST_REQUIRE(generate_alone(*e, 0, ten_tokens, greedy(3), ten_tokens.size()).tokens.size() == 3u);
  e->restart_sampler(0, greedy(3));
  BOOST_TEST(decode(*e, 0).token == text.tokens[3]);
}

BOOST_DATA_TEST_CASE(frozen_rows_change_nothing_for_others, data::make(engines_under_test())) {
  const auto e = sample.make({});
  auto params = seeded(3, 10);
  params.logprobs = true;
  const auto expected = generate_alone(*e, 3, ten_tokens, params, ten_tokens.size());

  e->start(0, greedy(1));
  e->start(1, params);
  e->start(2, greedy(4));
  tick_plan plan;
  for (slot_id s = 0; s < 3; ++s) add_prefill(plan, s, ten_tokens, true);
  auto rows = run_tick(*e, plan);
  generated_text text{{rows[1].token}, {rows[1].logprobs.logprob}, rows[1].stopped};
  plan.clear();
  for (slot_id s = 0; s < 3; ++s) add_decode(plan, s);
  for (int tick = 1; tick < 10; ++tick) {
    rows = run_tick(*e, plan);
    BOOST_TEST(rows[0].frozen);
    BOOST_TEST(rows[2].frozen == (tick > 3));
    text.tokens.push_back(rows[1].token);
    text.logprobs.push_back(rows[1].logprobs.logprob);
    text.stopped = rows[1].stopped;
  }
  BOOST_TEST(text == expected);
}

BOOST_DATA_TEST_CASE(a_copied_state_forks, data::make(engines_under_test())) {
  const auto e = sample.make({});
  auto params = seeded(11, 8);
  const auto expected0 = generate_alone(*e, 0, ten_tokens, params, ten_tokens.size());
  params.row = 1;
  const auto expected1 = generate_alone(*e, 0, ten_tokens, params, ten_tokens.size());

  params.row = 0;
  e->start(0, params);
  BOOST_TEST(!prefill(*e, 0, std::span(ten_tokens).first(ten_tokens.size() - 1), false).sampled);
  params.row = 1;
  e->start(1, params);
  e->copy_state(0, 1);
  tick_plan plan;
  add_prefill(plan, 0, std::span(ten_tokens).last(1), true);
  add_prefill(plan, 1, std::span(ten_tokens).last(1), true);
  std::vector<token_id> tokens0, tokens1;
  while (tokens0.size() < 8) {
    const auto rows = run_tick(*e, plan);
    tokens0.push_back(rows[0].token);
    tokens1.push_back(rows[1].token);
    plan.clear();
    add_decode(plan, 0);
    add_decode(plan, 1);
  }
  BOOST_TEST(tokens0 == expected0.tokens, boost::test_tools::per_element());
  BOOST_TEST(tokens1 == expected1.tokens, boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(a_copy_in_mid_text_takes_position_last_token_and_frost, data::make(engines_under_test())) {
  const auto e = sample.make({});
  const auto params = seeded(13, 9);
  const auto expected = generate_alone(*e, 0, ten_tokens, params, ten_tokens.size());
  e->start(0, params);
  e->start(1, params);
  BOOST_REQUIRE(prefill(*e, 0, ten_tokens, true).sampled);
  for (int i = 1; i < 5; ++i) BOOST_REQUIRE(decode(*e, 0).sampled);
  e->copy_state(0, 1);
  for (std::size_t i = 5; i < 9; ++i) BOOST_TEST(decode(*e, 1).token == expected.tokens[i]);
  e->start(2, params);
  e->copy_state(1, 2);
  BOOST_TEST(decode(*e, 2).frozen);
}

BOOST_DATA_TEST_CASE(a_copied_position_beyond_its_budget_samples_nothing, data::make(engines_under_test())) {
  const auto e = sample.make({});
  e->start(0, greedy(9));
  e->start(1, greedy(2));
  BOOST_REQUIRE(prefill(*e, 0, ten_tokens, true).sampled);
  for (int i = 0; i < 3; ++i) BOOST_REQUIRE(decode(*e, 0).sampled);
  const auto state = state_of(*e, 0);
  e->copy_state(0, 1);
  const auto r = decode(*e, 1);
  BOOST_CHECK(r.stopped == stop_cause::budget);
  BOOST_TEST(!r.sampled);
  BOOST_TEST(state_of(*e, 1) == state, boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(a_parked_sequence_continues_in_another_slot, data::make(engines_under_test())) {
  const auto e = sample.make({});
  const auto other = sample.make({.slots = 2});
  const auto params = seeded(17, 12);
  const auto expected = generate_alone(*e, 0, ten_tokens, params, ten_tokens.size());

  e->start(0, params);
  std::vector<token_id> tokens = {prefill(*e, 0, ten_tokens, true).token};
  for (int i = 0; i < 3; ++i) tokens.push_back(decode(*e, 0).token);
  parked_sequence parked;
  e->park(0, parked);
  e->clear(0);
  BOOST_REQUIRE(generate_alone(*e, 0, std::vector<token_id>{1, 2, 3}, greedy(4), 1).tokens.size() == 4u);
  e->unpark(3, params, parked);
  for (int i = 0; i < 4; ++i) tokens.push_back(decode(*e, 3).token);

  parked_sequence again;
  e->park(3, again);
  BOOST_REQUIRE(e->finish().has_value());
  other->unpark(1, params, again);
  for (int i = 0; i < 4; ++i) tokens.push_back(decode(*other, 1).token);
  BOOST_TEST(tokens == expected.tokens, boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(a_parked_sequence_stays_frozen, data::make(engines_under_test())) {
  const auto e = sample.make({});
  BOOST_REQUIRE(generate_alone(*e, 0, ten_tokens, greedy(3), ten_tokens.size()).tokens.size() == 3u);
  parked_sequence parked;
  e->park(0, parked);
  e->unpark(1, greedy(3), parked);
  BOOST_TEST(decode(*e, 1).frozen);
  BOOST_TEST(parked.frozen);
}

BOOST_DATA_TEST_CASE(a_cleared_slot_is_a_fresh_one, data::make(engines_under_test())) {
  const auto e = sample.make({});
  e->start(0, greedy(5));
  const auto fresh = state_of(*e, 0);
  const auto expected = generate_alone(*e, 0, ten_tokens, greedy(5), ten_tokens.size());
  BOOST_TEST(!(state_of(*e, 0) == fresh));
  e->clear(0);
  BOOST_TEST(state_of(*e, 0) == fresh, boost::test_tools::per_element());
  BOOST_TEST(generate_alone(*e, 0, ten_tokens, greedy(5), ten_tokens.size()) == expected);
}

BOOST_DATA_TEST_CASE(a_written_state_is_what_the_next_row_sees, data::make(engines_under_test())) {
  const auto e = sample.make({});
  e->start(0, greedy(9));
  BOOST_TEST(!prefill(*e, 0, std::span(ten_tokens).first(6), false).sampled);
  const auto state = value_of(*e, 0);
  const token_id expected = prefill(*e, 0, std::span(ten_tokens).subspan(6), true).token;
  e->start(1, greedy(9));
  e->write_state(1, state);
  BOOST_TEST(prefill(*e, 1, std::span(ten_tokens).subspan(6), true).token == expected);
}

BOOST_DATA_TEST_CASE(a_written_state_of_another_type_is_converted, data::make(engines_under_test())) {
  const auto e = sample.make({});
  const model::state_format own = e->info().state,
                            other(own.layout, own.shifts == dtype::f16 ? dtype::f32 : dtype::f16);
  e->start(0, greedy(9));
  BOOST_TEST(!prefill(*e, 0, ten_tokens, false).sampled);
  const auto state = converted(value_of(*e, 0), other);
  const auto expected = converted(state, own);
  e->start(1, greedy(9));
  e->write_state(1, state);
  BOOST_TEST((value_of(*e, 1) == expected));
  parked_sequence parked;
  parked.state = state;
  e->unpark(0, greedy(9), parked);
  BOOST_TEST((value_of(*e, 0) == expected));
}

BOOST_DATA_TEST_CASE(commands_keep_their_order_with_the_ticks, data::make(engines_under_test())) {
  const auto e = sample.make({});
  const auto expected = generate_alone(*e, 0, ten_tokens, greedy(3), ten_tokens.size());
  // All queued before anything is collected: each must see what those before it left.
  const std::vector<token_id> other = {2, 7};
  model::state_value fresh, fed, restarted;
  parked_sequence parked;
  tick_plan first, second;
  add_prefill(first, 0, ten_tokens, true);
  add_prefill(second, 0, other, true);
  add_decode(second, 1);
  e->start(0, greedy(3));
  e->read_state(0, fresh);
  BOOST_REQUIRE(e->submit(first).has_value());
  e->read_state(0, fed);
  e->park(0, parked);
  e->start(0, greedy(3));
  e->read_state(0, restarted);
  e->unpark(1, greedy(3), parked);
  BOOST_REQUIRE(e->submit(second).has_value());
  BOOST_REQUIRE(e->finish().has_value());

  BOOST_TEST((restarted == fresh));
  BOOST_TEST((parked.state == fed));
  BOOST_TEST(parked.last_tokens == std::vector{expected.tokens[0]}, boost::test_tools::per_element());
  auto done = e->collect();
  BOOST_REQUIRE(done.has_value());
  BOOST_TEST((*done)->rows[0].token == expected.tokens[0]);
  done = e->collect();
  BOOST_REQUIRE(done.has_value());
  BOOST_TEST((*done)->rows[1].token == expected.tokens[1]);
}

BOOST_DATA_TEST_CASE(an_empty_tick_is_a_tick, data::make(engines_under_test())) {
  const auto e = sample.make({});
  BOOST_TEST(run_tick(*e, {}).empty());
}

BOOST_DATA_TEST_CASE(a_tick_may_be_full, data::make(engines_under_test())) {
  const auto e = sample.make({.slots = 8, .max_tick_tokens = 40, .max_tick_rows = 8});
  const auto expected = generate_alone(*e, 0, std::span(ten_tokens).first(5), greedy(2), 5);
  tick_plan plan;
  for (slot_id s = 0; s < 8; ++s) {
    e->start(s, greedy(2));
    add_prefill(plan, s, std::span(ten_tokens).first(5), true);
  }
  for (const auto& r : run_tick(*e, plan)) BOOST_TEST(r.token == expected.tokens[0]);
}

BOOST_DATA_TEST_CASE(can_be_destroyed_with_work_queued, data::make(engines_under_test())) {
  parked_sequence parked;  // outlives the engine that fills it
  const auto e = sample.make({});
  tick_plan plan;
  add_prefill(plan, 0, ten_tokens, true);
  e->start(0, greedy(3));
  for (int i = 0; i < 100; ++i) e->park(0, parked);
  BOOST_REQUIRE(e->submit(plan).has_value());
  BOOST_REQUIRE(e->submit(plan).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
