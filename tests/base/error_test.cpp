// Errors: every kind has its own name, and a result passes an error on as a value.
#include "base/error.hpp"

#include <boost/test/unit_test.hpp>
#include <set>

#include "base/result.hpp"

using namespace skein;

BOOST_AUTO_TEST_SUITE(errors)

BOOST_AUTO_TEST_CASE(every_kind_has_its_own_name) {
  std::set<std::string_view> names;
  for (int kind = 0; kind <= static_cast<int>(error_kind::internal); ++kind) {
    const auto name = to_string(static_cast<error_kind>(kind));
    BOOST_TEST(name != "unknown");
    BOOST_TEST(names.insert(name).second, name);
  }
  BOOST_TEST(to_string(error_kind::invalid_argument) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_result_holds_a_value_or_an_error) {
  const result<int> good = 3;
  const result<int> bad = error{error_kind::not_found, "no such model", "model"};
  BOOST_TEST(*good == 3);
  BOOST_TEST(!bad.has_value());
  BOOST_TEST(bad.error().field == "model");
  BOOST_CHECK_THROW(bad.value(), std::runtime_error);
}

BOOST_AUTO_TEST_SUITE_END()
