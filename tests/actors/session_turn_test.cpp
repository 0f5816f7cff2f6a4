// Sessions through the request actor, with a persistence actor that answers at once and a device whose next token
// depends on all tokens before it. Shows that a session's state is exactly the text of its versions, however the client
// sends its turns; that the end of an answer waits for the log; and that a failure leaves nothing behind.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/actors/session_bench.hpp"

namespace {

using namespace skein;
using namespace std::chrono_literals;

using bench = test::session_bench;
namespace dialects = protocol::dialects;
using protocol::dialect;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) c == '\n' ? out += "\\n" : out += c;
  return out + '"';
}

std::string user(const std::string& text) { return R"({"role":"user","content":)" + quoted(text) + "}"; }
std::string assistant(const std::string& text) { return R"({"role":"assistant","content":)" + quoted(text) + "}"; }
std::string chat(const std::string& messages, const std::string& more = "") {
  return R"({"session_id":"s","max_tokens":9,"temperature":0,"stop_tokens":[],"messages":[)" + messages + "]" + more +
         "}";
}
std::string raw(const std::string& prompt, const std::string& more = "") {
  return R"({"session_id":"r","max_tokens":6,"stop_tokens":[],"contents":[)" + quoted(prompt) + "]" + more + "}";
}

/// Every state that is kept is the text of its version, to the byte, without the token that is fed again.
void check_states(const bench& b, const std::string& id) {
  const auto* tree = b.sessions.find(id);
  BOOST_REQUIRE(tree);
  for (const auto& [number, version] : tree->versions()) {
    const auto tokens = b.sessions.tokens(id, number);
    const auto kept = b.sessions.states.find({tree->record().uid, number});
    if (kept != b.sessions.states.end())
      BOOST_TEST((b.sessions.tokens_of(kept->second) == b.sessions.processed(id, number)));
    BOOST_TEST(version->text == b.text_of(version->tokens));
    BOOST_TEST(version->total_tokens == tokens.size());
  }
}

const std::vector<std::string> questions{"Hi", "And then?", "Why", "More\n\nplease", "The end"};

/// The five answers of a chat told by `tell(number, answers so far)`.
template <typename Tell>
std::vector<std::string> five_turns(bench& b, Tell tell) {
  std::vector<std::string> answers;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    b.ask(tell(i, answers));
    BOOST_TEST_CONTEXT(b.out->text) BOOST_TEST(b.out->status == 200u);
    BOOST_TEST(b.out->header("X-Session-State") == (i == 0 ? "new" : "continued"));
    BOOST_TEST(
        b.out->has("\"session\":{\"id\":\"s\",\"version\":" + std::to_string(i + 1) + ",\"durable\":\"process\""));
    answers.push_back(b.out->streaming ? b.streamed("content") : b.member("content"));
    BOOST_TEST(answers.back().size() > 3u);
  }
  check_states(b, "s");
  return answers;
}

