// Shows what engine.hpp says of tokens that a rule forces: a row that takes them at once has the tokens,
// log-probabilities and states of one that samples each in a tick of its own, wherever its text ends, moves or waits
// for room.
#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "base/check.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace {

using namespace skein;
using namespace skein::engine;
using namespace skein::test;
namespace data = boost::unit_test::data;

constexpr token_id few_tokens = 6;   // that the text is made of, so that they have penalties
constexpr std::uint32_t whole = 40;  // tokens of the text

/// A choice among six tokens, then some forced ones, how many depends on the choice.
class path final : public sampling::token_rule {
 public:
  [[nodiscard]] std::unique_ptr<token_rule> fork() const override { return std::make_unique<path>(*this); }
  [[nodiscard]] token_id forced() override {
    return left_ > 0 ? static_cast<token_id>(40 + (step_ * 5 + left_) % few_tokens) : no_token;
  }
  [[nodiscard]] bool allow(std::span<std::uint32_t> allowed) override {
    std::ranges::fill(allowed, 0u);
    const auto add = [&](token_id token) { allowed[static_cast<std::size_t>(token) / 32] |= 1u << (token % 32); };
    if (forced() != no_token) return add(forced()), true;
    for (token_id token = 40; token < 40 + few_tokens; ++token) add(token);
    return true;
  }
  void record(token_id token) override {
    check(left_ == 0 || token == forced());  // on the thread of the engine
    left_ = left_ > 0 ? left_ - 1 : static_cast<std::uint32_t>(token - 40) * 4 % 11;
    ++step_;
  }
  [[nodiscard]] bool complete() const override { return step_ == whole; }

 private:
  std::uint32_t step_ = 0, left_ = 0;
};

class paths final : public sampling::constraint {
 public:
  [[nodiscard]] std::unique_ptr<sampling::token_rule> begin() const override { return std::make_unique<path>(); }
  [[nodiscard]] const std::string& field() const override { return field_; }

 private:
  std::string field_ = "grammar";
};

sampling::sampling_params on_path(std::uint64_t seed, std::uint32_t max_tokens = 100) {
  sampling::sampling_params params = seeded(seed, max_tokens);
  params.temperature = 3;
  params.logprobs = true;
  params.top_logprobs = 2;
  params.rule = std::make_shared<paths>();
  return params;
}

/// What a row has generated, and how many ticks it took.
struct walk {
  std::vector<token_id> tokens;
  stop_cause stopped = stop_cause::none;
  std::uint32_t unfed = 0, ticks = 0;

  void take(const skein::engine::row_result& row) {
    ++ticks;
    BOOST_REQUIRE(!row.frozen);
    if (row.unfed > 0) BOOST_REQUIRE(!row.sampled);
    if (row.unfed > 0) unfed = row.unfed;
    if (!row.sampled) return;
    tokens.push_back(row.token);
    tokens.insert(tokens.end(), row.forced.begin(), row.forced.end());
    unfed = 1 + static_cast<std::uint32_t>(row.forced.size());
    stopped = row.stopped;
  }
  [[nodiscard]] bool over() const { return stopped != stop_cause::none; }
};

walk walk_alone(skein::engine::engine& e, const sampling::sampling_params& params) {
  walk done;
  e.start(0, params);
  done.take(prefill(e, 0, ten_tokens, true));
  while (!done.over()) done.take(decode(e, 0));
  return done;
}

