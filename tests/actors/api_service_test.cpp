// The table of routes, stepped by hand: paths, methods and passwords; what each route about sessions asks the
// persistence actor and how it tells the answer; loading of tuned states.
#include "actors/request/service/api_service.hpp"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "actors/request/call/route.hpp"
#include "protocol/responses_api/response_writer.hpp"
#include "tests/actors/service_bench.hpp"
#include "tests/support/oracle.hpp"

namespace {

using namespace skein;
using namespace skein::request;
using test::listed;
using test::service_bench;

}  // namespace

BOOST_FIXTURE_TEST_SUITE(api_routes, service_bench)

BOOST_AUTO_TEST_CASE(patterns) {
  const auto parts = [](std::string_view pattern, std::string_view path) {
    const auto found = match_path(pattern, path);
    if (!found) return std::string("no");
    std::string all;
    for (const auto& p : *found) all += "[" + p + "]";
    return all;
  };
  BOOST_TEST(parts("/v1/sessions", "/v1/sessions") == "");
  BOOST_TEST(parts("/v1/sessions", "/v1/sessions/") == "no");
  BOOST_TEST(parts("/v1/sessions/{}", "/v1/sessions/") == "no");
  BOOST_TEST(parts("/v1/sessions/{}", "/v1/sessions/a%2Fb%3Ac") == "[a/b:c]");
  BOOST_TEST(parts("/v1/sessions/{}", "/v1/sessions/a/b") == "no");
  BOOST_TEST(parts("/v1/sessions/{}/fork", "/v1/sessions/a/fork") == "[a]");
  BOOST_TEST(parts("/v1/sessions/{}/fork", "/v1/sessions/a%2Ffork") == "no");
  BOOST_TEST(parts("/v1/models/{*}", "/v1/models/org/name%20x") == "[org/name x]");
  BOOST_TEST(parts("/v1/models/{*}", "/v1/models/") == "no");
  BOOST_TEST(parts("/", "/") == "");
  BOOST_TEST(parts("/", "/v1") == "no");
  BOOST_TEST(parts("/", "//") == "no");
  BOOST_TEST(query_field("a=1&b=x%20y+z&a=2", "b").value() == "x y z");
  BOOST_TEST(query_field("a=1&a=2", "a").value() == "1");
  BOOST_TEST(query_field("flag&b", "flag").value() == "");
  BOOST_TEST(!query_field("ab=1", "a").has_value());
  BOOST_TEST(query_field("a=%zz%4", "a").value() == "%zz%4");
}

BOOST_AUTO_TEST_CASE(unknown_paths_and_wrong_methods) {
  send("GET", "/v1/nothing");
  BOOST_TEST(out->status == 404u);
  send("DELETE", "/v1/models");
  BOOST_TEST(out->status == 405u);
  BOOST_TEST(out->header("Allow") == "GET, HEAD, OPTIONS");
  send("PATCH", "/v1/sessions/x");
  BOOST_TEST(out->status == 405u);
  BOOST_TEST(out->header("Allow") == "GET, HEAD, POST, PUT, DELETE, OPTIONS");
  send("GET", "/state/status");
  BOOST_TEST(out->status == 405u);
  BOOST_TEST(out->text == R"({"error":"this route allows POST, OPTIONS"})");
  send("HEAD", "/v1/models");
  BOOST_TEST(out->status == 200u);
}

