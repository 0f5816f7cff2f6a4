// Each error kind has its status, type, code and extra headers, and the body is the OpenAI error object.
#include <boost/test/unit_test.hpp>
#include <map>

#include "protocol/json/http_error.hpp"
#include "protocol/json/json.hpp"

namespace skein::protocol {
namespace {

using headers = std::vector<std::pair<std::string, std::string>>;

struct error_row {
  error_kind kind;
  std::string field;
  unsigned status;
  std::string type, code;  // empty code: null
  headers extra;
};

std::string member(const json_value& error, std::string_view name) {
  const auto value = *error.member(name);
  return value.is(json_kind::null) ? "" : std::string(*value.text());
}

void check_body(const std::string& body, std::string_view message, const error_row& expected) {
  const auto document = json_document::parse(body, {});
  BOOST_REQUIRE(document.has_value());
  const auto error = *document->root().member("error");
  BOOST_TEST(member(error, "message") == message);
  BOOST_TEST(member(error, "type") == expected.type);
  BOOST_TEST(member(error, "param") == expected.field);
  BOOST_TEST(member(error, "code") == expected.code);
}

BOOST_AUTO_TEST_SUITE(http_errors)

BOOST_AUTO_TEST_CASE(every_kind) {
  const std::string invalid = "invalid_request_error";
  const std::vector<error_row> rows{
      {error_kind::invalid_argument, "temperature", 400, invalid, "", {}},
      {error_kind::unsupported, "tools", 400, invalid, "unsupported_parameter", {}},
      {error_kind::unauthorized, "", 401, "authentication_error", "invalid_api_key", {{"WWW-Authenticate", "Bearer"}}},
      {error_kind::forbidden, "", 403, "permission_error", "", {}},
      {error_kind::not_found, "", 404, invalid, "not_found", {}},
      {error_kind::not_found, "model", 404, invalid, "model_not_found", {}},
      {error_kind::missing_file, "", 404, invalid, "not_found", {}},
      {error_kind::conflict, "", 409, "conflict", "", {}},
      {error_kind::in_use, "", 409, "conflict", "", {}},
      {error_kind::conflict, "session_id", 409, "conflict", "session_busy", {}},
      {error_kind::conflict, "expected_version", 409, "conflict", "version_conflict", {{"x-should-retry", "false"}}},
      {error_kind::conflict, "Idempotency-Key", 422, invalid, "idempotency_key_reused", {{"x-should-retry", "false"}}},
      {error_kind::conflict, "model", 409, "conflict", "model_mismatch", {{"x-should-retry", "false"}}},
      {error_kind::conflict, "state_name", 409, "conflict", "model_mismatch", {{"x-should-retry", "false"}}},
      {error_kind::damaged, "", 410, invalid, "state_corrupt", {}},
      {error_kind::no_space, "", 507, "server_error", "insufficient_storage", {}},
      {error_kind::no_memory, "", 507, "insufficient_memory", "", {}},
      {error_kind::too_large, "", 413, invalid, "request_too_large", {}},
      {error_kind::too_large, "prompt", 400, invalid, "context_length_exceeded", {}},
      {error_kind::overloaded, "", 429, "rate_limit_error", "rate_limit_exceeded", {{"Retry-After", "1"}}},
      {error_kind::unavailable, "", 503, "service_unavailable", "", {{"Retry-After", "1"}}},
      {error_kind::timeout, "", 504, "server_error", "timeout", {}},
      {error_kind::cancelled, "", 499, "server_error", "cancelled", {}},
      {error_kind::bad_file, "", 400, invalid, "", {}},
      {error_kind::io, "", 500, "server_error", "", {}},
      {error_kind::bad_config, "", 500, "server_error", "", {}},
      {error_kind::internal, "", 500, "server_error", "", {}},
  };
  for (const auto& expected : rows) {
    BOOST_TEST_CONTEXT(to_string(expected.kind) << " " << expected.field) {
      const auto answer = to_http({expected.kind, "what \"it\" was", expected.field});
      BOOST_TEST(answer.status == expected.status);
      BOOST_TEST((answer.headers == expected.extra));
      check_body(answer.body, "what \"it\" was", expected);
    }
  }
}

BOOST_AUTO_TEST_CASE(older_routes_have_flat_errors) {
  const error what{error_kind::not_found, "no \"x\"", "model"};
  const std::chrono::seconds second(1);
  BOOST_TEST(to_http(what, second, error_style::flat).body == R"({"error":"no \"x\""})");
  BOOST_TEST(to_http(what, second, error_style::detail).body == R"({"detail":"no \"x\"","error":"no \"x\""})");
  BOOST_TEST(to_http(what, second, error_style::flat).status == 404u);
}

BOOST_AUTO_TEST_CASE(retry_after_is_never_long) {
  const auto wait = [](int seconds) {
    return to_http({error_kind::overloaded, "full", ""}, std::chrono::seconds(seconds)).headers[0].second;
  };
  BOOST_TEST(wait(-5) == "1");
  BOOST_TEST(wait(12) == "12");
  BOOST_TEST(wait(3600) == "30");
}

BOOST_AUTO_TEST_CASE(wrong_method_and_bare_statuses) {
  const auto answer = method_not_allowed("GET, HEAD");
  BOOST_TEST(answer.status == 405u);
  BOOST_TEST((answer.headers == headers{{"Allow", "GET, HEAD"}}));
  BOOST_TEST(error_body(431, "too many fields") ==
             R"({"error":{"message":"too many fields","type":"invalid_request_error","param":null,"code":null}})");
  BOOST_TEST(error_body(501, "m").find("server_error") != std::string::npos);
  BOOST_TEST(error_body(503, "m").find("service_unavailable") != std::string::npos);
  BOOST_TEST(error_body(413, "m").find("request_too_large") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::protocol
