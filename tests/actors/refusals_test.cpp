// Refusals outside of the handlers of routes: by the connection, and of a body whose sender lost its key meanwhile.
#include <boost/test/unit_test.hpp>
#include <string>

#include "tests/actors/service_bench.hpp"

namespace {

using namespace skein;
using namespace skein::test;

}  // namespace

BOOST_FIXTURE_TEST_SUITE(refusals, service_bench)

BOOST_AUTO_TEST_CASE(a_refusal_by_the_connection_has_the_form_of_the_route) {
  const std::string flat = R"({"error":"m"})";
  for (const char* target : {"/api/oai/chat/completions", "/api/x?y", "/v1/server/stop", "/state/status?tenant=a"})
    BOOST_TEST(service.error_body(415, "m", target) == flat, target);
  for (const char* target : {"", "*", "/v1/chat/completions", "/v1/chat/completions?x", "/nowhere", "/apis", "%"})
    BOOST_TEST(service.error_body(415, "m", target).starts_with(R"({"error":{"message":"m")"), target);
  BOOST_TEST(service.error_body(413, "m", "/loadmodel") == R"({"detail":"m","error":"m"})");
}

BOOST_AUTO_TEST_SUITE_END()
