// What is asked for: the same by the same seed, about as long and as often as was wished.
#include "load/load_plan.hpp"

#include <boost/test/unit_test.hpp>
#include <set>

using namespace skein::load;

BOOST_AUTO_TEST_CASE(a_seed_repeats_a_plan) {
  const auto told = [](std::uint64_t seed) {
    std::vector<double> all;
    for (const auto& r : make_plan({.prompts = 50, .rate = 3, .seed = seed})) {
      all.push_back(r.due_s);
      all.push_back(r.input_tokens);
      all.push_back(r.output_tokens);
    }
    return all;
  };
  BOOST_TEST(told(1) == told(1));
  BOOST_TEST(told(1) != told(2));
}

BOOST_AUTO_TEST_CASE(means_and_spread) {
  const auto plan = make_plan({.prompts = 20000, .rate = 4, .seed = 1});
  BOOST_REQUIRE_EQUAL(plan.size(), 20000u);
  double input = 0, output = 0;
  std::set<std::uint32_t> lengths;
  for (const auto& r : plan) {
    input += r.input_tokens, output += r.output_tokens;
    lengths.insert(r.input_tokens);
    BOOST_REQUIRE(r.input_tokens >= 1u);
    BOOST_REQUIRE(r.output_tokens >= 1u);
  }
  BOOST_TEST(input / 20000 == 220, boost::test_tools::tolerance(0.03));
  BOOST_TEST(output / 20000 == 180, boost::test_tools::tolerance(0.03));
  BOOST_TEST(lengths.size() > 300u);
  BOOST_TEST(plan.front().due_s == 0);
  BOOST_TEST(plan.back().due_s == 5000, boost::test_tools::tolerance(0.03));
}

BOOST_AUTO_TEST_CASE(fixed_lengths_all_at_once) {
  for (const auto& r : make_plan({.prompts = 9, .input = {1, 1, 32}, .output = {1, 1, 16}})) {
    BOOST_TEST(r.due_s == 0);
    BOOST_TEST(r.input_tokens == 32u);
    BOOST_TEST(r.output_tokens == 16u);
  }
}