BOOST_AUTO_TEST_CASE(a_key_asks_about_its_own_tenant_and_no_other) {
  access::api_key alice, team;
  alice.name = alice.tenant = "alice";
  alice.hash = access::hash_of("one");
  team.name = "bob";
  team.tenant = "team";
  team.hash = access::hash_of("two");
  context->keys->replace({alice, team});
  context->settings.server.password = "secret";
  const auto tenant_for = [&](const std::string& secret) {
    send("GET", "/v1/sessions", "", {{"authorization", "Bearer " + secret}});
    return asked<persistence::list_sessions>().tenant;
  };
  BOOST_TEST(tenant_for("one") == "alice");
  BOOST_TEST(tenant_for("two") == "team");
  BOOST_TEST(tenant_for("secret") == "default");
  send("DELETE", "/v1/sessions/x", "", {{"x-api-key", "two"}});
  BOOST_TEST(asked<persistence::remove_session>().session.tenant == "team");
  send("POST", "/v1/sessions/x/fork", R"({"to":"y"})", {{"authorization", "Bearer one"}});
  const auto fork = asked<persistence::fork_session>();
  BOOST_TEST(fork.from.tenant == "alice");
  BOOST_TEST(fork.to.tenant == "alice");
  send("POST", "/state/delete", R"({"session_id":"x","password":"two"})");
  BOOST_TEST(asked<persistence::remove_session>().session.tenant == "team");
  send("GET", "/v1/sessions", "", {{"authorization", "Bearer three"}});
  BOOST_TEST(out->status == 401u);
  for (const char* admin : {"/loadmodel", "/removestatemodel"}) {
    send("POST", admin, "{}", {{"authorization", "Bearer one"}});
    BOOST_TEST(out->status == 403u);
    send("POST", admin, R"({"password":"two"})");
    BOOST_TEST(out->status == 403u);
  }
  send("GET", "/metrics", "", {{"authorization", "Bearer one"}});
  BOOST_TEST(out->status == 403u);
  send("GET", "/metrics", "", {{"authorization", "Bearer secret"}});
  BOOST_TEST(out->status == 200u);
}

BOOST_AUTO_TEST_CASE(a_password_guards_every_route_but_the_probes) {
  context->settings.server.password = "secret";
  for (const char* target : {"/livez", "/health", "/version"}) {
    send("GET", target);
    BOOST_TEST(out->status == 200u);
  }
  for (const auto& [method, target] :
       std::vector<std::pair<std::string, std::string>>{{"GET", "/v1/sessions"},
                                                        {"GET", "/v1/sessions/x"},
                                                        {"DELETE", "/v1/sessions/x"},
                                                        {"PUT", "/v1/sessions/x"},
                                                        {"GET", "/v1/sessions/x/export"},
                                                        {"GET", "/models"},
                                                        {"POST", "/v1/sessions/x/fork"},
                                                        {"POST", "/v1/sessions/x/rollback"},
                                                        {"GET", "/v1/sessions/x/versions"},
                                                        {"POST", "/state/status"},
                                                        {"POST", "/state/delete"},
                                                        {"POST", "/loadstatemodel"},
                                                        {"POST", "/removestatemodel"},
                                                        {"POST", "/state/chat/completions"},
                                                        {"POST", "/v1/nothing"},
                                                        {"POST", "/multi_state/chat/completions"}}) {
    send(method, target, "{}");
    BOOST_TEST_CONTEXT(method + " " + target) BOOST_TEST(out->status == 401u);
    BOOST_TEST(questions.size() == 0u);
  }
  send("POST", "/state/status", R"({"password":"secret"})");
  answer(asked<persistence::tiers_status>().reply, persistence::tiers_report{});
  BOOST_TEST(out->status == 200u);
  send("POST", "/state/delete", R"({"password":"wrong"})");
  BOOST_TEST(out->status == 401u);
  send("GET", "/v1/sessions", "", {{"authorization", "Bearer secret"}});
  BOOST_TEST(asked<persistence::list_sessions>().count == 20u);
}

BOOST_AUTO_TEST_CASE(a_page_of_sessions) {
  send("GET", "/v1/sessions?limit=2&after=a%3Ab");
  const auto q = asked<persistence::list_sessions>();
  BOOST_TEST(q.count == 2u);
  BOOST_TEST(q.after == "a:b");
  answer(q.reply, persistence::session_list{{listed("c", persistence::tier::ram), listed("d", {})}, true});
  BOOST_TEST(out->status == 200u);
  BOOST_TEST(out->has(R"("object":"list","data":[{"id":"c","object":"session","created_at":0,"used_at":1769000000,)"));
  BOOST_TEST(out->has(R"("tier":"ram","state_bytes":1024})"));
  BOOST_TEST(out->has(R"("first_id":"c","last_id":"d","has_more":true})"));
  for (const char* limit : {"0", "1001", "x", "-1", "2.5", ""}) {
    send("GET", std::string("/v1/sessions?limit=") + limit);
    refused("limit");
  }
}

