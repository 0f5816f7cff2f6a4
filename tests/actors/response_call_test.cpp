// Questions about responses that run, stepped by hand: who finds them, and what they say before the device has them.
#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "protocol/responses_api/response_id.hpp"
#include "tests/actors/memory_sessions.hpp"
#include "tests/actors/service_bench.hpp"
#include "tests/support/failing_new.hpp"

namespace skein::test {

/// An exchange that stays open while others come.
struct kept_exchange {
  std::shared_ptr<response_recorder> out;
  std::unique_ptr<connection::http_call> call;
};

/// The numbers of the events in a stream.
std::string numbers_in(const std::string& stream) {
  std::string numbers;
  constexpr std::string_view mark = R"("sequence_number":)";
  for (auto at = stream.find(mark); at != std::string::npos; at = stream.find(mark, at + 1))
    numbers += stream.substr(at + mark.size(), stream.find_first_of(",}", at) - at - mark.size()) + " ";
  return numbers;
}
std::string numbers(unsigned begin, unsigned end) {
  std::string numbers;
  for (unsigned number = begin; number < end; ++number) numbers += std::to_string(number) + " ";
  return numbers;
}

struct response_bench : service_bench {
  /// Runs what was posted, and answers what the log was asked, until nothing more happens. Long work waits.
  void pump() {
    for (bool more = true; more;) {
      const auto posted = std::exchange(pool.posted, {});
      for (const auto& work : posted) work();
      more = sessions.pump(hub) || !posted.empty();
    }
    std::vector<device::message> messages;
    inbox.drain(messages);
    for (auto& m : messages)
      if (auto* s = std::get_if<device::submit>(&m)) submitted.push_back(std::move(*s));
  }
  void run_long_work() {
    for (const auto& work : std::exchange(pool.long_work, {})) work();
    pump();
  }
  template <typename Event>
  void tell(Event e) {
    std::vector<device::event> events;
    events.emplace_back(std::move(e));
    hub.dispatch(std::move(events));
    pump();
  }
  /// The last submit gets a slot and says this text.
  void say(const std::string& text) {
    const request_id which = submitted.back().id;
    tell(device::admitted{which, {}});
    std::uint32_t index = 0;
    for (const char c : text) tell(device::token{which, 0, index++, static_cast<unsigned char>(c), nullptr});
  }
  void say_more(char c, std::uint32_t index) {
    tell(device::token{submitted.back().id, 0, index, static_cast<unsigned char>(c), nullptr});
  }
  void ask(const std::string& method, const std::string& target) {
    send(method, target);
    pump();
  }
  /// Stores the only turn of its session, which began with that tuned state.
  void store(persistence::version_record turn, const std::string& initial_state = "") {
    storage::session_record record;
    record.initial_state = initial_state;
    record.key.id = protocol::conversation_of(turn.request_key).value();
    record.uid = turn.id = 1;
    auto& tree = sessions.trees.emplace(record.key.id, persistence::session_tree(record)).first->second;
    tree.place(turn, "");
    tree.add(std::move(turn), 0);
  }
  [[nodiscard]] kept_exchange keep() { return {out, std::move(call)}; }
  /// A new response.
  [[nodiscard]] kept_exchange begin(const std::string& more, std::uint32_t tokens_max = 40) {
    const std::string head = R"({"input":"Hi","temperature":0,"max_output_tokens":)" + std::to_string(tokens_max);
    send("POST", "/v1/responses", head + "," + more + "}");
    pump();
    return keep();
  }
  /// Asks for the stream of a response that runs.
  [[nodiscard]] kept_exchange follow(const std::string& id, const std::string& more = "") {
    ask("GET", "/v1/responses/" + id + "?stream=true" + more);
    return keep();
  }
  [[nodiscard]] std::string id_of_the_turn() const { return sessions.opened.back().request_key; }