std::string whole_history(std::size_t i, const std::vector<std::string>& answers) {
  std::string messages;
  for (std::size_t k = 0; k < i; ++k) messages += user(questions[k]) + "," + assistant(answers[k]) + ",";
  return chat(messages + user(questions[i]));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(session_turns)

BOOST_AUTO_TEST_CASE(five_turns_are_the_same_however_they_are_told) {
  bench increments, histories, rebuilt, streamed;
  rebuilt.sessions.keeps_states = false;
  const auto one = [](std::size_t i, const auto&) { return chat(user(questions[i])); };
  const auto answers = five_turns(increments, one);
  BOOST_TEST(five_turns(histories, whole_history) == answers, boost::test_tools::per_element());
  BOOST_TEST(five_turns(rebuilt, one) == answers, boost::test_tools::per_element());
  const auto streams = [](std::size_t i, const auto&) { return chat(user(questions[i]), R"(,"stream":true)"); };
  BOOST_TEST(five_turns(streamed, streams) == answers, boost::test_tools::per_element());
  // The state holds what the template adds, and both tell the same history.
  BOOST_TEST(increments.sessions.segments == histories.sessions.segments, boost::test_tools::per_element());
  const std::string text = increments.text_of(increments.sessions.tokens("s", 2));
  BOOST_TEST(text.starts_with("User: Hi\n\nAssistant: <think>\n</think"));
  BOOST_TEST(text.find("\n\nUser: And then?\n\nAssistant: <think>\n</think") != std::string::npos);
  BOOST_TEST(increments.sessions.segments[1].starts_with("\n\nUser: And then?\n\nAssistant: "));
}

BOOST_AUTO_TEST_CASE(usage_counts_the_increment_or_the_whole_history) {
  bench b;
  const auto answers = five_turns(b, [](std::size_t i, const auto&) { return chat(user(questions[i])); });
  b.ask(chat(user("x")));
  const auto own = std::string("\n\nUser: x\n\nAssistant: <think>\n</think").size();
  BOOST_TEST(b.out->has("\"prompt_tokens\":" + std::to_string(own) + ","));
  BOOST_TEST(b.out->has(R"("cached_tokens":0)"));
  const auto held = b.sessions.tokens("s", 1).size();
  b.ask(chat(user(questions[0]) + "," + assistant(answers[0]) + "," + user("x")));
  BOOST_TEST(b.out->has("\"prompt_tokens\":" + std::to_string(held + own) + ","));
  BOOST_TEST(b.out->has("\"cached_tokens\":" + std::to_string(held)));
  BOOST_TEST(b.sessions.head("s").parent == 1u);  // an edit: it branches off
}

BOOST_AUTO_TEST_CASE(a_system_text_is_not_said_twice) {
  bench b;
  const std::string system = R"({"role":"system","content":"Be brief."})";
  b.ask(chat(system + "," + user("Hi")));
  b.ask(chat(system + "," + user("Again")));
  BOOST_TEST(b.sessions.head("s").text.starts_with("\n\nUser: Again\n\n"));
  BOOST_TEST(b.sessions.head("s").messages.size() == 1u);
  b.ask(chat(R"({"role":"system","content":"Be long."},)" + user("Again")));
  BOOST_TEST(b.sessions.head("s").text.starts_with("\n\nSystem: Be long.\n\nUser: Again\n\n"));
  check_states(b, "s");
}

BOOST_AUTO_TEST_CASE(the_wish_to_think_is_fed_and_not_remembered) {
  bench b;
  b.ask(chat(user("Hi"), R"(,"think_type":"enShort","reasoning_format":"raw")"));
  BOOST_TEST(b.sessions.head("s").text.starts_with("User: Hi (think a bit)\n\nAssistant: <think"));
  BOOST_TEST(b.sessions.segments[0].starts_with("User: Hi\n\nAssistant: "));
  const std::string answer = b.member("content");
  b.ask(chat(user("Hi") + "," + assistant(answer) + "," + user("Next")));
  BOOST_TEST(b.out->header("X-Session-State") == "continued");
  BOOST_TEST(b.sessions.head("s").parent == 1u);
  BOOST_TEST(b.sessions.head("s").text.starts_with("\n\nUser: Next\n\n"));
}

BOOST_AUTO_TEST_CASE(raw_prompts_continue_with_a_blank_line_or_as_they_are) {
  bench b;
  b.ask(raw("User: a\n\nAssistant:"), dialects::state);
  BOOST_TEST(b.out->has(R"("id":"rwkv7-batch","object":"chat.completion")"));
  BOOST_TEST(b.out->has(R"("model":"rwkv7")"));
  const std::string first = b.member("content");
  b.ask(raw("User: b\n\nAssistant:"), dialects::state);
  BOOST_TEST(b.sessions.head("r").text.starts_with("\n\nUser: b\n\nAssistant:"));
  b.ask(raw("\n\nUser: c"), dialects::state);
  BOOST_TEST(b.sessions.head("r").text.starts_with("\n\nUser: c"));
  b.ask(raw("User: a\n\nAssistant:" + first + " and so"), dialects::state);  // the history, resent
  BOOST_TEST(b.sessions.head("r").parent == 1u);
  BOOST_TEST(b.sessions.head("r").text.starts_with(" and so"));
  check_states(b, "r");
}

BOOST_AUTO_TEST_CASE(without_an_id_nothing_is_kept) {
  bench b;
  b.ask(R"({"contents":["x"],"session_id":null,"max_tokens":2,"stop_tokens":[]})", dialects::state);
  BOOST_TEST(b.out->status == 200u);
  BOOST_TEST(b.sessions.opened.empty());
  BOOST_TEST(!b.out->has("session"));
}

BOOST_AUTO_TEST_CASE(an_empty_id_is_refused_and_not_read_as_none) {
  bench b;
  for (const auto* as : {&dialects::state, &dialects::chat, &dialects::completions}) {
    b.ask(R"({"contents":["x"],"prompt":"x","messages":[{"role":"user","content":"x"}],"session_id":""})", *as);
    BOOST_TEST(b.out->status == 400u);
    BOOST_TEST(b.out->has("session_id must have 1 to 256 bytes"));
  }
}

BOOST_AUTO_TEST_CASE(a_stop_string_leaves_no_trace_in_the_state) {
  bench b;
  const std::string script = "abcSTOPdef";
  b.next = [&](const auto& state) { return script[(state.size() - b.prompt_end) % script.size()]; };
  b.ask(R"({"session_id":"r","contents":["x"],"max_tokens":20,"stop_tokens":["STOP"]})", dialects::state);
  BOOST_TEST(b.member("content") == "abc");
  BOOST_TEST(b.out->has(R"("finish_reason":"stop")"));
  BOOST_TEST(b.sessions.head("r").text == "xabc");
  BOOST_TEST(b.sessions.head("r").answer == "abc");
  check_states(b, "r");
}

BOOST_AUTO_TEST_CASE(the_cut_part_of_a_token_is_fed_in_other_tokens) {
  bench b;
  std::string world;
  for (int byte = 0; byte < 256; ++byte) {
    char line[32];
    std::snprintf(line, sizeof line, "%d b'\\x%02x' 1\n", byte + 1, byte);
    world += line;
  }
  world += "257 'ab;EN' 5\n258 'D' 1\n259 'ab' 2\n";
  world.replace(world.find("258 'D' 1\n"), 10, "");  // one token a text: 'D' is a byte already
  auto vocabulary = tokenizer::vocabulary::parse(world, "toy");
  BOOST_REQUIRE_MESSAGE(vocabulary, (vocabulary ? "" : vocabulary.error().message));
  b.model->served.vocabulary = *vocabulary;
  b.model->served.vocab = 300;
  const std::vector<token_id> script{'x' + 1, 257, 'D' + 1, 'y' + 1};
  b.next = [&](const auto& state) { return script[(state.size() - b.prompt_end) % script.size()]; };
  b.ask(R"({"session_id":"r","contents":["p"],"max_tokens":9,"stop_tokens":[";END"]})", dialects::state);
  BOOST_TEST(b.member("content") == "xab");
  const std::vector<token_id> expected{'p' + 1, 'x' + 1, 259};
  BOOST_TEST(b.sessions.head("r").tokens == expected, boost::test_tools::per_element());
  check_states(b, "r");
}

BOOST_AUTO_TEST_CASE(half_a_character_at_the_end_is_not_kept) {
  bench b;
  const std::string script = "a\xe4\xbd";
  b.next = [&](const auto& state) { return static_cast<unsigned char>(script[state.size() - b.prompt_end]); };
  b.ask(R"({"session_id":"r","contents":["p"],"max_tokens":3,"stop_tokens":[]})", dialects::state);
  BOOST_TEST(b.member("content") == "a");
  BOOST_TEST(b.sessions.head("r").text == "pa");
  check_states(b, "r");
}

BOOST_AUTO_TEST_CASE(the_end_waits_for_the_log) {
  for (const bool stream : {false, true}) {
    bench b;
    b.sessions.holds_back = true;
    b.ask(chat(user("Hi"), stream ? R"(,"stream":true,"stream_options":{"include_usage":true})" : ""));
    BOOST_TEST(!b.out->ended);
    BOOST_TEST(!b.out->has("finish_reason\":\"length"));
    b.sessions.durable = persistence::durability::memory;
    b.sessions.commit_now(b.hub);
    BOOST_TEST(b.out->ended);
    BOOST_TEST(b.out->has("finish_reason\":\"length"));
    const std::string note = R"("session":{"id":"s","version":1,"durable":"memory"})";
    BOOST_TEST(b.out->has(note));
    if (!stream) continue;
    BOOST_TEST(b.out->header("X-Session-State") == "new");
    BOOST_TEST(b.out->text.rfind(note) > b.out->text.find(R"("choices":[],"usage")"));  // also in the last event
    BOOST_TEST(b.out->text.ends_with("data: [DONE]\n\n"));
  }
}

BOOST_AUTO_TEST_CASE(a_log_that_refuses_is_an_error_and_not_an_end) {
  bench b;
  b.sessions.refuses_commit = error{error_kind::no_space, "the disk is full", ""};
  b.ask(chat(user("Hi")));
  BOOST_TEST(b.out->status == 507u);
  b.ask(chat(user("Hi"), R"(,"stream":true)"));
  BOOST_TEST(b.out->status == 200u);
  BOOST_TEST(b.out->has(R"("code":"insufficient_storage")"));
  BOOST_TEST(!b.out->has("finish_reason\":\"length"));
}

BOOST_AUTO_TEST_CASE(a_client_that_leaves_stores_nothing) {
  bench b;
  b.begin(chat(user("Hi")));
  b.start_device();
  b.sample();
  b.call->gone("client closed", connection::client_gone);
  b.call.reset();
  b.pump();
  BOOST_TEST(b.cancelled.size() == 1u);
  BOOST_TEST(b.sessions.releases == 1);
  BOOST_TEST(b.sessions.leases.empty());
  BOOST_TEST(!b.sessions.find("s"));
}

BOOST_AUTO_TEST_CASE(a_client_that_leaves_before_it_is_its_turn_gives_that_back) {
  bench b;
  b.send(chat(user("Hi")));
  b.call->gone("client closed", connection::client_gone);
  b.call.reset();
  b.pump();
  BOOST_TEST(b.sessions.releases == 1);
  BOOST_TEST(b.submitted.empty());
}

BOOST_AUTO_TEST_CASE(store_on_disconnect_keeps_what_there_is) {
  bench b;
  b.begin(chat(user("Hi"), R"(,"store_on_disconnect":true)"));
  b.start_device();
  for (int i = 0; i < 4; ++i) b.sample();
  b.call->gone("client closed", connection::client_gone);
  b.call.reset();
  b.read_mailbox();
  BOOST_TEST(b.cancelled.empty());  // a cancel would undo the settling
  BOOST_REQUIRE_EQUAL(b.settled.size(), 1u);
  BOOST_TEST(b.settled[0].sampled == 4u);
  b.settle();
  BOOST_TEST(b.sessions.head("s").finish_reason == "length");
  check_states(b, "s");
}

BOOST_AUTO_TEST_CASE(a_drained_answer_is_kept_aside_and_can_be_continued) {
  for (const bool raw_prompt : {false, true}) {
    bench whole, b;
    const std::string body =
        raw_prompt ? R"({"session_id":"s","contents":["p"],"max_tokens":9,"stop_tokens":[]})" : chat(user("Hi"));
    const dialect& as = raw_prompt ? dialects::state : dialects::chat;
    whole.ask(body, as);
    const std::string expected = whole.member("content");

    test::call_origin origin;
    origin.dialect = &as;
    b.begin(body, std::move(origin));
    b.start_device();
    for (int i = 0; i < 4; ++i) b.sample();
    b.tell(device::row_finished{b.submitted.back().id, 0, device::finish_cause::shutdown});
    b.settle();
    b.ran = b.submitted.size();
    BOOST_TEST(b.out->ended);
    BOOST_TEST(b.out->has(R"("stop_reason":"drain")"));
    BOOST_TEST(b.out->has(R"("unfinished":true)"));
    const std::string first = b.member("content");
    BOOST_TEST(b.sessions.find("s")->record().head == 0u);
    b.ask(R"({"session_id":"s","continue":true,"max_tokens":5,"temperature":0,"stop_tokens":[]})", as);
    BOOST_TEST(b.submitted.back().prompt.size() == 1u);  // the rest is in the state of the broken answer
    BOOST_TEST_CONTEXT(b.out->text) BOOST_TEST(first + b.member("content") == expected);
    BOOST_TEST(b.sessions.head("s").answer == expected);
    BOOST_TEST(b.sessions.head("s").parent == 0u);
    BOOST_TEST(b.sessions.segments.back() == whole.sessions.segments.back());
    BOOST_TEST(b.sessions.head("s").tokens == whole.sessions.head("s").tokens, boost::test_tools::per_element());
    BOOST_TEST(b.sessions.head("s").prompt_tokens == whole.sessions.head("s").prompt_tokens);
    check_states(b, "s");
    // Nothing is broken any more, but it was cut at its limit.
    b.ask(R"({"session_id":"s","continue":true,"max_tokens":3,"temperature":0,"stop_tokens":[]})", as);
    const std::string more = b.member("content");
    BOOST_TEST((b.out->status == 200u && !more.empty()));
    BOOST_TEST(b.sessions.head("s").answer == expected + more);
    BOOST_TEST(b.sessions.head("s").parent == 0u);
    check_states(b, "s");
  }
}

BOOST_AUTO_TEST_CASE(a_running_answer_is_noted_now_and_then) {
  bench b;
  b.ask(R"({"session_id":"r","contents":["p"],"max_tokens":40,"stop_tokens":["zzz"]})", dialects::state);
  BOOST_REQUIRE_EQUAL(b.sessions.notes.size(), 2u);
  const auto& note = b.sessions.notes[0].so_far;
  BOOST_TEST(note.tokens.size() <= 17u);
  BOOST_TEST(note.tokens.size() >= 15u);  // what could still become a stop string is not certain
  BOOST_TEST(note.text == b.text_of(note.tokens));
  BOOST_TEST(b.sessions.head("r").text.starts_with(note.text));
  BOOST_TEST(!note.answer.empty());
}

BOOST_AUTO_TEST_CASE(a_retry_with_its_key_is_answered_from_the_record) {
  for (const bool stream : {false, true}) {
    bench b;
    test::call_origin origin;
    origin.request_key = "k1";
    const std::string body = chat(user("Hi"), stream ? R"(,"stream":true)" : "");
    b.ask(body, origin);
    const std::string answer = stream ? b.streamed("content") : b.member("content");
    b.ask(body, origin);
    BOOST_TEST((stream ? b.streamed("content") : b.member("content")) == answer);
    BOOST_TEST(b.out->ended);
    BOOST_TEST(b.out->has(R"("replayed":true)"));
    BOOST_TEST(b.out->header("Idempotent-Replayed") == "true");
    BOOST_TEST(b.submitted.size() == 1u);
    BOOST_TEST(b.sessions.find("s")->versions().size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(a_retry_reports_the_usage_of_the_first_answer) {
  bench b;
  b.ask(chat(user("Hi")));
  const std::string body = chat(user("Hi") + "," + assistant(b.member("content")) + "," + user("x"));
  test::call_origin origin;
  origin.request_key = "k1";
  const auto usage = [&] { return b.out->text.substr(b.out->text.find(R"("usage")"), 150); };
  const std::string first = (b.ask(body, origin), usage());
  b.ask(body, origin);
  BOOST_TEST(b.out->has(R"("replayed":true)"));
  BOOST_TEST(usage() == first);
}

BOOST_AUTO_TEST_CASE(a_key_belongs_to_one_body) {
  bench b;
  test::call_origin origin;
  origin.request_key = "k1";
  b.ask(R"({"session_id":"s","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]})", origin);
  b.ask(R"({"messages":[{"content":"Hi","role":"user"}], "max_tokens":9.0, "session_id":"s","stream":false})", origin);
  BOOST_TEST(b.out->status == 200u);  // the same in other words, and another way to deliver it
  BOOST_TEST(b.out->has(R"("replayed":true)"));
  for (const char* other : {R"("max_tokens":9,"messages":[{"role":"user","content":"Ho"}]})",
                            R"("max_tokens":8,"messages":[{"role":"user","content":"Hi"}]})",
                            R"("max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"seed":1})"}) {
    b.ask(R"({"session_id":"s",)" + std::string(other), origin);
    BOOST_TEST(b.out->status == 422u);
    BOOST_TEST(b.out->has(R"("code":"idempotency_key_reused")"));
    BOOST_TEST(b.out->has(R"("param":"Idempotency-Key")"));
  }
  BOOST_TEST(b.sessions.find("s")->versions().size() == 1u);
}

BOOST_AUTO_TEST_CASE(another_version_than_expected_is_a_conflict) {
  bench b;
  b.ask(chat(user("Hi")));
  test::call_origin origin;
  origin.if_match = "\"7\"";
  b.ask(chat(user("Next")), origin);
  BOOST_TEST(b.out->status == 409u);
  BOOST_TEST(b.out->has("version_conflict"));
  BOOST_TEST(b.out->header("x-should-retry") == "false");
  origin.if_match = "1";
  b.ask(chat(user("Next")), origin);
  BOOST_TEST(b.out->status == 200u);
  b.ask(chat(user("Next"), R"(,"expected_version":1)"));
  BOOST_TEST(b.out->status == 409u);
  origin.if_match = "one";
  b.ask(chat(user("Next")), origin);
  BOOST_TEST(b.out->status == 400u);
  BOOST_TEST(b.out->has(R"("param":"If-Match")"));
}

BOOST_AUTO_TEST_CASE(an_earlier_version_is_continued_where_it_is_named) {
  bench b;
  for (const char* text : {"one", "two", "three"}) b.ask(chat(user(text)));
  b.ask(chat(user("else"), R"(,"from_version":1)"));
  BOOST_TEST(b.sessions.head("s").parent == 1u);
  b.ask(chat(user("new"), R"(,"from_version":0)"));
  BOOST_TEST(b.sessions.head("s").parent == 0u);
  b.ask(chat(user("none"), R"(,"from_version":99)"));
  BOOST_TEST(b.out->status == 404u);
  BOOST_TEST(b.out->has("from_version"));
  check_states(b, "s");
}

BOOST_AUTO_TEST_CASE(without_store_the_state_serves_and_nothing_is_kept) {
  bench b, kept;
  b.ask(chat(user("Hi")));
  kept.ask(chat(user("Hi")));
  kept.ask(chat(user("Next")));
  b.ask(chat(user("Next"), R"(,"store":false)"));
  BOOST_TEST(b.member("content") == kept.member("content"));
  BOOST_TEST(b.out->has(R"("session":{"id":"s","version":1,"stored":false})"));
  BOOST_TEST(!b.submitted.back().settles_as);
  BOOST_TEST(b.sessions.find("s")->versions().size() == 1u);
  BOOST_TEST(b.sessions.leases.empty());  // others need not wait
}

BOOST_AUTO_TEST_CASE(branches_are_named_by_their_index) {
  bench b;
  test::call_origin origin;
  origin.dialect = &dialects::multi_state;
  origin.errors = protocol::error_style::flat;
  const auto ask = [&](const std::string& index, const std::string& more = "") {
    b.ask(R"({"session_id":"m","contents":["x"],"max_tokens":3,"stop_tokens":[],)" + index + more + "}", origin);
  };
  ask(R"("dialogue_idx":0)");
  BOOST_TEST(b.out->has(R"("id":"rwkv7-multi-state")"));
  BOOST_TEST(b.out->has(R"("dialogue_idx":1,"parent":0)"));
  ask(R"("dialogue_idx":1)");
  ask(R"("parent":1)", R"(,"stream":true)");
  BOOST_TEST(b.out->has(
      "data: {\"object\":\"multi_state.dialogue_idx\",\"session_id\":\"m:3\",\"dialogue_idx\":3,\"parent\":1}\n\n"
      "data: [DONE]\n\n"));
  ask(R"("dialogue_idx":7)");
  BOOST_TEST(b.out->status == 404u);
  BOOST_TEST(b.out->text == R"({"error":"State not found for dialogue_idx=7"})");
  ask(R"("x":0)");
  BOOST_TEST(b.out->text == R"({"error":"Missing dialogue_idx parameter"})");
  check_states(b, "m");
}

BOOST_AUTO_TEST_CASE(what_a_session_cannot_have_is_refused_by_name) {
  bench b;
  const auto refused = [&](const std::string& body, const dialect& as, const std::string& field) {
    b.ask(body, as);
    BOOST_TEST_CONTEXT(body << " " << b.out->text) {
      BOOST_TEST(b.out->status == 400u);
      BOOST_TEST(b.out->has("\"param\":\"" + field + "\""));
    }
  };
  const std::string prompt = R"({"session_id":"s","prompt":)";
  refused(chat(user("x"), R"(,"n":2)"), dialects::chat, "n");
  refused(chat(user("x"), R"(,"from_version":-1)"), dialects::chat, "from_version");
  refused(chat(user("x"), R"(,"durability":"maybe")"), dialects::chat, "durability");
  refused(chat(user("x"), R"(,"continue":true)"), dialects::chat, "messages");
  refused(prompt + R"("x","best_of":2})", dialects::completions, "best_of");
  refused(prompt + R"(["x","y"]})", dialects::completions, "prompt");
  refused(prompt + R"([1,2]})", dialects::completions, "prompt");
  refused(prompt + R"("x","suffix":"y"})", dialects::completions, "suffix");
  refused(prompt + R"("x","echo":true,"logprobs":1})", dialects::completions, "echo");
  refused(R"({"prompt":"x","session_id":")" + std::string(257, 'x') + "\"}", dialects::completions, "session_id");
  refused(R"({"prompt":"x","session_id":7})", dialects::completions, "session_id");
  refused(R"({"continue":true})", dialects::completions, "continue");
  b.ask(R"({"contents":["a","b"]})", dialects::state);
  BOOST_TEST(b.out->status == 500u);
  BOOST_TEST(b.out->has("Requst must be single prompt !"));
  BOOST_TEST(b.sessions.opened.empty());
}