BOOST_AUTO_TEST_CASE(what_a_session_is) {
  send("GET", "/v1/sessions/a%2Fb");
  const auto q = asked<persistence::describe_session>();
  BOOST_TEST(q.session.id == "a/b");
  BOOST_TEST(!q.transcript);
  persistence::session_description d{listed("a/b", persistence::tier::vram), {}};
  answer(q.reply, d);
  BOOST_TEST(out->has(R"("tier":"vram")"));
  BOOST_TEST(!out->has("tree"));

  persistence::version_record chat, raw;
  chat.id = 1;
  chat.messages = {{"user", "Hi \"x\""}};
  chat.reasoning = "hm";
  chat.answer = "Hello";
  chat.template_name = "chat";
  raw.id = 2;
  raw.parent = 1;
  raw.text = "prompt and answer";
  raw.prompt_bytes = 6;
  raw.answer = " and answer";
  raw.unfinished = true;
  raw.stop_reason = "drain";
  d.versions = {std::make_shared<const persistence::version_record>(chat),
                std::make_shared<const persistence::version_record>(raw)};
  send("GET", "/v1/sessions/x?transcript=true&version=2");
  const auto with_texts = asked<persistence::describe_session>();
  BOOST_TEST(with_texts.transcript);
  BOOST_TEST(with_texts.version.value() == 2u);
  answer(with_texts.reply, d);
  BOOST_TEST(out->has(R"("transcript":[{"version":1,)"));
  BOOST_TEST(
      out->has(R"("messages":[{"role":"user","content":"Hi \"x\""}],"reasoning_content":"hm","answer":"Hello"})"));
  BOOST_TEST(out->has(R"("prompt":"prompt","answer":" and answer")"));
  BOOST_TEST(out->has(R"("has_more":false})"));

  const auto bytes_max = std::exchange(context->settings.limits.response_bytes_max, 1400);  // of the last, and not two
  send("GET", "/v1/sessions/x?transcript=true&version=2");
  answer(asked<persistence::describe_session>().reply, d);
  BOOST_TEST(out->has(R"("transcript":[{"version":2,"object":"session.version","parent":1,)"));
  BOOST_TEST(out->has(R"("has_more":true})"));
  context->settings.limits.response_bytes_max = 900;  // not even the last one
  send("GET", "/v1/sessions/x?transcript=true&version=2");
  answer(asked<persistence::describe_session>().reply, d);
  BOOST_TEST(out->status == 413u);
  BOOST_TEST(out->has("limits.response_bytes_max (900 bytes)"));
  context->settings.limits.response_bytes_max = bytes_max;

  send("GET", "/v1/sessions/x?tree=1");
  answer(asked<persistence::describe_session>().reply, d);
  BOOST_TEST(out->has(R"("tree":[{"version":1,"object":"session.version","parent":0,)"));
  BOOST_TEST(out->has(R"("stop_reason":"drain","unfinished":true)"));
  BOOST_TEST(!out->has("Hello"));

  send("GET", "/v1/sessions/x/versions");
  answer(asked<persistence::describe_session>().reply, d);
  BOOST_TEST(out->has(R"({"object":"list","data":[{"version":1,)"));

  send("GET", "/v1/sessions/x?tree=maybe");
  refused("tree");
  send("GET", "/v1/sessions/x?tree=true&transcript=true");
  refused("tree");
  send("GET", "/v1/sessions/x?version=2");
  refused("version");
  send("GET", "/v1/sessions/" + std::string(257, 'x'));
  refused("session_id");

  send("GET", "/v1/sessions/x");
  reply(persistence::refused{asked<persistence::describe_session>().reply,
                             {error_kind::damaged, "the session 'x' is damaged", ""}});
  BOOST_TEST(out->status == 410u);
  BOOST_TEST(out->has("state_corrupt"));
}

