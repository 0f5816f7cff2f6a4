// What min_p, top_k and top_p keep: single cases that can be checked by hand, then thousands of random ones, each
// compared token by token with the slow sampler.
#include "sampling/selection.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/sampling/random_cases.hpp"
#include "tests/sampling/slow_sampler.hpp"

using namespace skein::sampling;

namespace {

std::vector<double> kept_weights(std::span<const float> logits, std::span<const std::uint32_t> allowed,
                                 const sampling_params& params) {
  logit_row row(static_cast<std::uint32_t>(logits.size()));
  row.load(logits);
  row.scan(allowed);
  std::vector<candidate> scratch;
  const kept_tokens kept = select(row, params, scratch);
  std::vector<double> weights(logits.size());
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = kept.weight(row.block_logits(i / block_tokens)[i % block_tokens],
                             row.block_weights(i / block_tokens)[i % block_tokens]);
    sum += weights[i];
  }
  for (double& w : weights) w /= sum;
  return weights;
}

std::vector<float> logits_of(std::initializer_list<double> probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

void check_kept(std::initializer_list<double> probabilities, const sampling_params& params,
                std::initializer_list<double> expected) {
  const auto kept = kept_weights(logits_of(probabilities), {}, params);
  for (std::size_t i = 0; i < kept.size(); ++i) BOOST_TEST(std::abs(kept[i] - expected.begin()[i]) < 1e-6);
}

sampling_params limits(float top_p, std::int32_t top_k = 0, float min_p = 0) {
  sampling_params params;
  params.top_p = top_p;
  params.top_k = top_k;
  params.min_p = min_p;
  return params;
}

void compare(const sampling_case& c) {
  sampling_params params = c.params;
  params.logit_bias.clear();  // the sampler's work, not the selection's
  params.noise = 0;           // likewise
  const auto expected = slow_sampler(params).kept(c.logits, c.allowed);
  const auto kept = kept_weights(c.logits, c.allowed, params);
  double worst = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) worst = std::max(worst, std::abs(kept[i] - expected[i]));
  BOOST_TEST(worst < 3e-6);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(selection)

BOOST_AUTO_TEST_CASE(no_limit_keeps_the_softmax) { check_kept({0.5, 0.3, 0.2}, limits(1), {0.5, 0.3, 0.2}); }

BOOST_AUTO_TEST_CASE(the_kept_mass_is_exactly_top_p) {
  check_kept({0.1, 0.5, 0.4}, limits(0.7f), {0, 0.5 / 0.7, 0.2 / 0.7});
  check_kept({0.1, 0.5, 0.4}, limits(0.2f), {0, 1, 0});
}

BOOST_AUTO_TEST_CASE(ties_share_what_is_left) {
  check_kept({0.2, 0.4, 0.2, 0.2}, limits(0.7f), {0.1 / 0.7, 0.4 / 0.7, 0.1 / 0.7, 0.1 / 0.7});
  check_kept({0.2, 0.4, 0.2, 0.2}, limits(1, 2), {0.2 / 3 / 0.6, 0.4 / 0.6, 0.2 / 3 / 0.6, 0.2 / 3 / 0.6});
}

BOOST_AUTO_TEST_CASE(the_stricter_limit_wins) {
  check_kept({0.4, 0.3, 0.2, 0.1}, limits(0.6f, 3), {0.4 / 0.6, 0.2 / 0.6, 0, 0});
  check_kept({0.4, 0.3, 0.2, 0.1}, limits(0.95f, 2), {0.4 / 0.7, 0.3 / 0.7, 0, 0});
}

BOOST_AUTO_TEST_CASE(min_p_goes_first_and_the_mass_is_of_the_full_softmax) {
  check_kept({0.5, 0.3, 0.2}, limits(1, 0, 0.5f), {0.5 / 0.8, 0.3 / 0.8, 0});
  check_kept({0.5, 0.3, 0.2}, limits(0.9f, 0, 0.5f), {0.5 / 0.8, 0.3 / 0.8, 0});
  check_kept({0.5, 0.3, 0.2}, limits(0.6f, 0, 0.5f), {0.5 / 0.6, 0.1 / 0.6, 0});
  check_kept({0.4, 0.4, 0.2}, limits(1, 0, 1), {0.5, 0.5, 0});
  // exp(-1) is 0.36787944, a little less than this min_p, though its logarithm rounds to -1.
  const auto kept = kept_weights(std::vector<float>{0, -1}, {}, limits(1, 0, 0.36787945f));
  BOOST_TEST(kept[1] == 0);
}

BOOST_AUTO_TEST_CASE(filters_may_come_before_the_temperature) {
  auto params = limits(0.6f);
  params.filters_first = true;
  check_kept({0.1, 0.5, 0.4}, params, {0, 0.5 / 0.9, 0.4 / 0.9});  // who passes top_p is kept whole
  params.temperature = 0.5f;
  check_kept({0.1, 0.5, 0.4}, params, {0, 0.25 / 0.41, 0.16 / 0.41});
  params.top_k = 2;
  params.top_p = 1;
  check_kept({0.2, 0.4, 0.2, 0.2}, params, {0.04 / 0.28, 0.16 / 0.28, 0.04 / 0.28, 0.04 / 0.28});  // all ties
}

BOOST_AUTO_TEST_CASE(a_flat_row_stays_flat) {
  const std::vector<float> flat(65536, -3.0f);
  for (const auto& params : {limits(0.5f), limits(1, 20), limits(0.5f, 20), limits(1, 0, 1)}) {
    const auto kept = kept_weights(flat, {}, params);
    for (const double weight : kept) BOOST_REQUIRE(std::abs(weight * 65536 - 1) < 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(random_small_rows) {
  for (std::uint32_t seed = 1; seed <= 6000; ++seed) BOOST_TEST_CONTEXT("seed " << seed) {
      compare(random_case(seed));
    }
}

BOOST_AUTO_TEST_CASE(random_full_rows) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) BOOST_TEST_CONTEXT("seed " << seed) {
      compare(random_case(seed, 65536));
    }
}

BOOST_AUTO_TEST_CASE(positions_lie_end_to_end_in_the_order_of_ids) {
  const std::vector<float> logits = logits_of({0.1, 0.5, 0.4});
  logit_row row(3);
  row.load(logits);
  row.scan({});
  row.exponentiate(1);
  const kept_tokens everything;
  BOOST_TEST(pick(row, everything, 0.0) == 0);
  BOOST_TEST(pick(row, everything, 0.099) == 0);
  BOOST_TEST(pick(row, everything, 0.101) == 1);
  BOOST_TEST(pick(row, everything, 0.599) == 1);
  BOOST_TEST(pick(row, everything, 0.601) == 2);
  BOOST_TEST(pick(row, everything, 1.0) == 2);
}

BOOST_AUTO_TEST_SUITE_END()