BOOST_AUTO_TEST_CASE(known_prefixes_are_not_fed_again_and_copies_are_wanted) {
  bench b;
  const std::string prompt = "0123456789";
  b.sessions.known_prefix.position = 4;
  b.sessions.known_prefix.key = {0, 9};
  b.sessions.known_prefix.state = test::memory_sessions::state_of({'0', '1', '2', '3'});
  b.sessions.known_prefix.keep = {{{0, 11}, 7}, {{0, 12}, 10}};
  b.ask(R"({"prompt":"0123456789","max_tokens":5})", dialects::completions);
  const auto& s = b.submitted.back();
  BOOST_TEST(b.text_of(s.prompt) == "456789");
  BOOST_TEST(s.from.key.number == 9u);
  BOOST_REQUIRE_EQUAL(s.copies.size(), 2u);
  BOOST_TEST(s.copies[0].position == 3u);
  BOOST_TEST(s.copies[1].position == 6u);
  BOOST_TEST(b.out->has(R"("prompt_tokens":10,)"));
  BOOST_TEST(b.out->has(R"("cached_tokens":4)"));
  const std::string text = b.member("text");

  for (const char* no : {R"("use_prefix_cache":false)", R"("cache_prompt":false)"}) {
    bench cold;
    cold.ask(R"({"prompt":"0123456789","max_tokens":5,)" + std::string(no) + "}", dialects::completions);
    BOOST_TEST(cold.sessions.looked_up.empty());
    BOOST_TEST(cold.member("text") == text);  // a hit changes nothing
  }
  b.ask(R"({"prompt":"0123456789","max_tokens":5,"store":false})", dialects::completions);
  BOOST_TEST(b.submitted.back().copies.empty());
  BOOST_TEST(b.sessions.never.size() == 2u);  // and no client waits for them
  b.ask(R"({"prompt":["ab","cd"],"max_tokens":1})", dialects::completions);
  BOOST_TEST(b.sessions.looked_up.size() == 2u);
}

