#define BOOST_TEST_MODULE skein
#include <boost/test/unit_test.hpp>
#include <deque>
#include <numeric>
#include <vector>

#include "engine/state_mover.hpp"

using skein::engine::state_mover;

BOOST_AUTO_TEST_CASE(a_copy_counts_as_made_when_those_before_it_are) {
  constexpr std::size_t copies = 400;
  std::vector<std::vector<float>> from(copies), to(copies);
  state_mover mover(4);
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < copies; ++i) {
    from[i].resize(i % 100 == 0 ? 2'000'000
                   : i % 7 == 0 ? 200'000
                                : 10);  // some take far longer than those behind them
    std::iota(from[i].begin(), from[i].end(), static_cast<float>(i));
    if (i % 2 == 0) {
      last = mover.copy(from[i], to[i]);
    } else {
      to[i].resize(from[i].size());
      last = mover.copy(from[i], std::span<float>(to[i]));
    }
    BOOST_TEST(last == i + 1);
    if (i % 50 != 49) continue;
    mover.wait(last - 10);
    for (std::size_t j = 0; j + 10 <= i; ++j) BOOST_TEST((to[j] == from[j]));
  }
  mover.wait(last);
  BOOST_TEST(mover.made(last));
  BOOST_TEST((to == from));
}

BOOST_AUTO_TEST_CASE(copies_that_wait_are_made_before_the_end) {
  const std::vector<float> from(100'000, 3.0f);
  std::deque<std::vector<float>> to;
  {
    state_mover mover(3);
    for (int i = 0; i < 30; ++i) mover.copy(from, to.emplace_back());
  }
  for (const auto& each : to) BOOST_TEST((each == from));
}
