#pragma once
#include <boost/test/unit_test.hpp>
#include <string>

#include "base/result.hpp"

namespace skein::test {

inline void succeed(const result<void>& outcome) {
  BOOST_REQUIRE_MESSAGE(outcome, (outcome ? "" : outcome.error().message));
}

/// Expects an error of a kind whose sentence holds `needle`.
template <typename T>
void refused(const result<T>& got, error_kind kind, const std::string& needle) {
  BOOST_REQUIRE(!got);
  BOOST_TEST(to_string(got.error().kind) == to_string(kind));
  BOOST_TEST(got.error().message.find(needle) != std::string::npos, got.error().message << " lacks " << needle);
}

}  // namespace skein::test
