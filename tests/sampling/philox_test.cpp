// The random numbers are Philox4x32-10: its published known answers (Random123, kat_vectors), and uniform() depends on
// each of its arguments and spreads evenly over [0, 1).
#include "sampling/philox.hpp"

#include <boost/test/unit_test.hpp>
#include <set>

using namespace skein::sampling;

using words = std::array<std::uint32_t, 4>;

BOOST_AUTO_TEST_SUITE(philox)

BOOST_AUTO_TEST_CASE(known_answers) {
  constexpr std::uint32_t ones = 0xffffffff;
  BOOST_TEST((philox4x32({0, 0, 0, 0}, {0, 0}) == words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  BOOST_TEST(
      (philox4x32({ones, ones, ones, ones}, {ones, ones}) == words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  BOOST_TEST((philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The mapping from words to a number is part of every seeded answer: these values may not move.
BOOST_AUTO_TEST_CASE(uniform_is_the_first_53_bits) {
  BOOST_TEST(uniform(0, 0, 0) == static_cast<double>(0xe169c58d6627e8d5u >> 11) * 0x1p-53);
  const words w = philox4x32({7, 3, 0, 0}, {0x89abcdef, 0x01234567});
  const std::uint64_t bits = (std::uint64_t{w[1]} << 32) | w[0];
  BOOST_TEST(uniform(0x0123456789abcdef, 3, 7) == static_cast<double>(bits >> 11) * 0x1p-53);
}

BOOST_AUTO_TEST_CASE(every_argument_counts) {
  std::set<double> seen;
  for (const std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{1} << 32, std::uint64_t{1} << 63})
    for (const std::uint32_t row : {0u, 1u, 127u})
      for (const std::uint32_t index : {0u, 1u, 4095u}) seen.insert(uniform(seed, row, index));
  BOOST_TEST(seen.size() == 4 * 3 * 3);
}

BOOST_AUTO_TEST_CASE(even_over_the_unit_interval) {
  std::array<int, 16> bins{};
  constexpr int samples = 16000;
  for (std::uint32_t index = 0; index < samples; ++index) {
    const double u = uniform(42, 0, index);
    BOOST_REQUIRE(u >= 0);
    BOOST_REQUIRE(u < 1);
    ++bins[static_cast<std::size_t>(u * 16)];
  }
  double chi_squared = 0;
  for (const int count : bins) chi_squared += (count - 1000.0) * (count - 1000.0) / 1000.0;
  BOOST_TEST(chi_squared < 44.3);  // 15 degrees of freedom, 1 in 10000
}

BOOST_AUTO_TEST_SUITE_END()
