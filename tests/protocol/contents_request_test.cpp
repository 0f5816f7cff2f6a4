// Bodies of the older servers' routes: their defaults and their words, stops of both kinds, and what a session's fields
// may be on any route.
#include <boost/test/unit_test.hpp>

#include "protocol/requests/dialect.hpp"
#include "protocol/server/session_request.hpp"

namespace {

using namespace skein;
using namespace skein::protocol;

result<generation_request> read_contents(const std::string& body, bool branches) {
  return read_request(body, branches ? dialects::multi_state : dialects::state, {}, {}).request;
}
generation_request parsed(const std::string& body, bool branches = false) {
  auto request = read_contents(body, branches);
  BOOST_REQUIRE_MESSAGE(request, (request ? "" : request.error().message));
  return *request;
}
error refused_contents(const std::string& body, bool branches = false) {
  const auto request = read_contents(body, branches);
  BOOST_REQUIRE_MESSAGE(!request, body);
  return request.error();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(native_requests)

BOOST_AUTO_TEST_CASE(defaults_stand_alone) {
  const auto plain = parsed(R"({"contents":["x"]})");
  BOOST_TEST(!plain.chat);
  BOOST_TEST(plain.prompts.at(0).text == "x");
  BOOST_TEST(plain.model == "rwkv7");
  BOOST_TEST(plain.chunk_size == 4u);
  BOOST_TEST(plain.sampling.max_tokens == 8192u);
  BOOST_TEST(plain.sampling.top_k == 50);
  BOOST_TEST(plain.sampling.top_p == 0.6f);
  BOOST_TEST(plain.sampling.first_penalty == 2.0f);
  BOOST_TEST(plain.sampling.repeat_penalty == 0.2f);
  BOOST_TEST(plain.sampling.penalty_decay == 0.996f);
  BOOST_TEST(plain.stop.at(0) == "\nUser:");
  BOOST_TEST(!plain.session);
  const auto named = parsed(R"({"contents":["x"],"temperature":0.8,"noise":1.5,"pad_zero":true})");
  BOOST_TEST(named.sampling.temperature == 0.8f);
  BOOST_TEST(named.sampling.top_p == 0.6f);  // naming one leaves the others as they are
  BOOST_TEST(named.sampling.top_k == 50);
}

BOOST_AUTO_TEST_CASE(old_clients_send_odd_numbers) {
  for (const char* top_p : {"-1", "1.5", "2"})
    BOOST_TEST(parsed(R"({"contents":["x"],"top_p":)" + std::string(top_p) + "}").sampling.top_p == 1.0f);
  BOOST_TEST(parsed(R"({"contents":["x"],"top_p":0})").sampling.top_p == 0.0f);
  const auto stops = parsed(R"({"contents":["x"],"stop_tokens":[0,261,"END"]})");
  BOOST_TEST(stops.sampling.stop_ids == (std::vector<token_id>{0, 261}), boost::test_tools::per_element());
  BOOST_TEST(stops.stop == std::vector<std::string>{"END"}, boost::test_tools::per_element());
  BOOST_TEST(stops.foreign_stop_ids);
  const auto none = parsed(R"({"contents":["x"],"stop_tokens":["",0],"stop":""})");
  BOOST_TEST(none.stop.empty());
  BOOST_TEST(none.sampling.stop_ids.size() == 1u);
  BOOST_TEST(refused_contents(R"({"contents":["x"],"alpha_decay":0})").field == "alpha_decay");
  BOOST_TEST(refused_contents(R"({"contents":["x"],"temperature":1001})").field == "temperature");
}

BOOST_AUTO_TEST_CASE(exactly_one_prompt) {
  BOOST_TEST(refused_contents(R"({"contents":["a","b"]})").message == "Server Error: Requst must be single prompt !");
  BOOST_TEST((refused_contents(R"({"contents":["a","b"]})").kind == error_kind::internal));  // a 500, as they have it
  for (const char* body : {"{}", R"({"contents":[]})", R"({"contents":null})"})
    BOOST_TEST(refused_contents(body).message == "Request must contain exactly one prompt");
  BOOST_TEST(refused_contents(R"({"contents":[7]})").field == "contents");
  BOOST_TEST(refused_contents(R"({"contents":"x"})").field == "contents");
}

BOOST_AUTO_TEST_CASE(branches_name_their_version) {
  BOOST_TEST(refused_contents(R"({"contents":["x"],"dialogue_idx":0})", true).message ==
             "Missing session_id parameter");
  BOOST_TEST(refused_contents(R"({"contents":["x"],"session_id":"m"})", true).message ==
             "Missing dialogue_idx parameter");
  BOOST_TEST(refused_contents(R"({"contents":["x"],"session_id":"m","dialogue_idx":-1})", true).field ==
             "dialogue_idx");
  BOOST_TEST(parsed(R"({"contents":["x"],"session_id":"m","dialogue_idx":3})", true).session->from_version.value() ==
             3u);
  const auto by_parent = parsed(R"({"contents":["x"],"session_id":"m","parent":2})", true);
  BOOST_TEST(by_parent.session->from_version.value() == 2u);
  BOOST_TEST(by_parent.session->branches);
  BOOST_TEST(by_parent.writer->id({}) == "rwkv7-multi-state");
}

BOOST_AUTO_TEST_CASE(fields_of_a_session) {
  const auto all = parsed(
      R"({"contents":["x"],"session_id":"s","from_version":2,"expected_version":4294967295,"durability":"power",)"
      R"("store_on_disconnect":true,"store":false,"cache_prompt":false,"state_name":"poet"})");
  BOOST_TEST(all.session->id == "s");
  BOOST_TEST(all.session->from_version.value() == 2u);
  BOOST_TEST(all.session->expected_version.value() == 4294967295u);
  BOOST_TEST(all.session->power);
  BOOST_TEST(all.session->store_on_disconnect);
  BOOST_TEST(!all.store);
  BOOST_TEST(!all.use_prefix_cache);
  BOOST_TEST(all.state_name == "poet");
  BOOST_TEST(parsed(R"({"session_id":"s","continue":true})").session->go_on);
  BOOST_TEST(refused_contents(R"({"session_id":"s","continue":true,"contents":["x"]})").field == "contents");
  BOOST_TEST(refused_contents(R"({"contents":["x"],"session_id":"s","expected_version":4294967296})").field ==
             "expected_version");
  BOOST_TEST(refused_contents(R"({"contents":["x"],"session_id":"s","store":"no"})").field == "store");
  BOOST_TEST(parsed(R"({"contents":["x"],"session_id":")" + std::string(256, 'x') + "\"}").session->id.size() == 256u);
  BOOST_TEST(refused_contents(R"({"contents":["x"],"session_id":")" + std::string(257, 'x') + "\"}").field ==
             "session_id");
}