BOOST_AUTO_TEST_CASE(a_long_response_is_told_by_the_worker_pool) {
  const std::string id = "resp_0123456789abcdef0123456789abcdef0123456789abcdef";
  const protocol::response_writer writer({});
  const protocol::answer_head head{id, "m", "", 1, false};
  persistence::version_record turn;
  turn.request_key = id;
  turn.finish_reason = "stop";
  turn.answer = "short";
  const auto ask = [&](const std::string& query = {}) {
    const protocol::row_delta delta{0, "", turn.answer, {}};
    (void)writer.begin_event(head, 0);
    (void)writer.delta_events(head, {&delta, 1});
    turn.sampling =
        R"({"temperature":0.5,"max_tokens":8,"seed":3,"response":)" + writer.remembered(head, {5, 4, 1, 2}) + "}";
    send("GET", "/v1/responses/" + id + query);
    const auto q = asked<persistence::describe_session>();
    BOOST_TEST(q.turn == id);
    answer(q.reply, persistence::session_description{listed("c", {}),
                                                     {std::make_shared<const persistence::version_record>(turn)}});
  };
  ask();
  BOOST_TEST(out->has(R"("text":"short")"));
  turn.answer = std::string(context->settings.inline_text_bytes_max + 1, 'x');
  for (const char* query : {"", "?stream=true"}) {
    ask(query);
    BOOST_TEST(out->text.empty());
    pool.run_one();
    BOOST_TEST(out->status == 200u);
    BOOST_TEST(out->has(turn.answer));
  }
  context->settings.limits.response_bytes_max = turn.answer.size();
  ask();
  pool.run_one();
  BOOST_TEST(out->status == 413u);
  pool.full = true;
  ask();
  BOOST_TEST(out->status == 429u);
  // After the client hung up there is no answer.
  pool.full = false;
  ask();
  call->gone("client", 499);
  call.reset();
  pool.long_work.front()();
  pool.long_work.clear();
  BOOST_TEST(out->text.empty());
}

BOOST_AUTO_TEST_CASE(forks_and_rollbacks) {
  send("POST", "/v1/sessions/x/fork", R"({"to":"y","version":2})");
  const auto f = asked<persistence::fork_session>();
  BOOST_TEST(f.from.id == "x");
  BOOST_TEST(f.to.id == "y");
  BOOST_TEST(f.version.value() == 2u);
  answer(f.reply, persistence::done{listed("y", {}).record});
  BOOST_TEST(out->has(R"({"id":"y","object":"session")"));
  send("POST", "/v1/sessions/x/fork", "");
  refused("to");
  send("POST", "/v1/sessions/x/fork", R"({"to":"y","version":-2})");
  refused("version");
  send("POST", "/v1/sessions/x/fork", R"({"to":7})");
  refused("to");
  send("POST", "/v1/sessions/x/fork", R"({"to")");
  BOOST_TEST(out->status == 400u);

  send("POST", "/v1/sessions/x/rollback", R"({"version":0})");
  const auto r = asked<persistence::rollback_session>();
  BOOST_TEST(r.version == 0u);
  reply(persistence::refused{r.reply, {error_kind::conflict, "the session is busy", "session_id"}});
  BOOST_TEST(out->status == 409u);
  BOOST_TEST(out->has("session_busy"));
  send("POST", "/v1/sessions/x/rollback", "{}");
  refused("version");
}

BOOST_AUTO_TEST_CASE(sessions_as_files) {
  send("GET", "/v1/sessions/x/export?state=false");
  const auto e = asked<persistence::export_session>();
  BOOST_TEST(!e.with_state);
  const std::string file("file\0bytes", 10);
  answer(e.reply, persistence::session_bytes{file});
  BOOST_TEST(out->text == file);
  BOOST_TEST(out->header("Content-Type") == "application/octet-stream");

  send("PUT", "/v1/sessions/y?replace=true", file);
  const auto i = asked<persistence::import_session>();
  BOOST_TEST(i.file == file);
  BOOST_TEST(i.replace);
  BOOST_TEST(call->body_bytes_max() > (1ull << 40));  // the connection's own limit for files counts
  answer(i.reply, persistence::done{listed("y", {}).record});
  BOOST_TEST(out->status == 200u);
  send("PUT", "/v1/sessions/y", file);
  reply(persistence::refused{asked<persistence::import_session>().reply,
                             {error_kind::conflict, "it belongs to the model a, not b", "model"}});
  BOOST_TEST(out->status == 409u);
  BOOST_TEST(out->has("model_mismatch"));
  send("PUT", "/v1/sessions/y", "");
  BOOST_TEST(out->status == 400u);
}

