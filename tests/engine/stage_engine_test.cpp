// Shows the arithmetic's side of a tick with stages that check what they are given (toy_stages): broken logits stop
// nothing, the sizes of the stages are kept whatever a tick asks for, and frozen slots are not run.
#include "engine/stages/stage_engine.hpp"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <optional>

#include "engine/stages/stage_backend.hpp"
#include "tests/engine/engine_fixture.hpp"
#include "tests/engine/toy_stages.hpp"
#include "tests/support/failing_new.hpp"

namespace {

using namespace skein;
using namespace skein::engine;
using namespace skein::test;

stage_engine_options toy_shape(const kernels::stage_limits& limits) {
  return {.device = "toy",
          .model_identity = "abc",
          .weight_type = "none",
          .state = {.layers = toy_stages::layers, .embd = 1},
          .layers = toy_stages::layers,
          .vocab = 61,
          .max_tick_rows = 8,
          .limits = limits};
}

std::unique_ptr<skein::engine::engine> make_toy(const kernels::stage_limits& limits, bool broken_logits) {
  return make_stage_engine(
      std::make_unique<toy_stages>(toy_stages::options{.vocab = 61, .limits = limits, .broken_logits = broken_logits}),
      toy_shape(limits));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stage_engine)

BOOST_AUTO_TEST_CASE(tells_the_sizes_of_its_stages) {
  const auto e = make_toy({.slots = 5, .max_rows = 16, .max_logit_rows = 4}, false);
  BOOST_TEST(e->info().device == "toy");
  BOOST_TEST(e->info().model_identity == "abc");
  BOOST_TEST(e->info().vocab == 61u);
  BOOST_TEST(e->info().memory.weight_bytes == 1000u);
  BOOST_TEST(e->info().memory.activation_bytes == 100u + 4 * 61 * sizeof(float));
}

BOOST_AUTO_TEST_CASE(logits_do_not_depend_on_the_pieces_of_the_head) {
  std::vector<float> expected;
  for (const std::uint32_t rows : {1u, 2u, 5u, 64u}) {
    const auto e = make_toy({.slots = 1, .max_rows = 64, .max_logit_rows = rows}, false);
    e->start(0, greedy(1));
    tick_plan plan;
    row& r = add_prefill(plan, 0, six_tokens, false);
    r.kind = row_kind::score;
    r.logits = logits_wanted::all;
    const auto result = run_tick(*e, plan)[0];
    if (expected.empty()) expected = result.logits;
    BOOST_TEST(result.logits == expected, boost::test_tools::per_element());
    BOOST_TEST(result.scores.size() == six_tokens.size() - 1);
  }
}

BOOST_AUTO_TEST_CASE(broken_logits_still_give_tokens) {
  const auto e = make_toy({.slots = 4, .max_rows = 32, .max_logit_rows = 4}, true);
  const auto params = seeded(1, 20);
  const auto text = generate_alone(*e, 0, six_tokens, params, 2);
  BOOST_TEST(text.tokens.size() == 20u);
  for (const token_id t : text.tokens) BOOST_TEST((t >= 0 && t < 61));
  BOOST_TEST(generate_alone(*e, 1, six_tokens, params, 6) == text);

  tick_plan plan;
  for (slot_id s = 0; s < 2; ++s) {
    e->start(s, params);
    add_prefill(plan, s, six_tokens, true).group = 1;
  }
  e->start(2, params);
  add_prefill(plan, 2, six_tokens, true).kind = row_kind::score;
  const auto rows = run_tick(*e, plan);
  for (const auto& r : rows) {
    BOOST_TEST((r.token >= 0 && r.token < 61));
    BOOST_TEST(!r.finite);
  }
}

BOOST_AUTO_TEST_CASE(a_state_that_finds_no_memory_becomes_empty) {
  const auto shape = toy_shape({.slots = 1, .max_rows = 16, .max_logit_rows = 4});
  stage_backend backend(std::make_unique<toy_stages>(toy_stages::options{.vocab = 61, .limits = shape.limits}), shape);
  backend.start(0, greedy(1));
  model::state_value state;
  std::optional<result<void>> outcome;
  {
    const failing_new lack(1);
    outcome = backend.read_state(0, state);
  }
  BOOST_TEST(outcome->has_value());
  BOOST_TEST(state.bytes.empty());
  BOOST_TEST(backend.read_state(0, state).has_value());
  BOOST_TEST(!state.bytes.empty());
}

BOOST_AUTO_TEST_SUITE_END()
