// Shows what engine.hpp says of rows with a rule, on every engine that takes them: masked tokens only, beside rows
// without one; the rule's position moves with the sequence; and the text's end ends the row.
#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <string>

#include "tests/engine/engine_fixture.hpp"

namespace {

using namespace skein;
using namespace skein::engine;
using namespace skein::test;
namespace data = boost::unit_test::data;

/// The k-th token of a row is 10 * k + 1 .. 10 * k + 3. The text is complete after `length` tokens; after `dead` ones
/// nothing is allowed.
class staircase final : public sampling::token_rule {
 public:
  staircase(std::uint32_t length, std::uint32_t dead) : length_(length), dead_(dead) {}
  [[nodiscard]] std::unique_ptr<token_rule> fork() const override { return std::make_unique<staircase>(*this); }
  [[nodiscard]] bool allow(std::span<std::uint32_t> allowed) override {
    std::ranges::fill(allowed, 0u);
    if (step_ == dead_) return false;
    for (std::uint32_t token = 10 * step_ + 1; token <= 10 * step_ + 3; ++token)
      allowed[token / 32] |= 1u << (token % 32);
    return true;
  }
  void record(token_id) override { ++step_; }
  [[nodiscard]] bool complete() const override { return step_ == length_; }

 private:
  std::uint32_t length_, dead_, step_ = 0;
};

class stairs final : public sampling::constraint {
 public:
  explicit stairs(std::uint32_t length, std::uint32_t dead = ~0u) : length_(length), dead_(dead) {}
  [[nodiscard]] std::unique_ptr<sampling::token_rule> begin() const override {
    return std::make_unique<staircase>(length_, dead_);
  }
  [[nodiscard]] const std::string& field() const override { return field_; }

 private:
  std::uint32_t length_, dead_;
  std::string field_ = "grammar";
};

sampling::sampling_params on_stairs(sampling::sampling_params params, std::uint32_t length, std::uint32_t dead = ~0u) {
  params.rule = std::make_shared<stairs>(length, dead);
  return params;
}

bool is_step(token_id token, std::size_t step) {
  const auto first = static_cast<token_id>(10 * step + 1);
  return token >= first && token <= first + 2;
}

bool climbs(const std::vector<token_id>& tokens, std::size_t from = 0) {
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (!is_step(tokens[i], from + i)) return false;
  return true;
}

bool mixes_with_rules(const skein::engine::engine& e) { return takes_rules(e) && !e.info().rules_wait; }

}  // namespace

BOOST_AUTO_TEST_SUITE(constrained_rows)

BOOST_AUTO_TEST_CASE(there_are_engines_that_take_rules) {
  std::size_t taking = 0, mixing = 0;
  for (const auto& line : engines_under_test()) {
    const auto e = line.make({});
    taking += takes_rules(*e), mixing += mixes_with_rules(*e);
  }
  BOOST_TEST(taking >= 2u);
  BOOST_TEST(mixing >= 1u);
}

BOOST_DATA_TEST_CASE(a_row_samples_allowed_tokens_until_its_text_is_complete, data::make(engines_under_test())) {
  const auto e = sample.make({});
  if (!takes_rules(*e)) return;
  for (const auto& params : {greedy(20), seeded(7, 20)}) {
    const auto text = generate_alone(*e, 0, ten_tokens, on_stairs(params, 5), 4);
    BOOST_TEST(text.tokens.size() == 5u);
    BOOST_TEST(climbs(text.tokens));
    BOOST_TEST((text.stopped == stop_cause::stop_id));
    const auto cut = generate_alone(*e, 0, ten_tokens, on_stairs(params, 5, 3), 4);
    BOOST_TEST((cut.stopped == stop_cause::budget));
    BOOST_TEST(cut.tokens.size() == 4u);
  }
}