/// The state once the slot has fed the last tokens, too.
model::state_value state_after(skein::engine::engine& e, slot_id slot, const walk& done) {
  (void)prefill(e, slot, std::span(done.tokens).last(done.unfed), false);
  return value_of(e, slot);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(forced_rows)

BOOST_DATA_TEST_CASE(tokens_and_states_are_those_of_single_ticks, data::make(engines_under_test())) {
  const auto singly = sample.make({.forced_max = 0}), at_once = sample.make({}),
             by_three = sample.make({.forced_max = 3});
  if (!takes_rules(*singly)) return;
  for (std::uint64_t seed = 1; seed < (sample.in_part() ? 2u : 4u); ++seed) {
    const auto expected = walk_alone(*singly, on_path(seed));
    BOOST_TEST(expected.ticks == whole);
    BOOST_TEST(expected.tokens.size() == whole);
    BOOST_TEST((expected.stopped == stop_cause::stop_id));
    const auto state = state_after(*singly, 0, expected);
    for (auto* e : {at_once.get(), by_three.get()}) {
      const auto got = walk_alone(*e, on_path(seed));
      BOOST_TEST(got.tokens == expected.tokens, boost::test_tools::per_element());
      BOOST_TEST((got.stopped == expected.stopped));
      BOOST_TEST(got.ticks < (e == at_once.get() ? whole / 2 : whole * 3 / 4));
      BOOST_TEST((state_after(*e, 0, got) == state));
    }
  }
}

BOOST_DATA_TEST_CASE(forced_tokens_are_certain, data::make(engines_under_test())) {
  const auto singly = sample.make({.forced_max = 0});
  if (!takes_rules(*singly)) return;
  singly->start(0, on_path(1));
  path rule;
  auto row = prefill(*singly, 0, ten_tokens, true);
  std::size_t certain = 0;
  for (std::uint32_t i = 0; i < 20; ++i) {
    if (rule.forced() != no_token) {
      ++certain;
      BOOST_TEST(row.logprobs.logprob == 0);
      BOOST_TEST(row.logprobs.count == 1u);
      BOOST_TEST(row.logprobs.top[0].token == row.token);
    } else {
      BOOST_TEST(row.logprobs.logprob < 0);
    }
    rule.record(row.token);
    row = decode(*singly, 0);
  }
  BOOST_TEST(certain > 5u);
}

BOOST_DATA_TEST_CASE(a_run_ends_at_a_budget_or_a_stop_id, data::make(engines_under_test())) {
  const auto singly = sample.make({.forced_max = 0}), at_once = sample.make({});
  if (!takes_rules(*singly)) return;
  for (std::uint32_t budget = sample.in_part() ? 5 : 1; budget < 24; budget += sample.in_part() ? 6 : 2) {
    auto params = on_path(2, budget);
    if (budget == 23) params.max_tokens = 100, params.stop_ids = {44};
    if (budget == 17) params.sampled_before = 7;
    const auto expected = walk_alone(*singly, params), got = walk_alone(*at_once, params);
    BOOST_TEST(got.tokens == expected.tokens, boost::test_tools::per_element());
    BOOST_TEST((got.stopped == expected.stopped));
    BOOST_TEST(decode(*at_once, 0).frozen);
    BOOST_TEST((state_after(*at_once, 0, got) == state_after(*singly, 0, expected)));
  }
}

BOOST_DATA_TEST_CASE(a_row_that_goes_on_after_its_end_feeds_the_whole_run, data::make(engines_under_test())) {
  const auto singly = sample.make({.forced_max = 0}), at_once = sample.make({});
  if (!takes_rules(*singly)) return;
  for (std::uint32_t budget = 4; budget < 12; budget += sample.in_part() ? 3 : 1) {
    std::vector<token_id> next;
    for (auto* e : {singly.get(), at_once.get()}) {
      (void)walk_alone(*e, on_path(3, budget));
      e->restart_sampler(0, greedy(4));
      next.push_back(decode(*e, 0).token);
    }
    BOOST_TEST(next[0] == next[1]);
  }
}

BOOST_DATA_TEST_CASE(a_run_moves_with_its_sequence, data::make(engines_under_test())) {
  const auto singly = sample.make({.forced_max = 0}), at_once = sample.make({});
  if (!takes_rules(*singly)) return;
  const auto params = on_path(5);
  const auto expected = walk_alone(*singly, params);
  const auto state = state_after(*singly, 0, expected);
  for (std::uint32_t moved_after = 1; moved_after < 8; moved_after += sample.in_part() ? 3 : 1) {
    walk got;
    parked_sequence parked;
    at_once->start(0, params);
    got.take(prefill(*at_once, 0, ten_tokens, true));
    while (got.ticks < moved_after) got.take(decode(*at_once, 0));
    at_once->park(0, parked);
    BOOST_REQUIRE(at_once->finish().has_value());
    BOOST_TEST(parked.last_tokens == std::vector(got.tokens.end() - got.unfed, got.tokens.end()),
               boost::test_tools::per_element());
    BOOST_TEST(parked.sampler.generated == got.tokens.size());
    at_once->clear(0);
    at_once->unpark(1, params, parked);
    if (moved_after % 2 == 0) got.take(decode(*at_once, 1));
    at_once->start(2, params);
    at_once->copy_state(1, 2);
    at_once->clear(1);
    while (!got.over()) got.take(decode(*at_once, 2));
    BOOST_TEST(got.tokens == expected.tokens, boost::test_tools::per_element());
    BOOST_TEST((state_after(*at_once, 2, got) == state));
    BOOST_REQUIRE(at_once->finish().has_value());
  }
}

BOOST_DATA_TEST_CASE(a_prompt_takes_the_place_of_a_run, data::make(engines_under_test())) {
  const auto e = sample.make({});
  if (!takes_rules(*e)) return;
  e->start(0, on_path(1));
  walk got;
  got.take(prefill(*e, 0, ten_tokens, true));
  while (got.unfed < 3 && !got.over()) got.take(decode(*e, 0));
  BOOST_REQUIRE(got.unfed >= 3u);
  (void)prefill(*e, 0, std::vector<token_id>{9, 8}, false);
  auto fed = ten_tokens;
  fed.insert(fed.end(), got.tokens.begin(), got.tokens.end() - got.unfed);
  fed.insert(fed.end(), {9, 8});
  e->start(1, greedy(1));
  (void)prefill(*e, 1, fed, false);
  BOOST_TEST((value_of(*e, 0) == value_of(*e, 1)));
}

BOOST_DATA_TEST_CASE(a_full_tick_feeds_a_part_of_a_run, data::make(engines_under_test())) {
  const auto singly = sample.make({.forced_max = 0}), e = sample.make({});
  if (!takes_rules(*singly)) return;
  const auto expected = walk_alone(*singly, on_path(1));
  const std::uint32_t room = e->info().max_tick_tokens;
  walk got;
  e->start(0, on_path(1));
  e->start(1, greedy(1));
  got.take(prefill(*e, 0, ten_tokens, true));
  bool waited = false;
  for (std::uint32_t tick = 0; !got.over(); ++tick) {
    tick_plan plan;
    add_decode(plan, 0);
    const std::uint32_t left = tick % 4;  // tokens that the tick has room for beside the planned ones
    if (left < 3) add_prefill(plan, 1, std::vector<token_id>(room - 1 - left, 7), false);
    const auto row = run_tick(*e, plan)[0];
    waited |= row.unfed > 0;
    got.take(row);
  }
  BOOST_TEST(waited);
  BOOST_TEST(got.tokens == expected.tokens, boost::test_tools::per_element());
  BOOST_TEST((state_after(*e, 0, got) == state_after(*singly, 0, expected)));
}

BOOST_DATA_TEST_CASE(rows_with_runs_share_ticks, data::make(engines_under_test())) {
  const auto singly = sample.make({.forced_max = 0}), e = sample.make({});
  if (!takes_rules(*singly)) return;
  std::vector<walk> expected, got(3);
  for (std::uint64_t seed = 1; seed < 4; ++seed) expected.push_back(walk_alone(*singly, on_path(seed)));
  tick_plan plan;
  for (slot_id slot = 0; slot < 3; ++slot) {
    e->start(slot, on_path(slot + 1));
    add_prefill(plan, slot, ten_tokens, true);
  }
  while (!plan.rows.empty()) {
    for (const auto& row : run_tick(*e, plan)) got[row.slot].take(row);
    plan.clear();
    for (slot_id slot = 0; slot < 3; ++slot)
      if (!got[slot].over()) add_decode(plan, slot);
  }
  for (slot_id slot = 0; slot < 3; ++slot)
    BOOST_TEST(got[slot].tokens == expected[slot].tokens, boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(a_copy_taken_while_a_token_is_sampled_leaves_the_rule_in_its_place,
                     data::make(engines_under_test())) {
  const auto e = sample.make({});
  if (!takes_rules(*e)) return;
  const auto params = on_path(4);
  const auto expected = walk_alone(*e, params);
  walk here, there;
  tick_plan plan;
  add_prefill(plan, 0, ten_tokens, true);
  e->start(0, params);
  BOOST_REQUIRE(e->submit(plan).has_value());
  parked_sequence parked;
  e->park(0, parked);
  const auto done = e->collect();
  BOOST_REQUIRE(done.has_value());
  const auto first = (*done)->rows[0];
  here.take(first);
  while (!here.over()) here.take(decode(*e, 0));
  BOOST_TEST(here.tokens == expected.tokens, boost::test_tools::per_element());
  BOOST_REQUIRE(e->finish().has_value());
  e->unpark(1, params, parked);
  there.tokens.assign(expected.tokens.begin(), expected.tokens.begin() + parked.sampler.generated);
  while (!there.over()) there.take(decode(*e, 1));
  BOOST_TEST(there.tokens == expected.tokens, boost::test_tools::per_element());
  BOOST_REQUIRE(e->finish().has_value());
}

BOOST_AUTO_TEST_SUITE_END()