BOOST_AUTO_TEST_CASE(headers_of_a_session) {
  const auto expected = [](std::string_view if_match, std::optional<std::uint32_t> field = {}) {
    session_fields fields;
    fields.expected_version = field;
    const auto ok = read_session_headers(if_match, "key", fields);
    if (!ok) return ok.error().field;
    BOOST_TEST(fields.request_key == "key");
    return fields.expected_version ? std::to_string(*fields.expected_version) : std::string("any");
  };
  BOOST_TEST(expected("") == "any");
  BOOST_TEST(expected("*") == "any");
  BOOST_TEST(expected("7") == "7");
  BOOST_TEST(expected("\"7\"") == "7");
  BOOST_TEST(expected("7", 7) == "7");
  BOOST_TEST(expected("", 7) == "7");
  for (const char* wrong : {"\"7", "seven", "7 ", "-1", "W/\"7\"", "99999999999", "\"\""})
    BOOST_TEST(expected(wrong) == "If-Match");
  BOOST_TEST(expected("7", 8) == "If-Match");
  session_fields fields;
  BOOST_TEST(read_session_headers("", std::string(257, 'k'), fields).error().field == "Idempotency-Key");
}

BOOST_AUTO_TEST_CASE(bodies_about_sessions_and_states) {
  const request_limits limits;
  BOOST_TEST(parse_fork(R"({"to":"b"})", limits)->to == "b");
  BOOST_TEST(parse_fork("{}", limits).error().field == "to");
  for (const char* id : {".", "..", "a/../b", "/.", "a\\tb", "a\\u0000b", "\\u007f"}) {
    const std::string named = std::string("\"") + id + '"';
    BOOST_TEST(parse_fork(R"({"to":)" + named + "}", limits).error().field == "to", id);
    BOOST_TEST(refused_contents(R"({"contents":["x"],"session_id":)" + named + "}").field == "session_id", id);
  }
  for (const char* id : {"...", "a/b", ".a", "a..b", "/", "漢字 🙂?#%2F"})
    BOOST_TEST(parse_fork(R"({"to":")" + std::string(id) + "\"}", limits)->to == id);
  BOOST_TEST(parse_rollback(R"({"version":3})", limits).value() == 3u);
  BOOST_TEST(parse_rollback("", limits).error().field == "version");
  BOOST_TEST(parse_state_delete(" \n", limits).error().message == "Missing session_id parameter");
  BOOST_TEST(parse_state_delete(R"({"session_id":"a","delete_prefix":true})", limits)->with_prefix);
  BOOST_TEST(parse_nothing("", limits).has_value());
  BOOST_TEST(parse_nothing("[]", limits).has_error());
  const auto load = parse_load_state(R"({"state_filename":"f","state_viewname":"n","default_top_p":"0.5"})", limits);
  BOOST_TEST(load->top_p.value() == 0.5f);
  BOOST_TEST(!load->temperature);
  for (const char* wrong : {R"("")", R"("nan")", R"("1.1")", R"("0.5x")", "2", "true"}) {
    const auto no = parse_load_state(
        R"({"state_filename":"f","state_viewname":"n","default_top_p":)" + std::string(wrong) + "}", limits);
    BOOST_TEST_CONTEXT(wrong) BOOST_TEST(no.has_error());
  }
  BOOST_TEST(parse_load_state(R"({"state_viewname":"n"})", limits).error().field == "state_filename");
  BOOST_TEST(parse_remove_state(R"({"dummy":"dummy"})", limits).value() == "");
}

BOOST_AUTO_TEST_SUITE_END()