BOOST_DATA_TEST_CASE(rows_with_and_without_a_rule_share_a_tick, data::make(engines_under_test())) {
  const auto e = sample.make({});
  if (!takes_rules(*e)) return;
  const auto free_alone = generate_alone(*e, 0, ten_tokens, seeded(3, 5), ten_tokens.size());
  const auto bound_alone = generate_alone(*e, 0, ten_tokens, on_stairs(seeded(3, 5), 9), ten_tokens.size());
  BOOST_TEST(free_alone.tokens != bound_alone.tokens);
  for (slot_id slot = 0; slot < 3; ++slot) e->start(slot, slot % 2 == 0 ? seeded(3, 5) : on_stairs(seeded(3, 5), 9));
  tick_plan plan;
  for (slot_id slot = 0; slot < 3; ++slot) add_prefill(plan, slot, ten_tokens, true);
  std::vector<std::vector<token_id>> tokens(3);
  for (int tick = 0; tick < 5; ++tick) {
    for (const auto& row : run_tick(*e, plan)) tokens[row.slot].push_back(row.token);
    plan.clear();
    for (slot_id slot = 0; slot < 3; ++slot) add_decode(plan, slot);
  }
  for (slot_id slot = 0; slot < 3; ++slot)
    BOOST_TEST(tokens[slot] == (slot % 2 == 0 ? free_alone : bound_alone).tokens, boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(the_position_in_the_text_moves_with_the_sequence, data::make(engines_under_test())) {
  const auto e = sample.make({});
  if (!takes_rules(*e)) return;
  const auto params = on_stairs(seeded(5, 20), 6);
  const auto expected = generate_alone(*e, 0, ten_tokens, params, ten_tokens.size());
  BOOST_REQUIRE(expected.tokens.size() == 6u);

  std::vector<token_id> tokens;
  e->start(0, params);
  tokens.push_back(prefill(*e, 0, ten_tokens, true).token);
  tokens.push_back(decode(*e, 0).token);
  parked_sequence parked;
  e->park(0, parked);
  BOOST_REQUIRE(e->finish().has_value());
  e->clear(0);
  e->unpark(1, params, parked);
  tokens.push_back(decode(*e, 1).token);
  e->start(2, params);
  e->copy_state(1, 2);
  e->clear(1);
  skein::engine::row_result last;
  while (last.stopped == stop_cause::none) tokens.push_back((last = decode(*e, 2)).token);
  BOOST_TEST(tokens == expected.tokens, boost::test_tools::per_element());
  BOOST_TEST((last.stopped == stop_cause::stop_id));
  BOOST_REQUIRE(e->finish().has_value());
}

BOOST_DATA_TEST_CASE(a_mixture_follows_the_rule_of_all_its_rows, data::make(engines_under_test())) {
  const auto e = sample.make({});
  if (!mixes_with_rules(*e)) return;
  tick_plan plan;
  for (slot_id slot = 0; slot < 2; ++slot) {
    e->start(slot, on_stairs(seeded(9, 20), 4));
    auto& row = add_prefill(plan, slot, std::span(ten_tokens).subspan(slot), true);
    row.group = 1;
  }
  std::vector<token_id> tokens;
  stop_cause stopped = stop_cause::none;
  while (stopped == stop_cause::none && tokens.size() < 20) {
    const auto rows = run_tick(*e, plan);
    BOOST_TEST(rows[0].token == rows[1].token);
    tokens.push_back(rows[0].token);
    stopped = rows[0].stopped;
    plan.clear();
    for (slot_id slot = 0; slot < 2; ++slot) add_decode(plan, slot).group = 1;
  }
  BOOST_TEST(tokens.size() == 4u);
  BOOST_TEST(climbs(tokens));
}

BOOST_DATA_TEST_CASE(other_rows_run_ahead, data::make(engines_under_test())) {
  const auto e = sample.make({});
  if (!takes_rules(*e)) return;
  const auto free_alone = generate_alone(*e, 0, ten_tokens, seeded(3, 8), ten_tokens.size());
  const auto bound_alone = generate_alone(*e, 0, ten_tokens, on_stairs(seeded(3, 5), 9), ten_tokens.size());
  e->start(0, seeded(3, 8));
  e->start(1, on_stairs(seeded(3, 5), 9));
  std::vector<std::vector<token_id>> tokens(2);
  tick_plan both, free;
  add_prefill(both, 0, ten_tokens, true);
  add_prefill(both, 1, ten_tokens, true);
  const auto collect = [&] {
    const auto done = e->collect();
    BOOST_REQUIRE(done.has_value());
    for (const auto& row : (*done)->rows)
      if (row.sampled) tokens[row.slot].push_back(row.token);
  };
  BOOST_REQUIRE(e->submit(both).has_value());
  both.clear();
  add_decode(both, 0);
  add_decode(both, 1);
  add_decode(free, 0);
  for (int i = 0; i < 3; ++i) {  // the row with a rule rests in every other tick
    BOOST_REQUIRE(e->submit(free).has_value());
    collect();
    BOOST_REQUIRE(e->submit(both).has_value());
    collect();
  }
  collect();
  BOOST_TEST(tokens[0] == std::vector(free_alone.tokens.begin(), free_alone.tokens.begin() + 7),
             boost::test_tools::per_element());
  BOOST_TEST(tokens[1] == std::vector(bound_alone.tokens.begin(), bound_alone.tokens.begin() + 4),
             boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(a_new_sequence_has_no_rule_of_the_one_before, data::make(engines_under_test())) {
  const auto e = sample.make({});
  if (!takes_rules(*e)) return;
  const auto expected = generate_alone(*e, 0, ten_tokens, seeded(2, 6), ten_tokens.size());
  (void)generate_alone(*e, 1, ten_tokens, on_stairs(seeded(2, 6), 9), ten_tokens.size());
  BOOST_TEST(generate_alone(*e, 1, ten_tokens, seeded(2, 6), ten_tokens.size()) == expected);
}

BOOST_AUTO_TEST_SUITE_END()
