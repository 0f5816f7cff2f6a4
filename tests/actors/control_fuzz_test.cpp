// Seeded lives of a server: requests at and beyond every limit, pauses, resumes, stops, clients that hang up, limits
// that are read again and models that change, in any order, over the fake engine, the CPU's and the emulated GPU's. In
// half of them requests are turns of sessions too, which are continued, retried, forked, rolled back and deleted.
// Every request is answered, none with a 500, and nothing is left behind. $SKEIN_FUZZ_SECONDS: for how long each engine
// is tried (3); $SKEIN_SEED: one life only.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <random>
#include <string>

#include "tests/actors/engine_bench.hpp"
#include "tests/support/random_cases.hpp"

namespace {

using namespace skein;
using namespace skein::test;
namespace data = boost::unit_test::data;

constexpr std::uint32_t prompt_tokens_max = 120;

class random_server {
 public:
  random_server(const byte_engine& with, std::uint64_t seed)
      : random_(seed),
        b_(with, 1 + static_cast<std::uint32_t>(random_() % 4),
           seed % 2 == 0 ? engine_bench::stores::sessions : engine_bench::stores::none) {
    b_.reload([](auto& s) {
      s.limits.prompt_tokens_max = prompt_tokens_max;
      s.limits.max_tokens_max = 40;  // larger values are cut to this, and every answer ends
    });
  }

  void live() {
    for (auto left = 20 + below(60); left > 0; --left) step();
    for (const std::string& name : names()) {
      if (one_in(2)) b_.hang_up(name);
    }
    for (int i = 0; i < 19'000 && !all_ended(); ++i) b_.turn();
    b_.self_check();
    for (const std::string& name : names())
      BOOST_REQUIRE_MESSAGE(b_.clients.at(name).out->ended,
                            name << " has no end: " << b_.clients.at(name).sent
                                 << "; answered so far: " << b_.clients.at(name).out->text);
    for (const std::string& name : names()) judge(name);
    b_.turn_until([&] { return b_.context->requests->running().empty(); });
    for (int i = 0; i < 4; ++i) b_.turn();  // what was cancelled leaves its slots
    b_.expect_idle();
  }

 private:
  void step() {
    if (b_.sessions && one_in(6)) return change_session();
    switch (below(14)) {
      case 0:
      case 1:
      case 2: return send();
      case 3:
      case 4: return control("/v1/server/pause", some_id());
      case 5:
      case 6: return resume();
      case 7: return control("/v1/server/stop", one_in(3) ? "" : some_id());
      case 8:
        if (!b_.clients.empty()) b_.hang_up(some_of(names()));
        return;
      case 9: return one_in(4) ? change() : void();
      default:
        for (auto left = 1 + below(8); left > 0; --left) {
          b_.turn();
          b_.self_check();
        }
        note_responses();
    }
  }

  void note_responses() {
    constexpr std::string_view mark = R"({"id":"resp_)";
    for (const auto& [name, c] : b_.clients)
      if (c.out->ended && c.out->status == 200 && c.out->text.starts_with(mark))
        responses_.push_back(c.out->text.substr(7, c.out->text.find('"', 7) - 7));
  }

