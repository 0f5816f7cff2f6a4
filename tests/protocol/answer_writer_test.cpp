// The writers of all dialects by the same words; what they say of a session; events that several rows share.
#include "protocol/responses/answer_writer.hpp"

#include <boost/test/unit_test.hpp>

#include "protocol/responses/native_writer.hpp"

namespace {

using namespace skein::protocol;

const answer_head plain_head{"id-1", "m", "", 7};
const std::string begin = R"({"id":"id-1","object":)";
const native_writer native("rwkv7-batch");

session_note note() { return {"s", 3, "process", true, false, false, {}}; }

std::size_t events_in(const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find("data: "); at != std::string::npos; at = text.find("data: ", at + 1)) ++count;
  return count;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(answer_writers)

BOOST_AUTO_TEST_CASE(native_answers_add_to_what_old_clients_know) {
  BOOST_TEST(native.begin_event(plain_head, 0).empty());
  const row_delta x{2, "", "x", {}}, nothing{2, "", "", {}};
  BOOST_TEST(native.delta_events(plain_head, {&x, 1}) ==
             "data: " + begin +
                 R"("chat.completion.chunk","created":7,"model":"m","system_fingerprint":null,)"
                 R"("choices":[{"index":2,"delta":{"content":"x"}}]})"
                 "\n\n");
  BOOST_TEST(native.delta_events(plain_head, {&nothing, 1}).empty());
  BOOST_TEST(native.delta_events(plain_head, {}).empty());
  answer_end end;
  end.reason = finish_reason::length;
  const auto last = native.end_event(plain_head, 2, end, nullptr);
  BOOST_TEST(last.find(R"("choices":[{"index":2,"delta":{},"finish_reason":"length"}]})") != std::string::npos);
  BOOST_TEST(native.last_events(plain_head, {}, nullptr) == "data: [DONE]\n\n");
  whole_row a, b;
  a.content = "one";
  b.index = 1;
  b.content = "two";
  const auto body = native.body(plain_head, {a, b}, {5, 2, 1, 0}, nullptr);
  BOOST_TEST(body.starts_with(begin + R"("chat.completion",)"));
  BOOST_TEST(body.find(R"({"index":1,"message":{"role":"assistant","content":"two"},"finish_reason":"stop"})") !=
             std::string::npos);
  BOOST_TEST(body.find(R"("usage":{"prompt_tokens":5)") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(rows_share_an_event_or_have_their_own) {
  const std::vector<row_delta> rows{{0, "", "a", {}}, {1, "", "", {}}, {4, "", "b", {}}};
  const auto shared = native.delta_events(plain_head, rows);
  BOOST_TEST(events_in(shared) == 1u);
  BOOST_TEST(shared.find(R"("choices":[{"index":0,"delta":{"content":"a"}},{"index":4,"delta":{"content":"b"}}]})") !=
             std::string::npos);
  const native_writer single("rwkv7-fast-batch", native_writer::events::of_one_row);
  BOOST_TEST(events_in(single.delta_events(plain_head, rows)) == 2u);
  for (const answer_writer* openai : {&chat_writer(), &completion_writer()})
    BOOST_TEST(events_in(openai->delta_events(plain_head, rows)) == 3u);
}

BOOST_AUTO_TEST_CASE(ids) {
  const native_writer single("rwkv7-fast-batch", native_writer::events::of_one_row);
  BOOST_TEST(native.id({"req-7", true, {}}) == "rwkv7-batch");
  BOOST_TEST(single.id({"req-7", true, {}}) == "req-7");
  BOOST_TEST(single.id({"req-7", false, {}}) == "rwkv7-fast-batch");
  BOOST_TEST(chat_writer().id({"req-7", false, {1}}) == "chatcmpl-010000000000000000000000");
  BOOST_TEST(completion_writer().id({"req-7", false, {1}}) == "cmpl-010000000000000000000000");
}

BOOST_AUTO_TEST_CASE(every_writer_says_the_same_of_a_session) {
  const std::string said = R"("session":{"id":"s","version":3,"durable":"process"})";
  answer_head asked = plain_head;
  asked.usage_follows = true;
  for (const answer_writer* writer :
       std::initializer_list<const answer_writer*>{&chat_writer(), &completion_writer(), &native}) {
    auto n = note();
    BOOST_TEST(writer->body(plain_head, {whole_row{}}, {}, &n).find(said) != std::string::npos);
    BOOST_TEST(writer->end_event(plain_head, 0, {}, &n).find(said) != std::string::npos);
    BOOST_TEST((writer->last_events(asked, {}, &n).find(said) != std::string::npos) == (writer != &native));
    BOOST_TEST(writer->body(plain_head, {whole_row{}}, {}, nullptr).find("session") == std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(what_a_note_can_say) {
  auto n = note();
  n.replayed = n.unfinished = true;
  BOOST_TEST(native.body(plain_head, {}, {}, &n).find(R"("durable":"process","replayed":true,"unfinished":true})") !=
             std::string::npos);
  n = note();
  n.stored = false;
  BOOST_TEST(native.body(plain_head, {}, {}, &n).find(R"({"id":"s","version":3,"stored":false})") != std::string::npos);
  n = note();
  n.parent = 1;
  BOOST_TEST(native.body(plain_head, {}, {}, &n).find(R"("dialogue_idx":3,"parent":1)") != std::string::npos);
  BOOST_TEST(
      native.last_events(plain_head, {}, &n) ==
      "data: {\"object\":\"multi_state.dialogue_idx\",\"session_id\":\"s:3\",\"dialogue_idx\":3,\"parent\":1}\n\n"
      "data: [DONE]\n\n");
}

BOOST_AUTO_TEST_SUITE_END()
