// What older clients put into the body and must be known before all else: found in any JSON object, and nowhere else;
// and in which form they wait for an answer.
#include "protocol/requests/body_head.hpp"

#include <boost/test/unit_test.hpp>

using namespace skein::protocol;

BOOST_AUTO_TEST_CASE(a_password_in_the_body_is_found) {
  BOOST_TEST((read_body_head(R"({"prompt":"x","password":"secret"})", {}).password == "secret"));
  BOOST_TEST((read_body_head(R"({"password":"","temperature":-7})", {}).password == ""));
  for (const char* none : {"", "{", "[]", "{}", R"({"password":5})", R"({"password":null})",
                           R"({"a":{"password":"x"}})", R"({"password":"a","password":"b"})"})
    BOOST_TEST_CONTEXT(none) BOOST_TEST(!read_body_head(none, {}).password.has_value());
}

BOOST_AUTO_TEST_CASE(so_are_the_model_and_the_request_that_it_is_about) {
  const auto head = read_body_head(R"({"model":"tiny poet","request_id":"a","session_id":"b"})", {});
  BOOST_TEST(head.model == "tiny poet");
  BOOST_TEST(head.request_id == "a");
  BOOST_TEST(read_body_head(R"({"model":7,"session_id":"b"})", {}).model.empty());
  BOOST_TEST(read_body_head(R"({"model":7,"session_id":"b"})", {}).request_id == "b");
}

BOOST_AUTO_TEST_CASE(so_is_how_a_refusal_of_it_is_written) {
  const auto errors = [](const char* body, const dialect& spoken) { return read_body_head(body, {}, &spoken).errors; };
  const auto& v1 = dialects::chat_or_batch;
  BOOST_TEST((errors(R"({"contents":["x"]})", v1) == error_style::flat));
  BOOST_TEST((errors(R"({"contents":[7]})", v1) == error_style::flat));
  BOOST_TEST((errors(R"({"messages":[{}],"contents":["x"]})", v1) == error_style::openai));
  BOOST_TEST(!errors("{", v1));
  BOOST_TEST(!errors(R"({"contents":["x"]})", dialects::batch));  // its path has one form
}
