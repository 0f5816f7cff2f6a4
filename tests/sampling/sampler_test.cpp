// The sampler of one row: sampled tokens against the slow sampler, frequencies against probabilities, penalties by
// hand, and that a sample is a function of logits, parameters and the row's own tokens, regardless of earlier uses of
// the slot.
#include "sampling/sampler.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

#include "sampling/philox.hpp"
#include "tests/sampling/random_cases.hpp"
#include "tests/sampling/slow_sampler.hpp"

using namespace skein;
using namespace skein::sampling;

namespace {

std::vector<float> normal_logits(std::uint32_t vocab, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> logits(vocab);
  for (float& x : logits) x = normal(random);
  return logits;
}

// Draws `count` tokens, each from other logits.
std::vector<token_id> sample_many(sampler& s, std::uint32_t vocab, std::uint32_t first, std::uint32_t count) {
  std::vector<token_id> tokens;
  for (std::uint32_t i = first; i < first + count; ++i) tokens.push_back(s.sample(normal_logits(vocab, i)).token);
  return tokens;
}

sampling_params lively() {
  sampling_params params;
  params.temperature = 1.3f;
  params.top_p = 0.95f;
  params.top_k = 50;
  params.first_penalty = 1;
  params.repeat_penalty = 0.5f;
  params.penalty_decay = 0.99f;
  params.seed = 11;
  return params;
}

// What the penalties of `s` add to a logit of 0.
float penalised_zero(const sampler& s, std::uint32_t vocab, token_id token) {
  std::vector<float> zeros(vocab, 0.0f);
  s.penalise(zeros);
  return zeros[static_cast<std::size_t>(token)];
}

}  // namespace

BOOST_AUTO_TEST_SUITE(one_row)

BOOST_AUTO_TEST_CASE(samples_as_the_slow_sampler) {
  for (std::uint32_t seed = 1; seed <= 2000; ++seed) {
    const bool full = seed % 200 == 0;
    const sampling_case c = random_case(seed, full ? 65536 : 0);
    sampler fast(static_cast<std::uint32_t>(c.logits.size()));
    fast.start(c.params);
    slow_sampler slow(c.params);
    for (std::uint32_t index = 0; index < (full ? 2u : 8u); ++index) {
      const auto kept = slow.kept(c.logits, c.allowed);
      const token_id token = fast.sample(c.logits, c.allowed).token;
      BOOST_TEST_CONTEXT("seed " << seed << " index " << index) {
        BOOST_TEST_REQUIRE(token >= 0);
        BOOST_TEST(kept[static_cast<std::size_t>(token)] > 0);
        BOOST_TEST(miss(kept, token, uniform(c.params.seed, c.params.row, index)) < 1e-5);
      }
      slow.record(token);
    }
  }
}