  void send() {
    const std::string name = next_name();
    if (b_.sessions && one_in(2)) return send_turn(name);
    switch (below(5)) {
      case 0: return open(name, "/v1/completions", R"("prompt":)" + prompt() + sampling() + completion());
      case 1: return open(name, "/v1/batch/completions", R"("contents":["ab",)" + text() + "]" + sampling());
      default:
        open(name, "/v1/chat/completions",
             R"("messages":[{"role":"user","content":)" + text() + "}]" + sampling() + chat());
    }
  }
  void open(const std::string& name, const std::string& path, const std::string& fields,
            const std::string& request_key = "") {
    b_.open(name, path, "{" + fields + "}", "POST", request_key);
  }
  /// A turn of a session, at times one that was sent before.
  void send_turn(const std::string& name) {
    if (!turns_.empty() && one_in(5)) {
      const turn& again = turns_[below(static_cast<std::uint32_t>(turns_.size()))];
      return open(name, again.path, again.fields, again.key);
    }
    turn t{.path = "/v1/completions", .fields = R"("prompt":)" + text(), .key = one_in(3) ? name : ""};
    if (one_in(4)) {
      t = {"/v1/responses", R"("input":)" + text() + one_of("max_output_tokens", {"1", "3", "40", "-1"}), t.key};
      if (!responses_.empty() && one_in(2)) t.fields += R"(,"previous_response_id":")" + some_of(responses_) + '"';
      turns_.push_back(t);
      return open(name, t.path, t.fields, t.key);
    }
    if (one_in(2)) t = {"/v1/chat/completions", R"("messages":[{"role":"user","content":)" + text() + "}]", t.key};
    if (one_in(5)) t.fields = R"("continue":true)";
    t.fields += R"(,"session_id":")" + session() + '"' + sampling();
    if (one_in(4)) t.fields += one_of("from_version", {"0", "1", "2", "9", "-1"});
    if (one_in(6)) t.fields += one_of("expected_version", {"0", "1", "2"});
    if (one_in(3)) t.fields += R"(,"store_on_disconnect":true)";
    if (one_in(8)) t.fields += R"(,"store":false)";
    turns_.push_back(t);
    open(name, t.path, t.fields, t.key);
  }
  void change_session() {
    const std::string name = next_name(), path = "/v1/sessions/" + session();
    switch (below(8)) {
      case 0: b_.open(name, path, "", "DELETE"); return;
      case 1: return open(name, path + "/fork", R"("to":")" + session() + '"' + one_of("version", {"1", "2", "9"}));
      case 2: return open(name, path + "/rollback", R"("version":)" + some({"0", "1", "2", "9"}));
      case 3: return open(name, path, R"("title":)" + text());
      case 4: return open(name, "/state/delete", R"("session_id":")" + session() + '"');
      case 5: b_.open(name, path + "?transcript=true", "", "GET"); return;
      case 6: b_.open(name, "/v1/sessions", "", "GET"); return;
      default: b_.open(name, path + "/versions", "", "GET");
    }
  }
  std::string session() { return "s" + std::to_string(below(4)); }
  std::string next_name() { return "r" + std::to_string(++sent_); }
  void resume() {
    const std::string name = next_name();
    std::string fields = R"("request_id":")" + some_id() + '"';
    if (one_in(3)) fields += bias();
    if (one_in(3)) fields += one_of("max_tokens", {"1", "5", "0", "-1", "4294967296"});
    if (one_in(4)) fields += one_of("top_logprobs", {"20", "21"});
    open(name, "/v1/server/resume", fields);
  }
  void control(const std::string& path, const std::string& id) {
    const std::string answer = b_.ask(path, id.empty() ? "{}" : R"({"request_id":")" + id + "\"}");
    BOOST_REQUIRE_MESSAGE(answer.starts_with("200 ") || answer.starts_with("409 "), answer);
  }
  void change() {
    device::change_limits limits;
    switch (below(3)) {
      case 0:
        limits.queue.waiting_max = below(6);
        limits.queue.waiting_per_client_max = below(6);
        limits.queue.turn_tokens = 1 + below(8);
        limits.queue.parked_max = below(5);
        return b_.change_limits(limits);
      case 1:  // above what the engine takes, which the device then refuses
        return b_.reload([&](auto& s) { s.limits.logit_bias_max = one_in(2) ? 1024 : 2000; });
      default: return b_.load("m" + std::to_string(++models_), one_in(2));
    }
  }

  // ---- values at and beyond the limits ----

  std::string text() { return '"' + std::string(one_in(8) ? 4000 : below(2 * prompt_tokens_max), 'x') + '"'; }
  std::string prompt() {
    switch (below(4)) {
      case 0: return "[" + list(one_in(2) ? prompt_tokens_max : prompt_tokens_max + below(3), 7) + "]";
      case 1: return "[[1,2],[" + some({"0", "-1", "1199", "1200", "4294967296"}) + "]]";
      case 2: return "[" + text() + "," + text() + "]";
      default: return text();
    }
  }
  std::string sampling() {
    std::string fields = one_of("max_tokens", {"1", "3", "8", "8", "12", "0", "4294967295", "-1"});
    if (one_in(2)) fields += bias();
    if (one_in(3)) fields += R"(,"stop_token_ids":[)" + list(one_in(2) ? below(4) : 127 + below(3), 258) + "]";
    if (one_in(4)) fields += R"(,"stop":[)" + strings(one_in(2) ? below(3) : 15 + below(3)) + "]";
    if (one_in(3)) fields += one_of("temperature", {"0", "1", "2.5", "1000", "-1"});
    if (one_in(4)) fields += one_of("top_k", {"1", "-1", "3", "2147483647", "4294967296"});
    if (one_in(4)) fields += one_of("seed", {"0", "7", "18446744073709551615", "-1"});
    if (one_in(4)) fields += one_of("presence_penalty", {"0.5", "2", "-2", "3"});
    if (one_in(4)) fields += one_of("n", {"1", "2", "3", "129", "0"});
    if (one_in(2)) fields += R"(,"stream":true)";
    return fields;
  }
  std::string chat() {
    std::string fields;
    if (one_in(2)) fields += R"(,"force_reasoning":true)" + one_of("think_type", {"\"en\"", "\"fast\"", "\"enLong\""});
    if (one_in(4)) fields += R"(,"logprobs":true)" + one_of("top_logprobs", {"0", "20", "21", "-1"});
    return fields;
  }
  std::string completion() {
    std::string fields;
    if (one_in(3)) fields += one_of("logprobs", {"0", "5", "20", "21"});
    if (one_in(3)) fields += R"(,"echo":true)";
    if (one_in(4)) fields += one_of("best_of", {"1", "3", "129"});
    if (one_in(6)) fields += R"(,"suffix":"y")";
    return fields;
  }
  std::string bias() {
    const std::uint32_t count = one_in(2) ? below(4) : 1020 + below(10);
    std::string entries;
    for (std::uint32_t i = 0; i < count; ++i)
      entries +=
          (i ? ",\"" : "\"") + std::to_string(byte_engine::vocab - 1 - i + (one_in(4000) ? 2000 : 0)) + "\":-100";
    return R"(,"logit_bias":{)" + entries + "}";
  }
  std::string one_of(const std::string& field, std::initializer_list<const char*> values) {
    return ",\"" + field + "\":" + some(values);
  }
  std::string some(std::initializer_list<const char*> values) {
    return values.begin()[below(static_cast<std::uint32_t>(values.size()))];
  }
  static std::string list(std::uint32_t count, std::uint32_t first) {
    std::string all;
    for (std::uint32_t i = 0; i < count; ++i) all += (i ? "," : "") + std::to_string(first + i % 200);
    return all;
  }
  std::string strings(std::uint32_t count) {
    std::string all;
    for (std::uint32_t i = 0; i < count; ++i)
      all += (i ? ",\"" : "\"") + std::string(one_in(20) ? 257 : 1 + i, 'q') + '"';
    return all;
  }

  // ---- what came of it ----

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, c] : b_.clients) all.push_back(name);
    return all;
  }
  bool all_ended() const {
    for (const auto& [name, c] : b_.clients)
      if (!c.out->ended) return false;
    return true;
  }
  void judge(const std::string& name) {
    const response_recorder& out = *b_.clients.at(name).out;
    BOOST_REQUIRE(out.ended);
    BOOST_REQUIRE_MESSAGE(out.status == 200 || (out.status >= 400 && out.status != 500), out.status << ' ' << out.text);
    if (out.streaming) BOOST_REQUIRE_MESSAGE(out.text.ends_with("data: [DONE]\n\n"), out.text);
  }

  std::string some_id() { return "r" + std::to_string(sent_ == 0 ? 0 : sent_ - below(std::min(sent_, 8u))); }
  std::string some_of(const std::vector<std::string>& all) {
    return all[below(static_cast<std::uint32_t>(all.size()))];
  }
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }

  /// A request that can be sent again.
  struct turn {
    std::string path, fields, key;
  };

  std::mt19937_64 random_;
  engine_bench b_;
  std::uint32_t sent_ = 0, models_ = 0;
  std::vector<turn> turns_;
  std::vector<std::string> responses_;  ///< ids
};

std::chrono::duration<double> fuzz_time() {
  const char* const given = std::getenv("SKEIN_FUZZ_SECONDS");
  return std::chrono::duration<double>(given ? std::strtod(given, nullptr) : 3.0);
}

}  // namespace

BOOST_DATA_TEST_CASE(random_lives_end_well, data::make(byte_engines()), which) {
  const auto given = given_seed();
  const auto begun = std::chrono::steady_clock::now();
  for (std::uint64_t seed = given.value_or(1); std::chrono::steady_clock::now() - begun < fuzz_time(); ++seed) {
    BOOST_TEST_CONTEXT("SKEIN_SEED=" << seed) { random_server(which, seed).live(); }
    if (given) break;
  }
}