  memory_sessions sessions{questions};
  std::vector<device::submit> submitted;
};

BOOST_FIXTURE_TEST_SUITE(questions_about_responses, response_bench)

BOOST_AUTO_TEST_CASE(one_that_is_being_tokenised_is_found_and_cancelled) {
  context->settings.inline_text_bytes_max = 1;
  const auto first = begin(R"("background":true)");
  BOOST_TEST(first.out->status == 200u);
  const std::string id = id_of_the_turn();
  BOOST_REQUIRE_EQUAL(pool.long_work.size(), 1u);
  ask("GET", "/v1/responses/" + id);
  BOOST_TEST(out->status == 200u);
  BOOST_TEST(out->has(R"("status":"queued")"));
  ask("POST", "/v1/responses/" + id + "/cancel");
  BOOST_TEST(out->status == 200u);
  BOOST_TEST(out->has("\"id\":\"" + id));
  const auto reader = follow(id);
  BOOST_TEST(!reader.out->ended);

  run_long_work();
  BOOST_TEST(reader.out->ended);
  BOOST_TEST(reader.out->has(R"("status":"cancelled")"));
  ask("GET", "/v1/responses/" + id);
  run_long_work();
  BOOST_TEST(out->status == 200u);
  BOOST_TEST(out->has(R"("status":"cancelled")"));
}

BOOST_AUTO_TEST_CASE(one_that_is_being_tokenised_cannot_be_taken_over_yet) {
  context->settings.inline_text_bytes_max = 1;
  const auto first = begin(R"("stream":true)");
  const std::string id = id_of_the_turn();
  ask("GET", "/v1/responses/" + id + "?stream=true");
  BOOST_TEST(out->status == 409u);
  BOOST_TEST(out->has("try again"));
  run_long_work();
  BOOST_TEST(first.out->has("client_gone"));
}

BOOST_AUTO_TEST_CASE(what_is_cancelled_is_not_taken_over) {
  context->settings.inline_text_bytes_max = 1;
  const auto first = begin(R"("stream":true)");
  const std::string id = id_of_the_turn();
  ask("POST", "/v1/responses/" + id + "/cancel");
  BOOST_TEST(out->status == 200u);
  ask("GET", "/v1/responses/" + id + "?stream=true");
  BOOST_TEST(out->status == 409u);
  run_long_work();
  BOOST_TEST(first.out->has(R"("status":"cancelled")"));
}

BOOST_AUTO_TEST_CASE(the_end_of_a_run_leaves_the_run_that_continues_it) {
  auto first = begin(R"("stream":true)");
  const std::string id = id_of_the_turn();
  say("ab");
  first.call->gone("client", 499);
  pump();
  ask("GET", "/v1/responses/" + id + "?stream=true");
  const auto second = keep();
  BOOST_REQUIRE_EQUAL(submitted.size(), 2u);
  say("c");
  BOOST_TEST(second.out->has(R"("delta":"c")"));
  first.call.reset();  // its connection goes only now
  pump();
  ask("POST", "/v1/responses/" + id + "/cancel");
  BOOST_TEST(out->status == 200u);
  BOOST_TEST(out->has(R"("status":"cancelled")"));
  BOOST_TEST(second.out->ended);
}

BOOST_AUTO_TEST_CASE(a_follower_that_leaves_is_forgotten_before_the_run_ends) {
  const auto first = begin(R"("background":true)");
  const std::string path = "/v1/responses/" + id_of_the_turn() + "?stream=true";
  say("a");
  std::vector<std::weak_ptr<response_recorder>> left;
  for (const bool hangs_up : {true, false}) {
    ask("GET", path);
    BOOST_TEST(out->has(R"("delta":"a")"));
    if (hangs_up) call->gone("client", 499);
    left.push_back(out);
    call.reset();
    out.reset();
  }
  ask("GET", path);
  const auto reader = keep();
  say("b");
  for (const auto& each : left) BOOST_TEST(each.expired());
  BOOST_TEST(reader.out->has(R"("delta":"b")"));
  BOOST_TEST(!reader.out->ended);
}

BOOST_AUTO_TEST_CASE(followers_of_a_response_are_limited) {
  context->settings.limits.response_followers_max = 2;
  const auto first = begin(R"("background":true)");
  const std::string id = id_of_the_turn();
  auto one = follow(id), two = follow(id);
  BOOST_TEST(one.out->streaming);
  BOOST_TEST(two.out->streaming);
  BOOST_TEST(follow(id).out->status == 429u);
  BOOST_TEST(out->has("limits.response_followers_max"));
  one.call->gone("client", 499);
  BOOST_TEST(follow(id).out->streaming);  // and leaves at once
  two.call.reset();
  const auto three = follow(id);
  BOOST_TEST(three.out->streaming);
}

BOOST_AUTO_TEST_CASE(a_long_answer_so_far_is_written_on_the_worker_pool) {
  const auto first = begin(R"("background":true)");
  const std::string id = id_of_the_turn();
  say("abc");
  context->settings.inline_text_bytes_max = 1;
  ask("GET", "/v1/responses/" + id);
  BOOST_REQUIRE_EQUAL(pool.long_work.size(), 1u);
  BOOST_TEST(!out->ended);
  run_long_work();
  BOOST_TEST(out->status == 200u);
  BOOST_TEST(out->has(R"("text":"abc")"));

  const auto reader = follow(id);
  const auto late = follow(id, "&starting_after=6");
  say_more('d', 3);
  say_more('e', 4);
  BOOST_TEST(!reader.out->streaming);
  run_long_work();
  say_more('f', 5);
  // created, queued, in_progress, the item, its part, and six deltas
  for (const auto& [stream, begins] : {std::pair(reader.out, 0u), std::pair(late.out, 7u)}) {
    BOOST_TEST(numbers_in(stream->text) == numbers(begins, 11));
    BOOST_TEST(!stream->ended);
  }
  ask("POST", "/v1/responses/" + id + "/cancel");
  BOOST_TEST(reader.out->has(R"("text":"abcdef")"));
  BOOST_TEST(reader.out->ended);
}

BOOST_AUTO_TEST_CASE(a_response_that_ends_before_its_follower_has_begun_is_whole) {
  const auto first = begin(R"("background":true)");
  const std::string id = id_of_the_turn();
  say("abc");
  context->settings.inline_text_bytes_max = 1;
  const auto reader = follow(id);
  const auto gone = follow(id);
  gone.call->gone("client", 499);
  ask("POST", "/v1/responses/" + id + "/cancel");
  BOOST_TEST(!reader.out->streaming);
  run_long_work();
  BOOST_TEST(reader.out->has(R"("delta":"c")"));
  BOOST_TEST(reader.out->has(R"("text":"abc")"));
  BOOST_TEST(reader.out->ended);
  BOOST_TEST(!gone.out->streaming);
}

BOOST_AUTO_TEST_CASE(a_slow_follower_gets_a_long_answer_in_pieces) {
  constexpr std::uint32_t before = 3000, after = 600;
  constexpr std::size_t limit = 100'000, piece = 64 * 1024;
  context->settings.limits.outbound_bytes_max = limit;
  const auto first = begin(R"("background":true)", 5000);
  const std::string id = id_of_the_turn();
  say(std::string(before, 'a'));
  const std::size_t held = context->memory->held();
  send("GET", "/v1/responses/" + id + "?stream=true");
  out->full_above = limit;
  pump();
  run_long_work();
  const auto reader = keep();
  BOOST_TEST(reader.out->streaming);
  for (std::uint32_t more = 0; more < after; ++more) say_more('b', before + more);
  BOOST_TEST(reader.out->queued > limit);
  BOOST_TEST(reader.out->queued <= limit + piece);
  BOOST_TEST(context->memory->held() > held + limit);
  ask("POST", "/v1/responses/" + id + "/cancel");
  std::size_t pieces = 0;
  for (; !reader.out->ended && pieces < 100; ++pieces) {
    BOOST_TEST(reader.out->queued <= limit + piece);
    reader.out->queued = 0;
    reader.call->writable();
  }
  BOOST_TEST(pieces >= 4u);
  reader.call->writable();
  BOOST_TEST(reader.out->ended);
  BOOST_TEST(!reader.out->aborted);
  // created, queued, in_progress, the item, its part, the deltas, and four that end them
  BOOST_TEST(numbers_in(reader.out->text) == numbers(0, 5 + before + after + 4));
  BOOST_TEST(reader.out->has("\"text\":\"" + std::string(before, 'a') + std::string(after, 'b') + "\""));
  BOOST_TEST(context->memory->held() <= held);
}

BOOST_AUTO_TEST_CASE(a_follower_that_does_not_read_is_cut_off) {
  constexpr std::uint32_t before = 1000;
  context->settings.limits.outbound_bytes_max = 4096;
  const auto first = begin(R"("background":true)", 5000);
  const std::string id = id_of_the_turn();
  say(std::string(before, 'a'));
  send("GET", "/v1/responses/" + id + "?stream=true");
  out->full_above = 4096;
  pump();
  run_long_work();
  const auto reader = keep();
  std::uint32_t more = 0;
  for (; !reader.out->aborted && more < 1000; ++more) say_more('b', before + more);
  BOOST_TEST(reader.out->aborted);
  BOOST_TEST(more > 256u);
  BOOST_TEST(more < 300u);
  BOOST_TEST(reader.out->queued <= 4096u + 64 * 1024);
  reader.call->writable();
  say_more('c', before + more);
  BOOST_TEST(!first.out->aborted);
}

BOOST_AUTO_TEST_CASE(a_slow_follower_that_leaves_keeps_nothing) {
  const auto first = begin(R"("background":true)", 5000);
  const std::string id = id_of_the_turn();
  say(std::string(1000, 'a'));
  const std::size_t held = context->memory->held();
  send("GET", "/v1/responses/" + id + "?stream=true");
  out->full_above = 4096;
  pump();
  run_long_work();
  BOOST_TEST(context->memory->held() > held + 4096);
  call->gone("client", 499);
  call.reset();
  BOOST_TEST(context->memory->held() <= held);
}

BOOST_AUTO_TEST_CASE(new_events_that_cannot_be_kept_cut_a_slow_follower_off) {
  context->settings.limits.outbound_bytes_max = 4096;
  const auto first = begin(R"("background":true)", 5000);
  const std::string id = id_of_the_turn();
  say(std::string(1000, 'a'));
  send("GET", "/v1/responses/" + id + "?stream=true");
  out->full_above = 4096;
  pump();
  run_long_work();
  const auto reader = keep();
  const auto taken = context->settings.queue.bytes_max;
  context->memory->all()->fetch_add(taken);  // by others
  say_more('b', 1000);
  context->memory->all()->fetch_sub(taken);
  BOOST_TEST(reader.out->aborted);
}

BOOST_AUTO_TEST_CASE(events_that_cannot_be_kept_refuse_the_follower) {
  const auto first = begin(R"("background":true)");
  const std::string id = id_of_the_turn();
  say("abc");
  context->settings.inline_text_bytes_max = 1;
  const auto reader = follow(id);
  const auto taken = context->settings.queue.bytes_max;
  context->memory->all()->fetch_add(taken);  // by others
  tell(device::token{submitted.back().id, 0, 3, 'd', nullptr});
  context->memory->all()->fetch_sub(taken);
  run_long_work();
  BOOST_TEST(reader.out->status == 503u);
  BOOST_TEST(!reader.out->streaming);
}

BOOST_AUTO_TEST_CASE(one_that_began_with_a_tuned_state_continues_with_it) {
  const std::string id = "resp_0123456789abcdef0123456789abcdef0123456789abcdef";
  const auto values = memory_sessions::state_of({1, 2, 3});
  persistence::version_record turn;
  turn.request_key = id;
  turn.sampling = R"({"response":{"model":"tiny","tokens_max":40}})";
  turn.text = turn.answer = "x";
  turn.tokens = {'x'};
  turn.stop_reason = "drain";
  turn.unfinished = true;
  store(turn, "identity of poet");
  for (const char* const name : {"poet", "the same values by another name"}) {
    model->tuned.clear();
    BOOST_REQUIRE(model->tuned.put({"other", "identity of other", values, 0.5f, std::nullopt}, 2));
    BOOST_REQUIRE(model->tuned.put({name, "identity of poet", values, 0.5f, std::nullopt}, 2));
    const std::size_t before = submitted.size();
    const auto reader = follow(id);
    BOOST_REQUIRE_EQUAL(submitted.size(), before + 1);
    BOOST_TEST(sessions.opened.back().initial_state == "identity of poet");
    BOOST_TEST((submitted.back().from.state == values));
    BOOST_TEST(submitted.back().rows.front().temperature == 1.0f);  // that of the response
    reader.call->gone("client", 499);
    sessions.trees.clear();
    store(turn, "identity of poet");
  }
  model->tuned.clear();
  ask("GET", "/v1/responses/" + id + "?stream=true");
  BOOST_TEST(out->status == 409u);
  BOOST_TEST(out->has("began with the tuned state identity of poet"));
}

BOOST_AUTO_TEST_CASE(an_input_is_counted_as_it_will_be_fed) {
  context->settings.limits.tells_ignored = true;
  const auto count = [&](const std::string& more) {
    send("POST", "/v1/responses/input_tokens", R"({"instructions":"S","input":"Hi")" + more + "}");
    pump();
    while (!pool.long_work.empty()) run_long_work();
    return out->status == 200u ? out->text : std::to_string(out->status);
  };
  const auto tokens = [](std::string_view text) {
    return R"({"object":"response.input_tokens","input_tokens":)" + std::to_string(text.size()) + "}";
  };
  const std::string id = "resp_0123456789abcdef0123456789abcdef0123456789abcdef";
  const std::string system = "System: S\n\n", rest = "User: Hi\n\nAssistant: <think>\n</think", gap = "\n\n";
  const std::string conversation = R"(,"conversation":"conv_0123456789abcdef01234567")",
                    previous = R"(,"previous_response_id":")" + id + '"';
  for (const std::uint32_t inline_bytes : {1u << 20, 1u}) {
    context->settings.inline_text_bytes_max = inline_bytes;
    sessions.trees.clear();
    BOOST_TEST(count(R"(,"x":1)") == tokens(system + rest));
    BOOST_TEST(out->header("X-Skein-Ignored-Fields") == "x");
    BOOST_TEST(count(conversation) == tokens(system + rest));  // it would begin there
    BOOST_TEST(count(previous) == "404");
    BOOST_TEST(out->has(R"("param":"previous_response_id")"));
    persistence::version_record turn;
    turn.request_key = id;
    turn.text = "System: other\n\nUser: a";
    store(turn);
    BOOST_TEST(count(previous) == tokens(gap + system + rest));
    sessions.trees.clear();
    turn.text = system + "User: a";
    store(turn);
    BOOST_TEST(count(previous) == tokens(gap + rest));
    BOOST_TEST(count(conversation) == tokens(gap + rest));
    BOOST_TEST(count(conversation + R"(,"from_version":0)") == tokens(system + rest));
  }
  BOOST_TEST(count(R"(,"truncation":7)") == "400");
}

