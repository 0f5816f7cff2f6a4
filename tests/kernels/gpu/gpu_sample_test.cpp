// Draws on the device against the host's sampler, token by token: thousands of random cases with ties, NaN, masks and
// all limits in vocabularies around the sizes of blocks and chunks. Where the two differ, the slow sampler of the
// sampling tests shows that the random number lies within rounding of the boundary between the two tokens.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <map>

#include "sampling/philox.hpp"
#include "tests/kernels/gpu/check_scores.hpp"
#include "tests/kernels/gpu/device_samplers.hpp"
#include "tests/sampling/random_cases.hpp"
#include "tests/sampling/slow_sampler.hpp"
#include "tests/support/random_cases.hpp"
#include "tests/support/thorough.hpp"

using namespace skein;
using namespace skein::test;
using sampling::sampling_case;
using sampling::sampling_params;

namespace {

constexpr double rounding = 1e-6;  // of the sum of a row's weights, relative

struct tally {
  std::uint32_t samples = 0, at_boundaries = 0;
};

/// Several draws of each of `cases`, all in one batch, a slot for each.
void compare(device_samplers& device, std::vector<sampling_case> cases, std::uint32_t samples_each, tally& out) {
  const std::uint32_t vocab = device.vocab, words = (vocab + 31) / 32;
  std::vector<slot_id> slots;
  std::vector<sampling::sampler> hosts;
  std::vector<sampling::slow_sampler> judges;
  std::vector<float> logits;
  std::vector<std::uint32_t> masks;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    sampling_case& c = cases[i];
    slots.push_back(static_cast<slot_id>(cases.size() - 1 - i));
    device.start(slots[i], c.params);
    hosts.emplace_back(vocab).start(c.params);
    judges.emplace_back(c.params);
    logits.insert(logits.end(), c.logits.begin(), c.logits.end());
    if (c.allowed.empty()) c.allowed.assign(words, 0xffffffff);
    masks.insert(masks.end(), c.allowed.begin(), c.allowed.end());
  }
  std::vector<bool> parted(cases.size());
  for (std::uint32_t n = 0; n < samples_each; ++n) {
    const auto sampled = device.sample(slots, logits, masks);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (parted[i]) continue;
      const sampling_case& c = cases[i];
      const auto expected = hosts[i].sample(c.logits, c.allowed);
      ++out.samples;
      BOOST_REQUIRE_EQUAL(sampled[i].sampled, 1u);
      BOOST_CHECK_EQUAL(sampled[i].scores.nonfinite == 0, expected.finite);
      if (sampled[i].token != expected.token) {
        parted[i] = true;
        ++out.at_boundaries;
        const double position = sampling::uniform(c.params.seed, c.params.row, n);
        const double missed = sampling::miss(judges[i].kept(c.logits, c.allowed), sampled[i].token, position);
        BOOST_CHECK_MESSAGE(missed < rounding, "case " << i << " draw " << n << " token " << sampled[i].token
                                                       << " instead of " << expected.token << " by " << missed);
      } else {
        if (c.params.logprobs) check_scores(sampled[i].scores, expected.logprobs);
        judges[i].record(expected.token);
      }
    }
  }
  pinned_position position(vocab);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (parted[i]) continue;
    gpu::require(device.samplers.save(device.in, slots[i], position.view()));
    gpu::require(device.in.synchronize());
    const auto ours = position.saved(), theirs = hosts[i].save();
    BOOST_CHECK_EQUAL(ours.generated, theirs.generated);
    BOOST_REQUIRE_EQUAL(ours.penalties.size(), theirs.penalties.size());
    for (std::size_t p = 0; p < theirs.penalties.size(); ++p) {
      BOOST_CHECK_EQUAL(ours.penalties[p].token, theirs.penalties[p].token);
      BOOST_CHECK_EQUAL(ours.penalties[p].penalty, theirs.penalties[p].penalty);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gpu_sample)

BOOST_AUTO_TEST_CASE(random_samples_are_those_of_the_host) {
  constexpr std::uint32_t rows = 32;
  random_cases random;
  tally all;
  std::uint32_t seed = random_cases::seed() * 100000;
  const std::map<std::uint32_t, std::uint32_t> batches_of_vocab{{1, 1},    {2, 1},    {3, 2},    {63, 3},    {64, 3},
                                                                {65, 3},   {100, 8},  {500, 16}, {1000, 16}, {4096, 4},
                                                                {5001, 4}, {8200, 3}, {70000, 1}};
  for (const auto& [vocab, batches] : batches_of_vocab) {
    device_samplers device({vocab, rows, rows, 8, 2, 0});
    for (std::uint32_t b = 0; b < rounds(batches); ++b) {
      std::vector<sampling_case> cases;
      for (std::uint32_t i = 0; i < (vocab < 10000 ? rows : rows / 4); ++i) {  // the host takes long with many tokens
        cases.push_back(sampling::random_case(++seed, vocab));
        cases.back().params.logprobs = random.below(3) == 0;
        cases.back().params.top_logprobs = random.below(2) == 0 ? random.below(21) : 0;
      }
      compare(device, std::move(cases), 3, all);
    }
  }
  BOOST_TEST_MESSAGE(all.samples << " draws, of which " << all.at_boundaries << " at a boundary");
  BOOST_CHECK(all.samples > rounds(5000u));
  BOOST_CHECK(all.at_boundaries <= all.samples / 500);
}

BOOST_AUTO_TEST_SUITE_END()