BOOST_AUTO_TEST_CASE(deleting) {
  send("DELETE", "/v1/sessions/x");
  auto d = asked<persistence::remove_session>();
  BOOST_TEST(!d.with_prefix);
  answer(d.reply, persistence::removed{1});
  BOOST_TEST(out->text == R"({"id":"x","object":"session.deleted","deleted":true,"sessions":1})");
  send("DELETE", "/v1/sessions/x?prefix=true");
  d = asked<persistence::remove_session>();
  BOOST_TEST(d.with_prefix);
  answer(d.reply, persistence::removed{0});
  BOOST_TEST(out->status == 404u);

  send("POST", "/state/delete", R"({"session_id":"x"})");
  answer(asked<persistence::remove_session>().reply, persistence::removed{1});
  BOOST_TEST(out->text == R"({"status":"success","message":"Session x deleted successfully"})");
  for (const bool by_count : {true, false}) {
    send("POST", "/state/delete", R"({"session_id":"x"})");
    const auto to = asked<persistence::remove_session>().reply;
    by_count ? answer(to, persistence::removed{0})
             : reply(persistence::refused{to, {error_kind::not_found, "there is no session", ""}});
    BOOST_TEST(out->status == 404u);
    BOOST_TEST(out->text == R"({"status":"not_found","message":"Session x not found in database"})");
  }
  send("POST", "/state/delete", R"({"session_id":"x","delete_prefix":true})");
  answer(asked<persistence::remove_session>().reply, persistence::removed{0});
  BOOST_TEST(out->status == 200u);
  send("POST", "/state/delete", "");
  BOOST_TEST(out->status == 400u);
  BOOST_TEST(out->text == R"({"error":"Missing session_id parameter"})");
}

