// What one client may cost others, at the table of routes: how long answers about sessions get and where they are
// written, whose memory they take, and what requests without a secret come to.
#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>

#include "actors/request/call/memory.hpp"
#include "actors/request/call/new_name.hpp"
#include "actors/request/shared/logged_text.hpp"
#include "protocol/responses_api/response_id.hpp"
#include "tests/actors/service_bench.hpp"

namespace {

using namespace skein;
using namespace skein::request;
using test::listed;
using test::service_bench;

}  // namespace

BOOST_FIXTURE_TEST_SUITE(client_limits, service_bench)

BOOST_AUTO_TEST_CASE(no_answer_about_sessions_is_longer_than_its_limit) {
  context->settings.limits.response_bytes_max = 65536;
  persistence::session_list list;
  for (int i = 0; i < 40; ++i) {
    list.sessions.push_back(listed("s" + std::to_string(100 + i), {}));
    list.sessions.back().record.metadata = {{"k", std::string(4000, '\x01')}};  // six times as long in JSON
  }
  send("GET", "/v1/sessions?limit=1000");
  const auto q = asked<persistence::list_sessions>();
  BOOST_TEST(q.bytes_max == 65536u);
  answer(q.reply, list);
  BOOST_REQUIRE(!pool.long_work.empty());  // not on the io thread
  pool.run_one();
  BOOST_TEST(out->text.size() <= 65536u);
  BOOST_TEST(out->has(R"("first_id":"s100","last_id":"s101","has_more":true})"));

  persistence::session_description d{listed("a", {}), {}};
  for (std::uint32_t i = 1; i <= 1000; ++i) {
    persistence::version_record v;
    v.id = i;
    v.parent = i - 1;
    v.text = v.answer = "x";
    v.template_name = "raw";
    d.versions.push_back(std::make_shared<const persistence::version_record>(v));
  }
  for (const std::string route : {"/v1/sessions/a?tree=true", "/v1/sessions/a/versions?"}) {
    std::uint32_t last = 0, pages = 0;
    for (bool more = true; more; ++pages) {
      send("GET", route + "&after=" + std::to_string(last));
      answer(asked<persistence::describe_session>().reply, d);
      pool.run_one();
      BOOST_TEST(out->text.size() <= 65536u);
      const auto first = out->text.find("\"version\":"), end = out->text.rfind("\"version\":");
      BOOST_TEST(std::stoul(out->text.substr(first + 10)) == last + 1);
      last = static_cast<std::uint32_t>(std::stoul(out->text.substr(end + 10)));
      more = out->has("\"has_more\":true");
    }
    BOOST_TEST(last == 1000u);
    BOOST_TEST(pages > 5u);
  }
  send("GET", "/v1/sessions/a?after=3");
  refused("after");
  send("GET", "/v1/sessions/a/versions?after=x");
  refused("after");
}

BOOST_AUTO_TEST_CASE(an_item_that_is_longer_than_an_answer_may_be_is_refused) {
  persistence::version_record v;
  v.id = 1;
  v.answer = v.text = std::string(2000, 'x');
  const persistence::session_description d{listed("a", {}), {std::make_shared<const persistence::version_record>(v)}};
  const std::string conversation = protocol::conversation_id(new_name());
  for (const std::size_t most : {std::size_t{3000}, std::size_t{1000}}) {
    context->settings.limits.response_bytes_max = most;
    send("GET", "/v1/conversations/" + conversation + "/items/msg_v1");
    answer(asked<persistence::describe_session>().reply, d);
    BOOST_TEST(out->status == (most == 3000 ? 200u : 413u));
  }
  BOOST_TEST(out->has("limits.response_bytes_max (1000 bytes)"));
}

