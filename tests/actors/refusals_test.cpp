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

BOOST_AUTO_TEST_CASE(a_body_that_ends_after_its_key_was_removed_changes_nothing) {
  access::api_key alice;
  alice.name = alice.tenant = "alice";
  alice.hash = access::hash_of("one");
  for (const auto& [method, target] : {std::pair("PUT", "/v1/sessions/x"),
                                       {"POST", "/v1/sessions/x/fork"},
                                       {"POST", "/tokenize"},
                                       {"POST", "/v1/completions"},
                                       {"POST", "/state/delete"},
                                       {"POST", "/v1/server/stop"}}) {
    context->keys->replace({alice});
    connection::request_head head;
    head.method = method;
    head.raw_path = head.path = target;
    head.fields = {{"authorization", "Bearer one"}};
    head.remote_address = "127.0.0.1";
    out = std::make_shared<response_recorder>();
    call = service.accept(head, out);
    BOOST_REQUIRE(call);
    access::api_key other = alice;
    other.name = other.tenant = "bob";
    other.hash = access::hash_of("two");
    context->keys->replace({other});
    call->body(R"({"to":"y","content":"x","prompt":"x","session_id":"x"})");
    BOOST_TEST_CONTEXT(target << ' ' << out->text) {
      BOOST_TEST(out->status == 401u);
      BOOST_TEST(out->has("revoked"));
      BOOST_TEST(questions.size() == 0u);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