BOOST_AUTO_TEST_CASE(frequencies_follow_the_kept_weights) {
  constexpr std::uint32_t vocab = 12;
  constexpr int samples = 30000;
  const auto logits = normal_logits(vocab, 1);
  sampling_params params;
  params.temperature = 1.5f;
  params.top_p = 0.9f;
  const auto kept = slow_sampler(params).kept(logits, {});
  const auto chi_squared = [&](const std::vector<int>& counts) {
    double sum = 0;
    for (std::size_t i = 0; i < vocab; ++i) {
      const double expected = samples * kept[i];
      if (kept[i] == 0) BOOST_TEST(counts[i] == 0);
      if (kept[i] > 0) sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    return sum;
  };

  std::vector<int> over_index(vocab), over_seed(vocab), over_row(vocab);
  sampler s(vocab);
  params.seed = 5;
  s.start(params);
  for (int i = 0; i < samples; ++i) ++over_index[static_cast<std::size_t>(s.sample(logits).token)];
  for (int i = 0; i < samples; ++i) {
    params.seed = static_cast<std::uint64_t>(i);
    params.row = 0;
    s.start(params);
    ++over_seed[static_cast<std::size_t>(s.sample(logits).token)];
    params.seed = 5;
    params.row = static_cast<std::uint32_t>(i);
    s.start(params);
    ++over_row[static_cast<std::size_t>(s.sample(logits).token)];
  }
  constexpr double one_in_10000 = 37.4;  // 11 degrees of freedom; fewer when tokens are cut
  BOOST_TEST(chi_squared(over_index) < one_in_10000);
  BOOST_TEST(chi_squared(over_seed) < one_in_10000);
  BOOST_TEST(chi_squared(over_row) < one_in_10000);
}

BOOST_AUTO_TEST_CASE(greedy_settings_agree_and_take_the_lowest_of_equals) {
  sampling_params by_temperature, by_top_p, by_top_k, nearly_zero;
  by_temperature.temperature = 0;
  by_top_p.top_p = 0;
  by_top_k.top_k = 1;
  nearly_zero.temperature = 0.0009f;
  auto logits = normal_logits(300, 2);
  logits[77] = logits[150] = logits[299] = 30;
  for (const auto& params : {by_temperature, by_top_p, by_top_k, nearly_zero}) {
    sampler s(300);
    s.start(params);
    BOOST_TEST(s.sample(logits).token == 77);
  }
}

BOOST_AUTO_TEST_CASE(greedy_sees_penalties_bias_and_mask) {
  sampling_params params;
  params.temperature = 0;
  params.first_penalty = 2;
  params.logit_bias = {{3, 1.5f}, {0, -100.0f}};
  sampler s(4);
  s.start(params);
  const std::vector<float> logits{50, 2, 1, 0};
  BOOST_TEST(s.sample(logits).token == 1);
  BOOST_TEST(s.sample(logits).token == 3);
  BOOST_TEST(s.sample(logits).token == 2);
  BOOST_TEST(s.sample(logits, std::vector<std::uint32_t>{0b1001}).token == 3);
}

BOOST_AUTO_TEST_CASE(a_bias_may_apply_to_some_samples) {
  sampling_params params;
  params.temperature = 0;
  params.logit_bias = {{0, ban, 1, 3}, {1, ban, 2, 0}};
  sampler s(4);
  s.start(params);
  const std::vector<float> logits{4, 3, 2, 1};
  for (const token_id expected : {0, 1, 2, 0}) BOOST_TEST(s.sample(logits).token == expected);
  const auto there = s.save();
  s.start(params);
  BOOST_TEST(s.sample(logits).token == 0);
  s.restore(there);
  BOOST_TEST(s.sample({{1, 3, 2, 0}}).token == 2);  // the second one still counts
}

BOOST_AUTO_TEST_CASE(worked_example_of_two_samples) {
  sampling_params params;
  params.temperature = 0;
  params.first_penalty = 2;
  params.repeat_penalty = 5;
  params.penalty_decay = 0.5f;
  sampler s(8);
  s.start(params);
  const std::vector<float> logits{0, 0, 0, 90, 0, 0, 0, 0};
  BOOST_TEST(s.sample(logits).token == 3);
  BOOST_TEST(penalised_zero(s, 8, 3) == -2);
  BOOST_TEST(s.sample(logits).token == 3);
  BOOST_TEST(penalised_zero(s, 8, 3) == -6);  // 2 * 0.5 + 5
  BOOST_TEST(penalised_zero(s, 8, 2) == 0);
}

BOOST_AUTO_TEST_CASE(repeat_penalty_works_alone) {
  sampling_params params;
  params.repeat_penalty = 3;
  sampler s(8);
  s.start(params);
  s.record(5);
  BOOST_TEST(penalised_zero(s, 8, 5) == 0);
  s.record(5);
  BOOST_TEST(penalised_zero(s, 8, 5) == -3);
}

BOOST_AUTO_TEST_CASE(every_generated_token_decays) {
  sampling_params params;
  params.first_penalty = 8;
  params.penalty_decay = 0.5f;
  sampler s(8);
  s.start(params);
  s.record(1);
  s.record(2);
  s.record(3);
  BOOST_TEST(penalised_zero(s, 8, 1) == -2);
  BOOST_TEST(penalised_zero(s, 8, 2) == -4);
  BOOST_TEST(penalised_zero(s, 8, 3) == -8);
  BOOST_TEST(s.generated() == 3u);
}

BOOST_AUTO_TEST_CASE(bias_outside_the_vocabulary_has_no_effect) {
  sampling_params params;
  params.logit_bias = {{8, 100.0f}, {-1, 100.0f}, {7, 1.0f}};
  sampler s(8);
  s.start(params);
  BOOST_TEST(penalised_zero(s, 8, 7) == 1);
}

BOOST_AUTO_TEST_CASE(penalised_logits_stay_finite) {
  sampling_params params;
  params.first_penalty = 3e38f;
  params.logit_bias = {{2, 100.0f}};
  sampler s(4);
  s.start(params);
  s.record(0);
  s.record(1);
  std::vector<float> logits{-3e38f, -std::numeric_limits<float>::infinity(), std::nanf(""), 0};
  s.penalise(logits);
  BOOST_TEST(logits[0] == std::numeric_limits<float>::lowest());
  BOOST_TEST(logits[1] == std::numeric_limits<float>::lowest());
  BOOST_TEST(logits[2] == 100);
}

BOOST_AUTO_TEST_CASE(recording_equals_sampling) {
  sampler drawer(500), recorder(500);
  drawer.start(lively());
  recorder.start(lively());
  for (const token_id token : sample_many(drawer, 500, 0, 40)) recorder.record(token);
  BOOST_TEST(sample_many(drawer, 500, 40, 40) == sample_many(recorder, 500, 40, 40));
}

BOOST_AUTO_TEST_CASE(penalise_then_sample_equals_sample) {
  sampling_params params = lively();
  params.logprobs = true;
  params.top_logprobs = 3;
  params.logit_bias = {{4, 2.0f}};
  sampler whole(500), parts(500);
  whole.start(params);
  parts.start(params);
  for (std::uint32_t i = 0; i < 40; ++i) {
    const auto raw = normal_logits(500, i);
    auto penalised = raw;
    parts.penalise(penalised);
    const auto a = whole.sample(raw);
    const auto b = parts.sample_penalised(penalised, raw);
    BOOST_TEST(a.token == b.token);
    BOOST_TEST(a.logprobs.logprob == b.logprobs.logprob);
    BOOST_TEST(a.logprobs.logprob == log_probabilities(raw, a.token, 0).logprob);
    BOOST_TEST(a.logprobs.count == 3u);
  }
}

BOOST_AUTO_TEST_CASE(a_restored_row_continues_as_if_never_parked) {
  sampler stays(500), leaves(500), other(500);
  stays.start(lively());
  leaves.start(lively());
  BOOST_TEST(sample_many(stays, 500, 0, 50) == sample_many(leaves, 500, 0, 50));
  const sampler::saved parked = leaves.save();
  leaves.start({});
  sample_many(leaves, 500, 900, 10);
  sample_many(other, 500, 700, 10);
  other.start(lively());
  other.restore(parked);
  BOOST_TEST(other.generated() == 50u);
  BOOST_TEST(sample_many(stays, 500, 50, 50) == sample_many(other, 500, 50, 50));
}

BOOST_AUTO_TEST_CASE(the_slots_past_leaves_no_trace) {
  sampler fresh(500), used(500);
  sampling_params past;
  past.first_penalty = 30;
  past.top_p = 0.99f;
  past.logit_bias = {{1, 50.0f}};
  used.start(past);
  const std::vector<std::uint32_t> allowed(16, 0x0f0f0f0f);
  for (std::uint32_t i = 0; i < 30; ++i) BOOST_TEST(used.sample(normal_logits(500, i), allowed).token >= 0);
  fresh.start(lively());
  used.start(lively());
  BOOST_TEST(used.generated() == 0u);
  BOOST_TEST(sample_many(fresh, 500, 0, 60) == sample_many(used, 500, 0, 60));
}

BOOST_AUTO_TEST_CASE(logits_of_the_caller_stay_as_they_are) {
  sampling_params params = lively();
  params.logit_bias = {{1, 50.0f}};
  sampler s(100);
  s.start(params);
  const auto before = normal_logits(100, 3);
  auto logits = before;
  BOOST_TEST(s.sample(logits, std::vector<std::uint32_t>(4, 0xffu)).token >= 0);
  BOOST_TEST(logits == before);
}

BOOST_AUTO_TEST_CASE(stop_ids) {
  sampling_params params;
  params.stop_ids = {0, 261};
  sampler s(300);
  s.start(params);
  BOOST_TEST(s.is_stop(0));
  BOOST_TEST(s.is_stop(261));
  BOOST_TEST(!s.is_stop(1));
  s.start({});
  BOOST_TEST(!s.is_stop(0));
}

BOOST_AUTO_TEST_CASE(a_prior_of_a_prompt_penalises_as_if_its_tokens_had_been_sampled) {
  sampling_params params;
  params.first_penalty = 2;
  params.repeat_penalty = 0.5f;
  params.lasting_penalty = 0.25f;
  params.penalty_decay = 0.9f;
  const std::vector<token_id> prompt{3, 1, 3, 3, 2, 1};
  sampler sampled(8);
  sampled.start(params);
  for (const token_id token : prompt) sampled.record(token);

  params.prior = std::make_shared<const std::vector<token_penalty>>(penalties_of(prompt, params));
  sampler started(8);
  started.start(params);
  BOOST_TEST(started.generated() == 0u);
  std::vector<float> expected(8, 1.0f), penalised(8, 1.0f);
  sampled.penalise(expected);
  started.penalise(penalised);
  for (std::size_t i = 0; i < 8; ++i) BOOST_TEST(std::abs(penalised[i] - expected[i]) < 1e-6f);
  BOOST_TEST(penalised[4] == 1.0f);
  BOOST_TEST(penalised[3] < penalised[2]);
  started.record(3);  // not for the first time
  sampled.record(3);
  BOOST_TEST(std::abs(started.save().penalties.back().penalty - sampled.save().penalties.front().penalty) < 1e-6f);
  BOOST_TEST(penalties_of({}, params).empty());
}

BOOST_AUTO_TEST_SUITE_END()