BOOST_AUTO_TEST_CASE(a_long_answer_without_a_waiting_client_is_dropped) {
  persistence::session_description d{listed("a", {}), {}};
  persistence::version_record v;
  v.text = v.answer = std::string(200'000, 'x');
  d.versions.push_back(std::make_shared<const persistence::version_record>(v));
  for (const bool full : {false, true}) {
    send("GET", "/v1/sessions/a?transcript=true");
    pool.full = full;
    answer(asked<persistence::describe_session>().reply, d);
    BOOST_TEST(out->status == (full ? 429u : 0u));
  }
  pool.full = false;
  BOOST_REQUIRE_EQUAL(pool.long_work.size(), 1u);  // of the first, which has gone
  pool.long_work[0]();
  for (const auto& work : pool.posted) work();
  BOOST_TEST(out->status == 429u);
}

BOOST_AUTO_TEST_CASE(what_an_answer_takes_counts_in_the_share_of_its_key) {
  access::api_key alice;
  alice.name = alice.tenant = "alice";
  alice.hash = access::hash_of("one");
  context->keys->replace({alice});
  context->settings.queue.bytes_max = 10'000;
  const connection::header_list hers{{"authorization", "Bearer one"}};
  send("GET", "/v1/sessions", "", hers);
  const auto q = asked<persistence::list_sessions>();
  BOOST_TEST(q.share.most() == 5000u);
  persistence::session_list list;
  for (int i = 0; i < 30; ++i) list.sessions.push_back(listed("s" + std::to_string(i), {}));
  answer(q.reply, list);
  BOOST_TEST(out->status == 413u);  // never
  BOOST_TEST(out->has("queue.key_bytes_max"));
  list.sessions.resize(6);
  const auto taken = context->memory->of("key alice");
  taken->fetch_add(4000);
  send("GET", "/v1/sessions", "", hers);
  answer(asked<persistence::list_sessions>().reply, list);
  BOOST_TEST(out->status == 429u);
  BOOST_TEST(out->header("Retry-After") == "1");
  taken->fetch_sub(4000);
  context->memory->all()->fetch_add(9000);
  send("GET", "/v1/sessions", "", hers);
  answer(asked<persistence::list_sessions>().reply, list);
  BOOST_TEST(out->status == 503u);
  context->memory->all()->fetch_sub(9000);
  send("GET", "/v1/sessions", "", hers);
  answer(asked<persistence::list_sessions>().reply, list);
  BOOST_TEST(out->status == 200u);
  send("GET", "/livez");
  BOOST_TEST(out->charged.most() == 625u);  // a stranger's
}

BOOST_AUTO_TEST_CASE(requests_without_a_secret_are_counted) {
  context->settings.server.password = "secret";
  for (int i = 0; i < 25; ++i) {
    send("GET", "/v1/models");
    BOOST_TEST(out->status == 401u);
  }
  for (const char* path : {"/v1/models", "/nowhere"}) {
    send("GET", path);
    BOOST_TEST(out->status == 429u);
    BOOST_TEST(out->header("Retry-After") == "30");
  }
  send("POST", "/tokenize", R"({"content":"x"})");  // the body could have it
  BOOST_TEST(out->status == 429u);
  send("GET", "/v1/models", "", {{"authorization", "Bearer wrong"}});
  BOOST_TEST(out->status == 401u);  // still tried
  send("GET", "/v1/models", "", {{"authorization", "Bearer secret"}});
  BOOST_TEST(out->status == 200u);
  send("POST", "/tokenize", R"({"content":"x","password":"secret"})");
  BOOST_TEST(out->status == 200u);
  for (const char* path : {"/", "/livez"}) {
    send("GET", path);
    BOOST_TEST(out->status == 200u);
  }
}

BOOST_AUTO_TEST_CASE(a_line_of_the_log_has_the_beginning_of_a_path) {
  BOOST_TEST(logged_text("/v1/models") == "/v1/models");
  BOOST_TEST(logged_text(std::string(256, 'x')) == std::string(256, 'x'));
  BOOST_TEST(logged_text(std::string(8000, 'x')) == std::string(256, 'x') + "...");
  BOOST_TEST(logged_text(std::string(255, 'x') + "\xc3\xa4") == std::string(255, 'x') + "...");
}

BOOST_AUTO_TEST_SUITE_END()
