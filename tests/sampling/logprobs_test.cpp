// Log-probabilities of raw logits and the list of the best, against doubles and a full sort.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "sampling/sampler.hpp"

using namespace skein;
using namespace skein::sampling;

namespace {

void compare(const std::vector<float>& logits, token_id token, std::uint32_t top) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - max);
  const auto expected = [&](token_id id) { return logits[static_cast<std::size_t>(id)] - max - std::log(sum); };
  const auto close = [](double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(1.0, std::abs(b)); };
  std::vector<token_id> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](token_id a, token_id b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });

  const token_logprobs got = log_probabilities(logits, token, top);
  BOOST_TEST(close(got.logprob, expected(token)));
  BOOST_TEST_REQUIRE(got.count == std::min<std::size_t>(top, logits.size()));
  for (std::uint32_t i = 0; i < got.count; ++i) {
    BOOST_TEST(got.top[i].token == order[i]);
    BOOST_TEST(close(got.top[i].logprob, expected(order[i])));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(logprobs)

BOOST_AUTO_TEST_CASE(every_length_of_the_list_with_and_without_ties) {
  std::mt19937 random(9);
  std::normal_distribution<float> normal(-5, 6);
  for (const std::size_t vocab : {1u, 5u, 64u, 100u, 1024u, 1500u, 65536u})
    for (std::uint32_t top = 0; top <= (vocab > 2000 ? 4 : top_logprobs_max); ++top)
      for (const bool ties : {false, true}) {
        std::vector<float> logits(vocab);
        for (float& x : logits) x = ties ? std::round(normal(random) / 4) : normal(random);
        BOOST_TEST_CONTEXT("vocab " << vocab << " top " << top << " ties " << ties)
        compare(logits, static_cast<token_id>(random() % vocab), top);
      }
}

BOOST_AUTO_TEST_CASE(equal_logits) {
  const auto got = log_probabilities(std::vector<float>(65536, 7.5f), 65535, 20);
  BOOST_TEST(std::abs(got.logprob + std::log(65536.0)) < 1e-6);
  for (std::uint32_t i = 0; i < 20; ++i) BOOST_TEST(got.top[i].token == static_cast<token_id>(i));
}

BOOST_AUTO_TEST_CASE(hostile_logits_give_finite_answers) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> logits{std::nanf(""), infinity, -infinity, infinity};
  const auto got = log_probabilities(logits, 2, 4);
  BOOST_TEST(!got.finite);
  BOOST_TEST(got.logprob == std::numeric_limits<float>::lowest());
  BOOST_TEST(got.top[0].token == 1);
  BOOST_TEST(std::abs(got.top[0].logprob + std::log(2.0)) < 1e-6);
  BOOST_TEST(got.top[1].token == 3);
  BOOST_TEST(got.top[2].token == 0);
  BOOST_TEST(got.top[3].token == 2);
  for (std::uint32_t i = 0; i < 4; ++i) BOOST_TEST(std::isfinite(got.top[i].logprob));
}

BOOST_AUTO_TEST_SUITE_END()
