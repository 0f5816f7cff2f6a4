// The vector loops: hostile logits become finite, the exponential is accurate, and every vector width of this machine
// gives the same bits, so that an answer does not depend on the processor.
#include "sampling/logit_block.hpp"

#include <hwy/targets.h>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

using namespace skein::sampling;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Calls run() once for every vector width of this machine.
template <typename Run>
void on_every_target(const Run& run) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    BOOST_TEST_CONTEXT(hwy::TargetName(target)) { run(); }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

template <typename T>
std::vector<unsigned char> bytes_of(const std::vector<T>& values) {
  std::vector<unsigned char> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> wild_logits(std::size_t count) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 20);
  std::vector<float> logits(count);
  for (float& x : logits) x = normal(random);
  logits[0] = std::numeric_limits<float>::quiet_NaN();
  logits[1] = infinity;
  logits[2] = -infinity;
  logits[3] = -0.0f;
  return logits;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(logit_blocks)

BOOST_AUTO_TEST_CASE(reading_makes_logits_finite_and_pads) {
  on_every_target([] {
    const auto logits = wild_logits(70);
    std::vector<logit_block> blocks(2);
    BOOST_TEST(!read_blocks(logits, blocks));
    BOOST_TEST(blocks[0][0] == 0);
    BOOST_TEST(blocks[0][1] == std::numeric_limits<float>::max());
    BOOST_TEST(blocks[0][2] == lowest_logit);
    BOOST_TEST(!std::signbit(blocks[0][3]));
    for (std::size_t i = 4; i < 70; ++i) BOOST_TEST(blocks[i / 64][i % 64] == logits[i]);
    for (std::size_t i = 70; i < 128; ++i) BOOST_TEST(blocks[1][i % 64] == no_logit);
    for (const float x : logits) {
      const float finite = finite_logit(x);
      BOOST_TEST(std::isfinite(finite));
      BOOST_TEST(!(finite == 0 && std::signbit(finite)));
    }
  });
}

BOOST_AUTO_TEST_CASE(a_mask_leaves_its_tokens_only) {
  on_every_target([] {
    const std::vector<std::uint32_t> allowed{0x9e3779b9, 0xbb67ae85, 0x3c6ef372};
    std::vector<logit_block> blocks(2);
    read_blocks(std::vector<float>(128, 1.0f), blocks);
    restrict_blocks(allowed, blocks);
    for (std::size_t i = 0; i < 128; ++i) {
      const bool wanted = i < 96 && ((allowed[i / 32] >> (i % 32)) & 1u) != 0;
      BOOST_TEST(blocks[i / 64][i % 64] == (wanted ? 1.0f : no_logit));
    }
  });
}

BOOST_AUTO_TEST_CASE(exponentials_are_accurate) {
  on_every_target([] {
    std::vector<logit_block> x(512);
    std::vector<logit_block> weights(x.size());
    std::vector<double> sums(x.size());
    for (std::size_t i = 0; i < x.size() * 64; ++i) x[i / 64][i % 64] = -20.0f * static_cast<float>(i) / 32768.0f;
    const double total = exponentiate_blocks(x, 0, 1, weights, sums);
    double expected_total = 0;
    double worst = 0;
    for (std::size_t i = 0; i < x.size() * 64; ++i) {
      const double expected = std::exp(double{x[i / 64][i % 64]});
      worst = std::max(worst, std::abs(weights[i / 64][i % 64] - expected) / expected);
      expected_total += expected;
    }
    BOOST_TEST(worst < 1e-6);
    BOOST_TEST(std::abs(total - expected_total) < 1e-7 * expected_total);
    BOOST_TEST(weights[0][0] == 1);
  });
}

BOOST_AUTO_TEST_CASE(far_below_the_maximum_is_zero) {
  on_every_target([] {
    std::vector<logit_block> x(1);
    std::vector<double> sums(1);
    x[0].fill(no_logit);
    x[0][0] = -lowest_logit;
    x[0][1] = lowest_logit;
    x[0][2] = 0;
    for (const float scale : {0.001f, 1.0f, 1000.0f}) {
      std::vector<logit_block> weights(1);
      BOOST_TEST(exponentiate_blocks(x, -lowest_logit, scale, weights, sums) == 1);
      for (std::size_t i = 1; i < 64; ++i) BOOST_TEST(weights[0][i] == 0);
    }
  });
}

BOOST_AUTO_TEST_CASE(every_vector_width_gives_the_same_bits) {
  struct outcome {
    std::vector<logit_block> weights = std::vector<logit_block>(1000);
    std::vector<double> sums = std::vector<double>(1000);
    std::vector<float> maxima = std::vector<float>(1000);
    double total = 0;
  };
  std::vector<outcome> outcomes;
  auto logits = wild_logits(64 * 999 + 5);
  logits[1] = 0;  // the largest float would leave nothing else
  on_every_target([&] {
    outcome& o = outcomes.emplace_back();
    std::vector<logit_block> blocks(1000);
    read_blocks(logits, blocks);
    const float max = find_maxima(blocks, o.maxima);
    o.total = exponentiate_blocks(blocks, max, 0.37f, o.weights, o.sums);
  });
  BOOST_TEST(outcomes.size() >= 1u);
  for (const outcome& o : outcomes) {
    BOOST_TEST((bytes_of(o.weights) == bytes_of(outcomes[0].weights)));
    BOOST_TEST((bytes_of(o.sums) == bytes_of(outcomes[0].sums)));
    BOOST_TEST((bytes_of(o.maxima) == bytes_of(outcomes[0].maxima)));
    BOOST_TEST(o.total == outcomes[0].total);
  }
}

BOOST_AUTO_TEST_SUITE_END()
