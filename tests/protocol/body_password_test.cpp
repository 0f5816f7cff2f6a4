// The password that older clients put into the body: found in any JSON object, and nowhere else.
#include "protocol/body_password.hpp"

#include <boost/test/unit_test.hpp>

using namespace skein::protocol;

BOOST_AUTO_TEST_CASE(a_password_in_the_body_is_found) {
  BOOST_TEST((body_password(R"({"prompt":"x","password":"secret"})", {}) == "secret"));
  BOOST_TEST((body_password(R"({"password":"","temperature":-7})", {}) == ""));
  for (const char* none : {"", "{", "[]", "{}", R"({"password":5})", R"({"password":null})",
                           R"({"a":{"password":"x"}})", R"({"password":"a","password":"b"})"})
    BOOST_TEST_CONTEXT(none) BOOST_TEST(!body_password(none, {}).has_value());
}
