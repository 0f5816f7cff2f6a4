#pragma once
#include <boost/test/results_collector.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <string_view>

namespace skein::test {

/// $SKEIN_SEED, with which a failed random case is repeated.
[[nodiscard]] inline std::optional<std::uint64_t> given_seed() {
  const char* const given = std::getenv("SKEIN_SEED");
  return given ? std::optional(std::strtoull(given, nullptr, 0)) : std::nullopt;
}

/// The random numbers of one test case: from $SKEIN_SEED, else always the same. A failure shows the seed.
class random_cases {
 public:
  random_cases() : random_(seed()) {}
  ~random_cases() {
    const auto current = boost::unit_test::framework::current_test_case_id();
    if (!boost::unit_test::results_collector.results(current).passed())
      std::cerr << "the case above ran with SKEIN_SEED=" << seed() << '\n';
  }
  random_cases(const random_cases&) = delete;  // two would give the same numbers
  random_cases& operator=(const random_cases&) = delete;

  /// A number below `end`.
  [[nodiscard]] std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }
  /// `length` bytes, each one of `alphabet`.
  [[nodiscard]] std::string text(std::size_t length, std::string_view alphabet) {
    std::string made;
    for (std::size_t i = 0; i < length; ++i)
      made.push_back(alphabet[below(static_cast<std::uint32_t>(alphabet.size()))]);
    return made;
  }
  /// `length` bytes of any value.
  [[nodiscard]] std::string bytes(std::size_t length) {
    std::string made;
    for (std::size_t i = 0; i < length; ++i) made.push_back(static_cast<char>(below(256)));
    return made;
  }

  [[nodiscard]] static std::uint32_t seed() { return static_cast<std::uint32_t>(given_seed().value_or(1)); }

 private:
  std::mt19937 random_;
};

}  // namespace skein::test