BOOST_AUTO_TEST_CASE(an_answer_about_prefixes_that_does_not_come_is_not_waited_for) {
  for (const bool in_session : {false, true}) {
    bench b;
    b.sessions.known_prefix.keep = {{{0, 11}, 7}, {{0, 12}, 9}};
    request::call_origin origin;
    origin.dialect = in_session ? &dialects::chat : &dialects::completions;
    b.send(in_session ? chat(user("Hi")) : R"({"prompt":"0123456789","max_tokens":5})", std::move(origin));
    if (in_session) b.sessions.pump(b.hub);  // the session is opened; what is asked then has no answer
    b.time.advance(1s);
    b.hub.tick(b.time.now());
    b.read_mailbox();
    BOOST_TEST(b.submitted.empty());
    b.time.advance(2s);
    b.hub.tick(b.time.now());
    b.read_mailbox();
    BOOST_REQUIRE_EQUAL(b.submitted.size(), 1u);
    BOOST_TEST(b.submitted.back().copies.empty());
    b.finish_device_work();  // the late answer comes meanwhile
    BOOST_TEST(b.sessions.looked_up.size() == 1u);
    BOOST_TEST(b.sessions.never.size() == 2u);  // the wanted states are given up
    BOOST_TEST(b.out->status == 200u);
    BOOST_TEST(b.submitted.size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(the_total_time_begins_when_a_request_is_accepted) {
  const auto pass = [](bench& b, std::chrono::milliseconds time) {
    b.time.advance(time);
    b.hub.tick(b.time.now());
    b.read_mailbox();
  };
  for (const bool waits_for_log : {false, true}) {
    bench b;
    b.context->settings.queue.total_timeout_ms = 60'000;
    b.sessions.holds_back = true;
    waits_for_log ? void(b.ask(chat(user("Hi")))) : b.send(chat(user("Hi")));  // a session that is not answered
    BOOST_TEST(b.submitted.size() == (waits_for_log ? 1u : 0u));
    pass(b, 59s);
    BOOST_TEST(!b.out->ended);
    pass(b, 1s);
    BOOST_TEST(b.out->ended == !waits_for_log);  // the log gets some more time
    pass(b, 30s);
    BOOST_TEST(b.out->status == 504u);
    BOOST_TEST(b.out->has("queue.total_timeout_ms"));
    b.pump();
    b.sessions.commit_now(b.hub);
    BOOST_TEST(b.sessions.releases == (waits_for_log ? 0 : 1));
  }
  bench b;
  b.context->settings.queue.total_timeout_ms = 60'000;
  b.begin(chat(user("Hi")));
  b.start_device();
  pass(b, 100s);
  BOOST_TEST(!b.out->ended);  // the device has it, which keeps the time
  BOOST_TEST((b.submitted.back().total_deadline == b.submitted.back().queue_deadline));
}

BOOST_AUTO_TEST_CASE(prefixes_are_marked_where_texts_end) {
  bench b;
  b.ask(R"({"messages":[{"role":"system","content":"S"},{"role":"user","content":"U"}],"max_tokens":1})");
  BOOST_REQUIRE_EQUAL(b.sessions.looked_up.size(), 1u);
  BOOST_TEST(b.sessions.looked_up[0].system_tokens == std::string("System: S\n\n").size());
  BOOST_TEST(b.sessions.looked_up[0].turn_tokens == std::string("System: S\n\nUser: U\n\n").size());
}

BOOST_AUTO_TEST_CASE(a_tuned_state_is_where_it_begins) {
  bench b;
  request::tuned_state poet{"poet", "abc", test::memory_sessions::state_of({1, 2, 3}), 0.0f, 0.25f};
  BOOST_REQUIRE(b.model->tuned.put(poet, 2));
  for (const char* how : {R"("model":"tiny poet")", R"("model":"poet")", R"("state_name":"poet")"}) {
    b.ask(R"({"session_id":"t","messages":[)" + user("Hi") + R"(],"max_tokens":2,)" + how + "}");
    BOOST_TEST_CONTEXT(how) BOOST_TEST(b.out->status == 200u);
    BOOST_TEST(b.sessions.opened.back().initial_state == "abc");
    BOOST_TEST(b.submitted.back().rows[0].temperature == 0.0f);
    BOOST_TEST(b.submitted.back().rows[0].top_p == 0.25f);
    BOOST_TEST(b.submitted.front().from.state == poet.values);
  }
  b.ask(R"({"messages":[)" + user("Hi") + R"(],"max_tokens":2,"state_name":"none"})");
  BOOST_TEST(b.out->status == 404u);
  BOOST_TEST(b.out->has(R"("param":"state_name")"));
  b.context->settings.server.strict_model_names = true;
  b.ask(R"({"model":"tiny none","messages":[)" + user("Hi") + R"(]})");
  BOOST_TEST(b.out->status == 404u);
  BOOST_TEST(b.out->has("model_not_found"));
}

BOOST_AUTO_TEST_SUITE_END()
