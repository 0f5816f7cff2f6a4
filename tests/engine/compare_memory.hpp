#pragma once
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstddef>

#include "base/memory_plan.hpp"

namespace skein::test {

/// How far two numbers of bytes are apart, as a share of the second.
[[nodiscard]] inline double off_by(std::size_t planned, std::size_t taken) {
  return std::abs(static_cast<double>(planned) - static_cast<double>(taken)) / static_cast<double>(taken);
}

/// A plan is within 5 % of what an engine says it has taken, in all and in each part above 1 %, and so is that of
/// `allocated`: what was really taken in all.
inline void compare_memory(const memory_plan& planned, const memory_plan& taken, std::size_t allocated) {
  constexpr double tolerance = 0.05, small_part = 0.01;
  BOOST_TEST(planned.slots == taken.slots);
  BOOST_TEST(off_by(planned.bytes(), allocated) <= tolerance, planned.bytes() << " planned, " << allocated);
  BOOST_TEST(off_by(taken.bytes(), allocated) <= tolerance, taken.bytes() << " told, " << allocated);
  const auto compare = [&](const char* part, std::size_t of_plan, std::size_t of_engine) {
    if (static_cast<double>(of_engine) < small_part * static_cast<double>(allocated)) return;
    BOOST_TEST(off_by(of_plan, of_engine) <= tolerance, part << ": " << of_plan << " planned, " << of_engine);
  };
  compare("weights", planned.weight_bytes, taken.weight_bytes);
  compare("activations", planned.activation_bytes, taken.activation_bytes);
  compare("workspace", planned.workspace_bytes, taken.workspace_bytes);
  compare("slots", planned.bytes_of_slots(), taken.bytes_of_slots());
}

}  // namespace skein::test
