// The three shapes of an answer behind one set of words; and what they say of a session.
#include "protocol/answer_format.hpp"

#include <boost/test/unit_test.hpp>

namespace {

using namespace skein::protocol;

const answer_head head{"id-1", "m", "", 7};
const std::string begin = R"({"id":"id-1","object":)";

session_note note() { return {"s", 3, "process", true, false, false, {}}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(answer_formats)

BOOST_AUTO_TEST_CASE(native_answers_add_to_what_old_clients_know) {
  const answer_format native(api::native, head, true);
  BOOST_TEST(native.begin_event(0).empty());
  BOOST_TEST(native.delta_event({2, "", "x", {}}) ==
             "data: " + begin +
                 R"("chat.completion.chunk","created":7,"model":"m","system_fingerprint":null,)"
                 R"("choices":[{"index":2,"delta":{"content":"x"}}]})"
                 "\n\n");
  BOOST_TEST(native.delta_event({2, "", "", {}}).empty());
  answer_end end;
  end.reason = finish_reason::length;
  const auto last = native.end_event(2, end, nullptr);
  BOOST_TEST(last.find(R"("choices":[{"index":2,"delta":{},"finish_reason":"length"}]})") != std::string::npos);
  BOOST_TEST(native.last_events({}, nullptr) == "data: [DONE]\n\n");
  whole_row a, b;
  a.content = "one";
  b.index = 1;
  b.content = "two";
  const auto body = native.body({a, b}, {5, 2, 1, 0}, nullptr);
  BOOST_TEST(body.starts_with(begin + R"("chat.completion",)"));
  BOOST_TEST(body.find(R"({"index":1,"message":{"role":"assistant","content":"two"},"finish_reason":"stop"})") !=
             std::string::npos);
  BOOST_TEST(body.find(R"("usage":{"prompt_tokens":5)") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(every_shape_says_the_same_of_a_session) {
  const std::string said = R"("session":{"id":"s","version":3,"durable":"process"})";
  for (const api shape : {api::chat_completions, api::completions, api::native}) {
    const answer_format format(shape, head, true);
    auto n = note();
    BOOST_TEST(format.body({whole_row{}}, {}, &n).find(said) != std::string::npos);
    BOOST_TEST(format.end_event(0, {}, &n).find(said) != std::string::npos);
    BOOST_TEST((format.last_events({}, &n).find(said) != std::string::npos) == (shape != api::native));
    BOOST_TEST(format.body({whole_row{}}, {}, nullptr).find("session") == std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(what_a_note_can_say) {
  const answer_format format(api::native, head, false);
  auto n = note();
  n.replayed = n.unfinished = true;
  BOOST_TEST(format.body({}, {}, &n).find(R"("durable":"process","replayed":true,"unfinished":true})") !=
             std::string::npos);
  n = note();
  n.stored = false;
  BOOST_TEST(format.body({}, {}, &n).find(R"({"id":"s","version":3,"stored":false})") != std::string::npos);
  n = note();
  n.parent = 1;
  BOOST_TEST(format.body({}, {}, &n).find(R"("dialogue_idx":3,"parent":1)") != std::string::npos);
  BOOST_TEST(
      format.last_events({}, &n) ==
      "data: {\"object\":\"multi_state.dialogue_idx\",\"session_id\":\"s:3\",\"dialogue_idx\":3,\"parent\":1}\n\n"
      "data: [DONE]\n\n");
}

BOOST_AUTO_TEST_SUITE_END()