BOOST_AUTO_TEST_CASE(events_count_in_the_budget_before_they_are_made) {
  constexpr std::size_t deltas = 100'000;  // of one byte: a hundred times as many as the tokens of such a text
  const std::string id = "resp_0123456789abcdef0123456789abcdef0123456789abcdef";
  const std::string path = "/v1/responses/" + id;
  std::string steps = "1";
  for (std::size_t i = 1; i < deltas; ++i) steps += ",1";
  persistence::version_record turn;
  turn.request_key = id;
  turn.sampling = R"({"response":{"model":"tiny","content_steps":[)" + steps + "]}}";
  turn.answer = std::string(deltas, 'x');
  turn.finish_reason = "length";
  const auto standard = context->settings.queue.bytes_max;
  for (const char* const stopped : {"", "drain"}) {
    turn.stop_reason = stopped;
    turn.unfinished = *stopped != '\0';
    sessions.trees.clear();
    store(turn);
    context->settings.queue.bytes_max = std::size_t{16} << 20;
    using asked = std::pair<std::string, std::string>;
    for (const auto& [method, target] : {asked{"GET", path + "?stream=true"}, asked{"POST", path + "/continue"}}) {
      const failing_new no_room(std::size_t{8} << 20);
      ask(method, target);
      run_long_work();
      BOOST_TEST(out->status == 413u);
      BOOST_TEST(out->has("queue.bytes_max"));
    }
    call.reset();
    BOOST_TEST(context->memory->held() == 0u);
    context->settings.queue.bytes_max = standard;
    if (turn.unfinished) continue;
    ask("GET", path + "?stream=true");
    run_long_work();
    BOOST_TEST(out->status == 200u);
    BOOST_TEST(out->has("\"sequence_number\":" + std::to_string(deltas)));
    BOOST_TEST(context->memory->held() == 0u);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(an_entry_of_the_table_is_removed_by_its_own_run) {
  response_table table;
  int old_visits = 0, new_visits = 0;
  const auto older = table.enter("a", [&](const response_table::visit&) { ++old_visits; });
  const auto newer = table.enter("a", [&](const response_table::visit&) { ++new_visits; });
  table.leave("a", older);
  const auto found = table.find("a");
  BOOST_REQUIRE(found);
  found({});
  BOOST_TEST(old_visits == 0);
  BOOST_TEST(new_visits == 1);
  table.leave("a", newer);
  BOOST_TEST(!table.find("a"));
}

}  // namespace skein::test
