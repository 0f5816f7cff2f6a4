// Shows what engine.hpp says of draws that are not plain: under a mask, from a group's mixture, and of logits and
// scores that leave the engine. One case a rule, on every line of engines_under_test().
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

// The bits of all logits of one row, for exact comparison.
bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(
      a, b, [](float x, float y) { return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y); });
}

double log_sum_exp(std::span<const float> logits) {
  const double top = *std::ranges::max_element(logits);
  return top + std::log(std::transform_reduce(logits.begin(), logits.end(), 0.0, std::plus<>(),
                                              [&](float z) { return std::exp(z - top); }));
}

std::vector<std::uint32_t> only(const engine_info& info, std::initializer_list<token_id> tokens) {
  std::vector<std::uint32_t> mask((info.vocab + 31) / 32);
  for (const token_id t : tokens) mask[static_cast<std::size_t>(t) / 32] |= 1u << (t % 32);
  return mask;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(engine_samples)

BOOST_DATA_TEST_CASE(masked_sampling_waits_for_its_mask, data::make(engines_under_test())) {
  const auto e = sample.make({});
  auto params = greedy(3);
  params.logprobs = true;
  params.top_logprobs = 2;
  const auto free = generate_alone(*e, 0, ten_tokens, params, ten_tokens.size());

  e->start(0, params);
  e->start(1, params);
  tick_plan plan;
  add_prefill(plan, 0, ten_tokens, true).sync = true;
  add_prefill(plan, 1, ten_tokens, true);
  const auto rows = run_tick(*e, plan);
  BOOST_TEST(rows[0].awaits_sample);
  BOOST_TEST(!rows[0].sampled);
  BOOST_TEST(rows[0].logits.size() == e->info().vocab);
  BOOST_TEST(rows[1].token == free.tokens[0]);

  // Of two tokens, the likelier one is drawn; its log-probability is that of the unmasked logits.
  const token_id likelier = rows[0].logits[40] >= rows[0].logits[50] ? 40 : 50;
  const auto sampled = e->sample(0, only(e->info(), {40, 50}));
  BOOST_REQUIRE(sampled.has_value());
  BOOST_TEST(sampled->token == likelier);
  BOOST_TEST(sampled->sampled);
  const auto expected = sampling::log_probabilities(rows[0].logits, likelier, 2);
  BOOST_TEST(sampled->logprobs.logprob == expected.logprob);
  BOOST_TEST(sampled->logprobs.count == 2u);

  // It is the token that the next decode feeds.
  auto fed = ten_tokens;
  fed.push_back(likelier);
  e->start(2, greedy(1));
  BOOST_TEST(decode(*e, 0).token == prefill(*e, 2, fed, true).token);

  plan.clear();
  add_decode(plan, 0).sync = true;
  BOOST_TEST(run_tick(*e, plan)[0].awaits_sample);
  const auto last = e->sample(0, {});
  BOOST_REQUIRE(last.has_value());
  BOOST_CHECK(last->stopped == stop_cause::budget);
  BOOST_TEST(run_tick(*e, plan)[0].frozen);
}

BOOST_DATA_TEST_CASE(a_prior_penalises_from_the_first_sample_on, data::make(engines_under_test())) {
  const auto e = sample.make({});
  const auto free = generate_alone(*e, 0, ten_tokens, greedy(3), ten_tokens.size());
  auto params = greedy(3);
  params.prior = std::make_shared<const std::vector<sampling::token_penalty>>(
      std::vector<sampling::token_penalty>{{7, 0.0f}, {free.tokens[0], 1e6f}});
  const auto held = generate_alone(*e, 1, ten_tokens, params, ten_tokens.size());
  BOOST_TEST(held.tokens[0] != free.tokens[0]);
  e->start(2, greedy(3));
  e->restart_sampler(2, params);
  BOOST_TEST(prefill(*e, 2, ten_tokens, true).token == held.tokens[0]);
  e->start(2, greedy(3));
  BOOST_TEST(prefill(*e, 2, ten_tokens, true).token == free.tokens[0]);
}

BOOST_DATA_TEST_CASE(logits_without_a_sampling_row_are_dropped, data::make(engines_under_test())) {
  const auto e = sample.make({});
  const auto expected = generate_alone(*e, 0, ten_tokens, greedy(3), ten_tokens.size());
  tick_plan plan;
  e->start(0, greedy(3));
  add_prefill(plan, 0, std::span(ten_tokens).first(4), true).sync = true;
  BOOST_TEST(run_tick(*e, plan)[0].awaits_sample);
  BOOST_TEST(prefill(*e, 0, std::span(ten_tokens).subspan(4), true).token == expected.tokens[0]);
  BOOST_TEST(decode(*e, 0).token == expected.tokens[1]);

  e->start(0, greedy(3));
  const auto fresh = value_of(*e, 0);
  BOOST_TEST(run_tick(*e, plan)[0].awaits_sample);
  e->write_state(0, fresh);
  parked_sequence parked;  // between logits and draw a slot cannot be parked
  e->park(0, parked);
  BOOST_REQUIRE(e->finish().has_value());
  BOOST_TEST((parked.state == fresh));
}

BOOST_DATA_TEST_CASE(a_group_of_equal_rows_samples_as_one_row, data::make(engines_under_test())) {
  const auto e = sample.make({});
  auto params = seeded(19, 7);
  params.logprobs = true;
  const auto expected = generate_alone(*e, 0, ten_tokens, params, ten_tokens.size());

  tick_plan plan;
  for (slot_id s = 0; s < 2; ++s) {
    e->start(s, params);
    row& r = add_prefill(plan, s, ten_tokens, true);
    r.group = 9;
    r.weight = 0.25f;  // two equal shares: the mean is exact
  }
  generated_text text;
  while (text.stopped == stop_cause::none) {
    const auto rows = run_tick(*e, plan);
    BOOST_TEST(rows[0].token == rows[1].token);
    BOOST_CHECK(rows[0].stopped == rows[1].stopped);
    text.tokens.push_back(rows[0].token);
    text.logprobs.push_back(rows[0].logprobs.logprob);
    text.stopped = rows[1].stopped;
    plan.clear();
    for (slot_id s = 0; s < 2; ++s) {
      row& r = add_decode(plan, s);
      r.group = 9;
      r.weight = 0.25f;
    }
  }
  BOOST_TEST(text == expected);
  for (const auto& r : run_tick(*e, plan)) BOOST_TEST(r.frozen);
}

BOOST_DATA_TEST_CASE(a_group_samples_from_the_weighted_mean, data::make(engines_under_test())) {
  const auto e = sample.make({});
  auto biased = greedy(4);
  biased.logit_bias = {{21, 3.5f}};
  const std::vector<std::vector<token_id>> prompts = {{4, 8, 15}, {16, 23, 42, 7}, {1}};
  const std::vector<float> weights = {1.0f, 2.0f, 5.0f};
  tick_plan plan;
  for (slot_id s = 0; s < 3; ++s) {
    e->start(s, s == 1 ? biased : greedy(4));
    row& r = add_prefill(plan, s, prompts[s], true);
    r.group = 1;
    r.weight = weights[s];
    r.logits = logits_wanted::last;
  }
  e->start(3, greedy(4));
  add_prefill(plan, 3, ten_tokens, true);  // a stranger among them
  const auto rows = run_tick(*e, plan);
  std::vector<double> mean(e->info().vocab);
  for (slot_id s = 0; s < 3; ++s)
    for (std::size_t v = 0; v < mean.size(); ++v)
      mean[v] += weights[s] / 8.0 * (rows[s].logits[v] + (s == 1 && v == 21 ? 3.5 : 0.0));
  const auto best = static_cast<token_id>(std::ranges::max_element(mean) - mean.begin());
  for (slot_id s = 0; s < 3; ++s) BOOST_TEST(rows[s].token == best);
  BOOST_TEST(rows[3].token == generate_alone(*e, 3, ten_tokens, greedy(1), ten_tokens.size()).tokens[0]);

  // The token goes into every state of the group.
  for (slot_id s = 0; s < 3; ++s) {
    auto fed = prompts[s];
    fed.push_back(best);
    e->start(3, greedy(4));
    BOOST_TEST(decode(*e, s).token == [&] {
      if (s == 1) e->restart_sampler(3, biased);
      return prefill(*e, 3, fed, true).token;
    }());
  }
}

BOOST_DATA_TEST_CASE(logits_are_handed_out_and_do_not_disturb, data::make(engines_under_test())) {
  const auto e = sample.make({});
  const std::size_t vocab = e->info().vocab;
  const auto params = seeded(23, 5);
  const auto expected = generate_alone(*e, 0, ten_tokens, params, ten_tokens.size());
  e->start(0, params);
  tick_plan plan;
  add_prefill(plan, 0, ten_tokens, true).logits = logits_wanted::all;
  const auto all = run_tick(*e, plan)[0];
  BOOST_TEST(all.logits.size() == ten_tokens.size() * vocab);
  BOOST_TEST(all.token == expected.tokens[0]);
  for (std::size_t n = 1; n <= ten_tokens.size(); ++n) {
    e->start(1, params);
    plan.clear();
    add_prefill(plan, 1, std::span(ten_tokens).first(n), false).logits = logits_wanted::last;
    const auto last = run_tick(*e, plan)[0];
    BOOST_TEST(!last.sampled);
    BOOST_TEST(same_bits(last.logits, std::span(all.logits).subspan((n - 1) * vocab, vocab)));
  }
  plan.clear();
  add_decode(plan, 0).logits = logits_wanted::all;
  const auto decoded = run_tick(*e, plan)[0];
  BOOST_TEST(decoded.logits.size() == vocab);
  BOOST_TEST(decoded.token == expected.tokens[1]);
}

BOOST_DATA_TEST_CASE(scores_are_the_log_softmax_of_the_logits, data::make(engines_under_test())) {
  const auto e = sample.make({});
  const std::size_t vocab = e->info().vocab;
  auto params = greedy(5);
  params.logprobs = true;
  params.top_logprobs = 3;
  const auto expected = generate_alone(*e, 0, ten_tokens, params, ten_tokens.size());

  e->start(1, params);
  tick_plan plan;
  row& r = add_prefill(plan, 1, ten_tokens, true);
  r.kind = row_kind::score;
  r.score_top = 3;
  r.logits = logits_wanted::all;
  const auto scored = run_tick(*e, plan)[0];
  BOOST_TEST(scored.token == expected.tokens[0]);
  BOOST_REQUIRE(scored.scores.size() == ten_tokens.size() - 1);
  for (std::size_t i = 0; i + 1 < ten_tokens.size(); ++i) {
    const auto logits = std::span(scored.logits).subspan(i * vocab, vocab);
    const double logprob = logits[static_cast<std::size_t>(ten_tokens[i + 1])] - log_sum_exp(logits);
    BOOST_TEST(scored.scores[i].logprob == static_cast<float>(logprob), boost::test_tools::tolerance(1e-4f));
    BOOST_TEST(scored.scores[i].count == 3u);
    BOOST_TEST(scored.scores[i].top[0].token == std::ranges::max_element(logits) - logits.begin());
  }

  // Asked for scores only: the same, without logits; and one token alone has none.
  e->start(2, params);
  plan.rows[0].slot = 2;
  plan.rows[0].sample = false;
  plan.rows[0].logits = logits_wanted::none;
  const auto bare = run_tick(*e, plan)[0];
  BOOST_TEST(bare.logits.empty());
  BOOST_REQUIRE(bare.scores.size() == scored.scores.size());
  for (std::size_t i = 0; i < bare.scores.size(); ++i) BOOST_TEST(bare.scores[i].logprob == scored.scores[i].logprob);
  plan.rows[0].tokens = 1;
  BOOST_TEST(run_tick(*e, plan)[0].scores.empty());

  // Cut in two, where the first piece says what follows it: all scores again.
  e->start(3, params);
  std::vector<float> cut;
  for (const auto& [begin, end] : {std::pair<std::size_t, std::size_t>{0, 4}, {4, ten_tokens.size()}}) {
    tick_plan piece;
    row& half = add_prefill(piece, 3, std::span(ten_tokens).subspan(begin, end - begin), false);
    half.kind = row_kind::score;
    if (end < ten_tokens.size()) half.score_next = ten_tokens[end];
    const auto result = run_tick(*e, piece)[0];
    for (const auto& score : result.scores) cut.push_back(score.logprob);
  }
  BOOST_REQUIRE(cut.size() == scored.scores.size());
  for (std::size_t i = 0; i < cut.size(); ++i) BOOST_TEST(cut[i] == scored.scores[i].logprob);
}

BOOST_AUTO_TEST_SUITE_END()
