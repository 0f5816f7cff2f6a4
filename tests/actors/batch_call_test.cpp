// Calls of many prompts, stepped by hand: how many wait at a time, what a full queue does to them, what rows that get
// text at one time share, and calls that ask for nothing.
#include "tests/actors/generation_bench.hpp"

namespace {

using namespace skein;
using bench = test::generation_bench;
namespace dialects = protocol::dialects;

std::string contents(std::size_t count, const std::string& more = "") {
  std::string list;
  for (std::size_t i = 0; i < count; ++i) list += (i ? ",\"" : "\"") + std::string(1, static_cast<char>('a' + i)) + '"';
  return R"({"contents":[)" + list + "]" + more + "}";
}

/// What the device says in one go.
struct delivery {
  explicit delivery(bench& b) : of(b) {}
  delivery& token(std::size_t which, char c) {
    events.emplace_back(
        device::token{of.submitted.at(which).id, 0, of.index++, static_cast<unsigned char>(c), nullptr});
    return *this;
  }
  delivery& end(std::size_t which) {
    events.emplace_back(device::row_finished{of.submitted.at(which).id, 0, device::finish_cause::budget});
    return *this;
  }
  void send() {
    of.hub.dispatch(std::move(events));
    of.read_mailbox();
  }
  bench& of;
  std::vector<device::event> events;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(batch_calls)

BOOST_AUTO_TEST_CASE(prompts_follow_as_those_before_get_their_slots) {
  bench b;
  b.context->settings.queue.prompts_waiting_max = 2;
  b.send(contents(5, R"(,"stop_tokens":[])"), dialects::batch);
  BOOST_TEST(b.submitted.size() == 2u);
  BOOST_TEST((b.submitted[0].queue_deadline < b.submitted[0].total_deadline));
  BOOST_TEST((b.submitted[1].queue_deadline == b.submitted[1].total_deadline));
  b.admit(0);
  BOOST_TEST(b.submitted.size() == 3u);
  b.admit(1);
  b.admit(2);
  BOOST_TEST(b.submitted.size() == 5u);
  b.admit(3);
  b.admit(4);
  for (const std::size_t which : {4u, 0u, 2u, 1u, 3u}) {
    b.say(std::string(1, static_cast<char>('A' + which)), 0, which);
    BOOST_TEST(!b.out->ended);
    b.finish(device::finish_cause::budget, 0, which);
  }
  BOOST_TEST(b.out->ended);
  std::size_t at = 0;
  for (const char* content : {"A", "B", "C", "D", "E"}) {
    at = b.out->text.find("\"content\":\"" + std::string(content) + '"', at);
    BOOST_TEST(at != std::string::npos);
  }
  BOOST_TEST(b.has(R"("usage":{"prompt_tokens":5,"completion_tokens":5)"));
  BOOST_TEST(b.cancelled.empty());  // the device has nothing left of it
}

BOOST_AUTO_TEST_CASE(a_crowd_does_not_end_what_has_begun) {
  bench b;
  b.context->settings.queue.prompts_waiting_max = 2;
  b.send(contents(2, R"(,"stop_tokens":[])"), dialects::batch);
  b.admit(0);
  const auto prompt = b.submitted[1].prompt;
  b.tell(device::rejected{b.submitted[1].id, {error_kind::overloaded, "too many requests are waiting", ""}});
  BOOST_TEST(!b.out->ended);
  BOOST_TEST(b.submitted.size() == 2u);  // not at once
  b.call->on_tick(b.time.now());
  b.read_mailbox();
  BOOST_REQUIRE_EQUAL(b.submitted.size(), 3u);
  BOOST_TEST(b.submitted[2].prompt == prompt, boost::test_tools::per_element());
  b.admit(2);
  b.say("x", 0, 2);
  b.finish(device::finish_cause::budget, 0, 2);
  b.say("y", 0, 0);
  b.finish(device::finish_cause::budget, 0, 0);
  BOOST_TEST(b.has(R"({"index":0,"message":{"role":"assistant","content":"y"})"));
  BOOST_TEST(b.has(R"({"index":1,"message":{"role":"assistant","content":"x"})"));

  b.send(contents(2), dialects::batch);
  const std::size_t first = b.submitted.size() - 2;
  b.tell(device::rejected{b.submitted[first].id, {error_kind::overloaded, "too many requests are waiting", ""}});
  BOOST_TEST(b.out->status == 429u);
  BOOST_TEST(b.out->text == R"({"error":"too many requests are waiting"})");
}

BOOST_AUTO_TEST_CASE(a_full_mailbox_is_tried_again) {
  bench b;
  b.context->settings.queue.prompts_waiting_max = 200;
  std::string list;
  for (int i = 0; i < 150; ++i) list += i ? ",\"x\"" : "\"x\"";
  b.send(R"({"contents":[)" + list + R"(],"stop_tokens":[]})", dialects::batch);  // the mailbox takes 100
  BOOST_TEST(b.submitted.size() == 100u);
  b.call->on_tick(b.time.now());
  b.read_mailbox();
  BOOST_TEST(b.submitted.size() == 150u);
  BOOST_TEST(!b.out->ended);
}

BOOST_AUTO_TEST_CASE(rows_that_get_text_together_share_an_event) {
  for (const bool single : {false, true}) {
    bench b;
    b.send(contents(3, R"(,"stream":true,"chunk_size":1,"stop_tokens":[])"),
           single ? dialects::single_events : dialects::batch);
    for (std::size_t i = 0; i < 3; ++i) b.admit(i);
    delivery(b).token(2, 'z').token(0, 'x').send();
    BOOST_TEST(b.has(R"("choices":[{"index":0,"delta":{"content":"x"}},{"index":2,"delta":{"content":"z"}}])") ==
               !single);
    BOOST_TEST(b.has(R"("choices":[{"index":0,"delta":{"content":"x"}}])") == single);
    const std::size_t before = b.out->text.size();
    delivery(b).token(0, '1').token(1, '2').token(0, '3').end(0).send();  // two ticks at once
    const std::string news = b.out->text.substr(before);
    const auto one = news.find("\"content\":\"1\""), three = news.find("\"content\":\"3\"");
    const auto end = news.find(R"({"index":0,"delta":{},"finish_reason":"length"})");
    BOOST_TEST(one < three);
    BOOST_TEST(three < end);
    BOOST_TEST(end != std::string::npos);
    delivery(b).end(1).end(2).send();
    BOOST_TEST(b.out->text.ends_with("data: [DONE]\n\n"));
    BOOST_TEST(b.out->ended);
  }
}

BOOST_AUTO_TEST_CASE(a_slow_reader_holds_back_prompts_that_were_not_asked_yet) {
  bench b;
  b.context->settings.queue.prompts_waiting_max = 1;
  b.send(contents(3, R"(,"stream":true,"stop_tokens":[])"), dialects::batch);
  b.out->queued = 1u << 30;
  b.admit(0);
  BOOST_TEST(b.pauses == 2);  // the one that runs and the one that has followed it
  b.admit(1);
  BOOST_TEST(b.submitted.size() == 2u);
  b.out->queued = 0;
  b.call->writable();
  b.read_mailbox();
  BOOST_TEST(b.resumes == 2);
  BOOST_TEST(b.submitted.size() == 3u);
}

BOOST_AUTO_TEST_CASE(an_empty_translation_submits_nothing) {
  for (const bool logged : {false, true}) {
    bench b;
    b.context->settings.log.prompts = logged;
    b.send(R"({"target_lang":"zh","text_list":[""," "]})", dialects::translate);
    BOOST_TEST(b.submitted.empty());
    BOOST_TEST(b.out->status == 200u);
    BOOST_TEST(b.out->text == R"({"translations":[{"detected_source_lang":"en","text":""},)"
                              R"({"detected_source_lang":"en","text":""}]})");
  }
}

BOOST_AUTO_TEST_CASE(a_padded_prompt_begins_with_the_end_of_text) {
  bench b;
  b.send(R"({"contents":["ab",""]})", dialects::batch_v2);
  BOOST_TEST(b.submitted.at(0).prompt == (std::vector<token_id>{0, 'a', 'b'}), boost::test_tools::per_element());
  BOOST_TEST(b.submitted.at(1).prompt == std::vector<token_id>{0}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(stop_ids_of_another_vocabulary_stop_nothing) {
  bench b;
  b.send(R"({"contents":["a"],"stop_tokens":[0,261,24281,66]})", dialects::batch);
  BOOST_TEST(b.submitted.at(0).rows.at(0).stop_ids == (std::vector<token_id>{0, 66}), boost::test_tools::per_element());
  b.send(R"({"prompt":"a","stop_token_ids":[261]})", dialects::completions);
  BOOST_TEST(b.out->status == 400u);
}

BOOST_AUTO_TEST_SUITE_END()
