#pragma once
#include <concepts>
#include <cstdlib>

namespace skein::test {

/// Whether this is `./dev test --nightly`, which repeats random and long cases in full; by day they run in part.
[[nodiscard]] inline bool is_nightly() {
#if defined(SKEIN_ON_A_CARD)  // where all of it takes seconds
  return true;
#else
  return std::getenv("SKEIN_NIGHTLY") != nullptr;
#endif
}

/// All rounds in the nightly run; by day a quarter of them, rounded up.
template <std::integral number>
[[nodiscard]] number rounds(number all) {
  return is_nightly() ? all : static_cast<number>((all + 3) / 4);
}

}  // namespace skein::test