BOOST_AUTO_TEST_CASE(the_status_of_the_older_servers) {
  send("POST", "/state/status", "");
  using persistence::tier;
  answer(asked<persistence::tiers_status>().reply,
         persistence::tiers_report{
             {listed("a", tier::vram), listed("b", tier::ram), listed("c", tier::none)}, 1, 1, 0, 9});
  BOOST_TEST(out->has(
      R"({"status":"success","total_sessions":9,"l1_cache_count":1,"l2_cache_count":1,"database_count":7,"sessions":[)"));
  BOOST_TEST(out->has(R"x({"session_id":"a","cache_level":"L1 (VRAM)","last_updated":"20)x"));
  BOOST_TEST(out->has(R"("timestamp":1769000000.12,"bytes":1024,"tokens":44})"));
  BOOST_TEST(out->has("L2 (RAM)"));
  BOOST_TEST(out->has("Database (Disk)"));
  send("POST", "/state/status", "nonsense");
  BOOST_TEST(out->status == 400u);
}

BOOST_AUTO_TEST_CASE(a_full_mailbox_and_no_actor) {
  for (int i = 0; i < 10; ++i) BOOST_REQUIRE(questions.push(persistence::release{}));
  send("GET", "/v1/sessions/x");
  BOOST_TEST(out->status == 429u);
  context->persistence = nullptr;
  send("GET", "/v1/sessions/x");
  BOOST_TEST(out->status == 400u);
}

BOOST_AUTO_TEST_CASE(a_client_that_leaves_hears_nothing) {
  send("GET", "/v1/sessions/x");
  const auto q = asked<persistence::describe_session>();
  call->gone("client closed", connection::client_gone);
  call.reset();
  answer(q.reply, persistence::session_description{});
  BOOST_TEST(!out->ended);
}

BOOST_AUTO_TEST_CASE(tuned_states_are_loaded_listed_and_removed) {
  const test::temporary_folder folder;
  std::ofstream(folder.path() / "poet.pth") << "x";
  context->settings.model.states_dir = folder.path().string();
  std::string loaded;
  model->served.state = model::state_layout{.layers = 1, .embd = 2};
  model->served.load_state = [&](const std::string& path) -> result<std::vector<float>> {
    loaded = path;
    if (path.ends_with("bad.pth")) return error{error_kind::bad_file, "has shape (1), expected (2)", ""};
    return std::vector<float>{1, 2, 3, 4};
  };
  const auto load = [&](const std::string& file, const std::string& more = "") {
    send("POST", "/loadstatemodel",
         R"({"state_filename":")" + file + R"(","state_viewname":"State Test")" + more + "}");
    if (!out->ended) pool.run_one();
  };
  load("poet.pth", R"(,"default_temperature":"0.5","default_top_p":0.25)");
  BOOST_TEST(out->text == R"({"status":"success"})");
  BOOST_TEST(loaded == (folder.path() / "poet.pth").string());
  const auto states = model->tuned.all();
  BOOST_REQUIRE_EQUAL(states->size(), 1u);
  BOOST_TEST(states->front().identity.size() == 32u);
  BOOST_TEST(states->front().temperature.value() == 0.5f);
  load("poet.pth");  // the same name replaces
  BOOST_TEST(model->tuned.all()->size() == 1u);
  BOOST_TEST(states->front().temperature.value() == 0.5f);  // readers of the old list keep it

  send("GET", "/models");
  BOOST_TEST(out->text == R"([{"object":"models","id":"tiny"},{"object":"models","id":"tiny State Test"}])");
  send("GET", "/v1/models");
  BOOST_TEST(out->has(R"("id":"tiny State Test")"));
  send("GET", "/v1/models/tiny%20State%20Test");
  BOOST_TEST(out->status == 200u);
  send("GET", "/v1/models/rwkv7");
  BOOST_TEST(out->has(R"("id":"tiny")"));

  load("absent.pth");
  BOOST_TEST(out->status == 404u);
  std::ofstream(folder.path() / "bad.pth") << "x";
  load("bad.pth");
  BOOST_TEST(out->status == 400u);
  BOOST_TEST(out->has(R"x({"detail":"state_filename 'bad.pth': has shape (1), expected (2)","error":)x"));
  for (const char* outside : {"../poet.pth", "/etc/passwd", "a/../../x"}) {
    load(outside);
    BOOST_TEST_CONTEXT(outside) BOOST_TEST(out->status == 403u);
  }
  std::filesystem::create_symlink("/etc/passwd", folder.path() / "link.pth");
  load("link.pth");
  BOOST_TEST(out->status == 403u);
  load("poet.pth", R"(,"default_top_p":"1.5x")");
  BOOST_TEST(out->status == 400u);
  send("POST", "/loadstatemodel", "{}");
  BOOST_TEST(out->status == 400u);
  context->settings.model.tuned_states_max = 1;
  send("POST", "/loadstatemodel", R"({"state_filename":"poet.pth","state_viewname":"other"})");
  pool.run_one();
  BOOST_TEST(out->status == 429u);

  send("POST", "/removestatemodel", R"({"state_viewname":"none"})");
  BOOST_TEST(out->status == 404u);
  send("POST", "/removestatemodel", R"({"dummy":"dummy"})");
  BOOST_TEST(out->status == 200u);
  BOOST_TEST(model->tuned.all()->empty());
  context->settings.model.states_dir = "";
  load("poet.pth");
  BOOST_TEST(out->status == 403u);
  model->served.load_state = nullptr;
  load("poet.pth");
  BOOST_TEST(out->status == 400u);
}

BOOST_AUTO_TEST_CASE(models_are_loaded_and_removed_in_the_forms_of_the_older_servers) {
  std::vector<model_change> asked;
  result<std::string> outcome = std::string("new");
  context->change_model = [&](model_change change, const model_changed& done) {
    asked.push_back(std::move(change));
    done(outcome);
  };
  const auto change = [&](const std::string& path, const std::string& body) {
    send("POST", path, body);
    for (const auto& work : std::exchange(pool.posted, {})) work();
  };
  change("/loadmodel", R"({"model_filename":"models/x.pth","model_viewname":"My Model","model_strategy":"fp16",)"
                       R"("default_temperature":"0.5","default_top_p":0.25,"template":"world","endtoken":"\\n\\n"})");
  BOOST_TEST(out->text == R"({"status":"success"})");
  BOOST_REQUIRE_EQUAL(asked.size(), 1u);
  BOOST_TEST(asked[0].file == "models/x.pth");
  BOOST_TEST(!asked[0].by_id);
  BOOST_TEST(asked[0].name == "My Model");
  BOOST_TEST(asked[0].strategy == "fp16");
  BOOST_TEST(asked[0].defaults.temperature.value() == 0.5f);
  BOOST_TEST(asked[0].defaults.top_p.value() == 0.25f);
  BOOST_TEST(asked[0].defaults.end_text.value() == "\n\n");
  change("/v1/model/load", R"({"model":"x","force":true})");
  BOOST_TEST(out->text == R"({"object":"model","id":"new","loaded":true})");
  BOOST_TEST((asked[1].by_id && asked[1].force && asked[1].file == "x"));
  change("/switch-model", R"({"model":"models/x.pth","strategy":"cpu fp32","customCuda":"false"})");
  BOOST_TEST(out->text == R"("success")");
  BOOST_TEST(asked[2].strategy == "cpu fp32");
  change("/removemodel", "");
  BOOST_TEST(out->text == R"({"status":"success"})");
  BOOST_TEST((asked[3].what == model_change::task::unload));

  outcome = error{error_kind::no_memory, "it needs 9 bytes", "model"};
  change("/loadmodel", R"({"model_filename":"x"})");
  BOOST_TEST(out->status == 507u);
  BOOST_TEST(out->text == R"({"detail":"it needs 9 bytes","error":"it needs 9 bytes"})");
  change("/v1/model/load", "{}");
  BOOST_TEST(out->status == 400u);
  BOOST_TEST(asked.size() == 5u);
  context->draining = true;
  change("/removemodel", "");
  BOOST_TEST(out->status == 503u);
}

BOOST_AUTO_TEST_CASE(without_a_model_every_route_answers_in_its_error_form) {
  context->models->forget("tiny");
  context->models->set_available({"a", "b"});
  const std::string words = "no model is loaded; call POST /v1/model/load first";
  send("POST", "/state/chat/completions", R"({"contents":["x"]})");
  BOOST_TEST(out->status == 400u);
  BOOST_TEST(out->text == R"({"error":")" + words + R"("})");
  for (const char* path : {"/v1/chat/completions", "/v1/completions", "/tokenize"}) {
    send("POST", path, "{}");
    BOOST_TEST_CONTEXT(path) BOOST_TEST(out->status == 503u);
    BOOST_TEST(out->has(words));
  }
  send("GET", "/models");
  BOOST_TEST(out->text == "[]");
  send("GET", "/v1/models");
  BOOST_TEST(out->text == R"({"object":"list","data":[],"loaded":null,"available":["a","b"]})");
  send("GET", "/v1/models/tiny");
  BOOST_TEST(out->status == 404u);
  send("GET", "/livez");
  BOOST_TEST(out->status == 200u);
  send("GET", "/readyz");
  BOOST_TEST(out->text == R"({"status":"unavailable","reason":"no model is loaded"})");
  context->models->set_loading(loaded_models::load{"next", 40});
  send("GET", "/readyz");
  BOOST_TEST(out->text == R"({"status":"unavailable","reason":"loading","loading":{"model":"next","percent":40}})");
  send("GET", "/health");
  BOOST_TEST(out->has(R"("model":null)"));

  // An idle model is loaded again by the first request for it; requests with long work wait for it.
  std::vector<model_change> asked;
  context->change_model = [&](model_change change, const model_changed&) { asked.push_back(std::move(change)); };
  context->models->put({{"tiny"}, nullptr, loaded_models::absence::resting}, true);
  context->models->set_loading(std::nullopt);
  send("GET", "/readyz");
  BOOST_TEST(out->status == 200u);
  BOOST_TEST(asked.empty());
  send("POST", "/v1/completions", "{}");
  BOOST_TEST(out->status == 0u);
  BOOST_REQUIRE_EQUAL(asked.size(), 1u);
  BOOST_TEST((asked[0].what == model_change::task::wake));
  send("POST", "/tokenize", "{}");
  BOOST_TEST(out->status == 503u);
  BOOST_TEST(asked.size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
