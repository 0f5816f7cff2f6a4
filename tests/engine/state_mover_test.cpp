#define BOOST_TEST_MODULE skein
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/state_mover.hpp"

using skein::dtype;
using skein::engine::state_mover;
using namespace skein::model;

namespace {

/// A state of that size in bytes, a multiple of 4.
state_value state_with(std::uint32_t bytes, std::uint32_t seed) {
  const state_format format(state_layout{.layers = 1, .embd = bytes / 4}, dtype::f16);
  state_value state{format, std::vector<std::byte>(format.bytes())};
  for (std::size_t i = 0; i < state.bytes.size(); ++i) state.bytes[i] = static_cast<std::byte>(seed + i * 7 + i / 251);
  return state;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_copy_counts_as_made_when_those_before_it_are) {
  constexpr std::size_t copies = 400;
  std::vector<state_value> from(copies), to(copies);
  state_mover mover(4);
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < copies; ++i) {
    from[i] = state_with(i % 100 == 0 ? 8'000'000
                         : i % 7 == 0 ? 800'000
                                      : 40,  // some take far longer than those behind them
                         static_cast<std::uint32_t>(i));
    if (i % 2 == 0) {
      last = mover.copy(from[i], to[i]);
    } else {
      to[i] = {from[i].format, std::vector<std::byte>(from[i].bytes.size())};
      last = mover.copy(from[i], from[i].format, to[i].bytes);
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
  const state_value from = state_with(400'000, 3);
  std::deque<state_value> to;
  {
    state_mover mover(3);
    for (int i = 0; i < 30; ++i) mover.copy(from, to.emplace_back());
  }
  for (const auto& each : to) BOOST_TEST((each == from));
}

BOOST_AUTO_TEST_CASE(a_state_of_other_types_is_converted) {
  const state_layout layout{.layers = 2, .embd = 1000};
  std::vector<float> floats(layout.floats());
  for (std::size_t i = 0; i < floats.size(); ++i) floats[i] = 0.1f * static_cast<float>(i);
  const state_value wide = state_of(layout, floats);
  state_value narrow{{layout, dtype::f16}, {}};
  narrow.bytes.resize(narrow.format.bytes());
  state_mover mover(2);
  mover.wait(mover.copy(wide, narrow.format, narrow.bytes));
  BOOST_TEST((narrow == converted(wide, narrow.format)));
  state_value back{layout, std::vector<std::byte>(state_format(layout).bytes())};
  mover.wait(mover.copy(narrow, layout, back.bytes));
  BOOST_TEST((back == converted(narrow, layout)));
  BOOST_TEST(!(back == wide));
}
