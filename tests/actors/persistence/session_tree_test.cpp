// Shows that a session's tree knows its histories again: seeded trees of turns, with branches and equal texts, against
// a slow model that keeps every history as a whole text.
#include "actors/persistence/sessions/session_tree.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>

#include "actors/persistence/sessions/session_title.hpp"
#include "actors/persistence/sessions/turn_start.hpp"
#include "tests/support/random_cases.hpp"

using namespace skein;
using namespace skein::persistence;

namespace {

session_record record_of(const std::string& id) {
  session_record r;
  r.uid = 7;
  r.key.id = id;
  r.model_identity = "m";
  return r;
}

std::vector<version_record> contents(const session_tree& tree) {
  std::vector<version_record> all;
  for (const auto& v : tree.all()) all.push_back(*v);
  return all;
}

/// A tree grown turn by turn, and for each version its whole history and all its tokens, kept the slow way.
struct grown_tree {
  session_tree tree{record_of("s")};
  std::map<version_id, std::string> histories{{0, ""}};
  std::map<version_id, std::vector<token_id>> tokens{{0, {}}};
  std::map<version_id, bool> known{{0, true}};

  version_id grow(version_id parent, const std::string& segment, std::vector<token_id> fed, bool unfinished = false,
                  const std::string& key = {}) {
    version_record v;
    v.id = tree.record().last_version + 1;
    v.parent = parent;
    v.tokens = fed;
    v.text = segment;
    v.unfinished = unfinished;
    v.request_key = key;
    tree.place(v, segment);
    const version_id id = v.id;
    tree.add(std::move(v), 1000 + id);
    histories[id] = histories[parent] + segment;
    tokens[id] = tokens[parent];
    tokens[id].insert(tokens[id].end(), fed.begin(), fed.end());
    known[id] = known[parent] && !segment.empty();
    return id;
  }

  /// What recognise() must answer: bytes held by the best version, as a whole text would be compared.
  std::uint64_t longest_held(std::string_view text, const history_rules& rules) const {
    std::uint64_t best = 0;
    for (const auto& [id, history] : histories) {
      if (id == 0 || !known.at(id) || !text.starts_with(history)) continue;
      const bool at_end = history.size() == text.size();
      if (at_end && rules.leave_some) continue;
      if (!at_end && rules.whole_messages && !text.substr(history.size()).starts_with("\n\n")) continue;
      best = std::max<std::uint64_t>(best, history.size());
    }
    return best;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(ways_are_known_without_walking_them) {
  test::random_cases random;
  for (int life = 0; life < 20; ++life) {
    ancestry ways;
    std::map<version_id, std::vector<version_id>> slow{{0, {}}};  // each path in full
    std::set<version_id> unfinished;
    const std::uint32_t branches = 1 + random.below(4);
    for (version_id v = 1; v <= 300; ++v) {
      const version_id parent = random.below(branches) == 0 ? v - 1 : random.below(v);
      if (!slow.contains(parent)) continue;
      if (random.below(3) == 0) unfinished.insert(v);
      ways.add(v, parent, v, unfinished.contains(v));
      slow[v] = slow[parent];
      slow[v].push_back(v);
      if (random.below(20) == 0) ways.remove(v), slow.erase(v);
    }
    for (const auto& [v, way] : slow) {
      BOOST_REQUIRE_EQUAL(ways.depth(v), way.size());
      std::uint64_t bytes = 0;
      for (const version_id step : way) bytes += step;
      BOOST_REQUIRE_EQUAL(ways.bytes(v), bytes);
      if (v != 0) BOOST_REQUIRE_EQUAL(ways.first(v), way.front());
      const auto last =
          std::ranges::find_if(way.rbegin(), way.rend(), [&](auto one) { return !unfinished.contains(one); });
      BOOST_REQUIRE_EQUAL(ways.finished(v), last == way.rend() ? 0 : *last);
      for (const auto& [other, ignored] : slow)
        BOOST_REQUIRE_EQUAL(ways.leads_to(other, v), other == 0 || std::ranges::find(way, other) != way.end());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_fork_is_recorded_as_it_is_made) {
  test::random_cases random;
  grown_tree t;
  for (int i = 0; i < 60; ++i)
    (void)t.grow(random.below(t.tree.record().last_version + 1), "s" + std::to_string(i), {1, 2}, random.below(4) == 0);
  for (const version_id v : {3u, 17u, 60u}) t.tree.remove(t.tree.removal_of(v, 5));
  for (version_id v = 0; v <= 60; ++v) {
    if (!t.tree.has(v)) continue;
    const session_name name{8, {default_tenant, "copy"}};
    const session_tree copy = forked(t.tree, v, name, 3);
    BOOST_TEST((copy.record() == fork_record(t.tree, v, name, 3)));
    const auto restored = session_tree::restore(copy.record(), contents(copy));
    BOOST_REQUIRE_MESSAGE(restored, (restored ? "" : restored.error().message));
    BOOST_TEST((contents(*restored) == contents(copy)));
    std::vector<version_id> deleted;
    std::uint64_t bytes = 0;
    for (const auto& version : copy.all()) {
      if (version->deleted) deleted.push_back(version->id);
      bytes += content_bytes(*version);
    }
    BOOST_TEST(t.tree.deleted_before(v) == deleted, boost::test_tools::per_element());
    BOOST_TEST(copy.record().log_bytes == bytes);
  }
}

BOOST_AUTO_TEST_CASE(histories_are_recognised_over_all_branches) {
  test::random_cases random;
  for (int life = 0; life < 300; ++life) {
    grown_tree t;
    for (int i = 0; i < 1 + static_cast<int>(random.below(25)); ++i) {
      const version_id parent = random.below(t.tree.record().last_version + 1);
      // Few letters, so that branches begin alike and lie in each other.
      std::string segment = parent == 0 ? "" : "\n\n";
      segment += random.text(random.below(4) + (parent == 0), "ab");
      if (random.below(12) == 0) segment.clear();
      t.grow(parent, segment, {static_cast<token_id>(i)}, random.below(8) == 0);
    }
    for (int ask = 0; ask < 20; ++ask) {
      const history_rules rules{random.below(2) == 0, random.below(2) == 0};
      std::string text = t.histories.at(random.below(t.tree.record().last_version + 1));
      if (random.below(2)) text += "\n\n";
      text += random.text(random.below(4), "ab");
      const auto found = t.tree.recognise(text, rules);
      BOOST_REQUIRE_EQUAL(found.bytes, t.longest_held(text, rules));
      if (found.version == 0) continue;
      BOOST_REQUIRE(t.known.at(found.version));
      BOOST_REQUIRE_EQUAL(t.histories.at(found.version), text.substr(0, found.bytes));
      BOOST_REQUIRE(t.tree.held_by(found.version, text, rules) == found.bytes);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_head_is_preferred_then_the_newest) {
  grown_tree t;
  const auto one = t.grow(0, "a", {1}), two = t.grow(0, "a", {2}), three = t.grow(0, "a", {3});
  BOOST_TEST(t.tree.recognise("ab", {}).version == three);
  t.tree.set_head(one, 1);
  BOOST_TEST(t.tree.recognise("ab", {}).version == one);
  t.tree.set_head(0, 1);
  BOOST_TEST(t.tree.recognise("ab", {}).version == three);
  BOOST_TEST(two == 2u);
}

BOOST_AUTO_TEST_CASE(a_hostile_tree_costs_no_more_than_a_few_readings) {
  // Thousands of branches that all lie in the text, each cut elsewhere: the answer may be short, but comes at once.
  grown_tree t;
  std::vector<version_id> ends{0};
  test::random_cases random;
  for (int i = 0; i < 3000; ++i) {
    const auto parent = ends[random.below(static_cast<std::uint32_t>(ends.size()))];
    if (t.histories.at(parent).size() > 3000) continue;
    ends.push_back(t.grow(parent, std::string(1 + random.below(300), 'a'), {1}));
  }
  const std::string text(20'000, 'a');
  const auto found = t.tree.recognise(text, {});
  BOOST_TEST(found.bytes == t.histories.at(found.version).size());
  BOOST_TEST(found.bytes > 0u);
}

BOOST_AUTO_TEST_CASE(paths_and_tokens_are_those_of_the_branch) {
  test::random_cases random;
  grown_tree t;
  for (int i = 0; i < 60; ++i) {
    std::vector<token_id> fed(random.below(5));
    for (auto& token : fed) token = static_cast<token_id>(random.below(100));
    t.grow(random.below(t.tree.record().last_version + 1), "x", fed);
  }
  for (const auto& [id, all] : t.tokens) {
    BOOST_TEST(t.tree.total_tokens(id) == all.size());
    BOOST_TEST(t.tree.tokens_between(0, id) == all, boost::test_tools::per_element());
    for (const auto& step : t.tree.path(id)) {
      auto joined = t.tokens.at(step->id);
      const auto rest = t.tree.tokens_between(step->id, id);
      joined.insert(joined.end(), rest.begin(), rest.end());
      BOOST_TEST(joined == all, boost::test_tools::per_element());
    }
  }
  BOOST_TEST(t.tree.record().versions == 60u);
  BOOST_TEST(t.tree.record().total_tokens == t.tokens.at(60).size());
}

BOOST_AUTO_TEST_CASE(what_is_fed_anew_is_told_as_prompts_and_answers) {
  session_tree tree(record_of("s"));
  const auto grow = [&](std::uint32_t brought, std::uint32_t sampled) {
    version_record v;
    v.id = tree.record().last_version + 1;
    v.parent = v.id - 1;
    v.tokens.resize(brought + sampled);
    v.prompt_tokens = brought;
    v.text = "x";
    tree.place(v, "x");
    tree.add(std::move(v), 1000);
  };
  grow(7, 3);
  grow(4, 0);
  grow(0, 2);
  std::string parts;
  for (const version_id from : {0, 1, 3}) {
    for (const auto& part : tree.parts_between(from, 3))
      parts += std::to_string(part.tokens) + (part.sampled ? " drawn " : " brought ");
    parts += '|';
  }
  BOOST_TEST(parts == "7 brought 3 drawn 4 brought 2 drawn |4 brought 2 drawn ||");
}

BOOST_AUTO_TEST_CASE(a_stored_tree_comes_back_and_a_torn_one_is_refused) {
  test::random_cases random;
  grown_tree t;
  for (int i = 0; i < 20; ++i)
    t.grow(random.below(t.tree.record().last_version + 1), "x", {i}, false, i == 5 ? "k" : "");
  const auto all = contents(t.tree);
  const auto same = session_tree::restore(t.tree.record(), all);
  BOOST_REQUIRE(same);
  BOOST_TEST((same->record() == t.tree.record()));
  BOOST_TEST((contents(*same) == all));
  BOOST_TEST(same->bytes() == t.tree.bytes());
  BOOST_TEST(same->with_request_key("k")->id == 6u);
  BOOST_TEST(same->with_request_key("") == nullptr);

  const auto refused = [&](auto change) {
    auto record = t.tree.record();
    auto versions = all;
    change(record, versions);
    const auto torn = session_tree::restore(record, versions);
    BOOST_TEST(!torn);
    if (!torn) BOOST_TEST((torn.error().kind == error_kind::damaged));
  };
  refused([](auto&, auto& v) { v[3].parent = 40; });
  refused([](auto&, auto& v) { v[3].parent = v[3].id; });
  refused([](auto&, auto& v) { v[3].id = v[4].id; });
  refused([](auto&, auto& v) { v[0].id = 0; });
  refused([](auto& r, auto&) { r.head = 21; });
  refused([](auto& r, auto&) { r.last_version = 3; });          // the head is beyond it
  refused([](auto& r, auto& v) { r.head = 0, v.pop_back(); });  // nothing goes on from it, and yet it was there
  auto record = t.tree.record();
  record.last_version = record.versions = 3;
  record.head = 2;
  BOOST_TEST(session_tree::restore(record, all)->versions().size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_version_in_the_middle_is_marked_and_one_at_the_end_goes_with_what_was_marked_for_it) {
  grown_tree t;
  const auto a = t.grow(0, "a", {1}, false, "key"), b = t.grow(a, "b", {2}), c = t.grow(b, "c", {3});
  const auto d = t.grow(a, "d", {4});
  const auto remove = [&](version_id v) { t.tree.remove(t.tree.removal_of(v, 7)); };
  const auto restored = [&] {
    const auto all = contents(t.tree);
    const auto same = session_tree::restore(t.tree.record(), all);
    BOOST_REQUIRE(same);
    BOOST_TEST((contents(*same) == all));
    BOOST_TEST(same->bytes() == t.tree.bytes());
    BOOST_TEST(!same->with_request_key("key") == !t.tree.with_request_key("key"));
  };
  remove(a);
  BOOST_TEST(!t.tree.offers(a));
  BOOST_TEST(t.tree.has(a));
  BOOST_TEST(t.tree.with_request_key("key") == nullptr);  // a retry of it is a turn of its own
  BOOST_TEST(t.tree.recognise("a", {}).version == 0u);
  BOOST_TEST(t.tree.recognise("abc", {}).version == c);
  BOOST_TEST(t.tree.record().head == d);
  restored();
  remove(d);
  BOOST_TEST(!t.tree.has(d));
  BOOST_TEST(t.tree.has(a));  // b goes on from it
  BOOST_TEST(t.tree.record().head == c);
  BOOST_TEST(t.tree.record().used_ms == 7);
  remove(b);
  remove(c);
  BOOST_TEST(t.tree.versions().empty());
  BOOST_TEST(t.tree.record().versions == 0u);
  BOOST_TEST(t.tree.record().log_bytes == 0u);
  restored();
}

BOOST_AUTO_TEST_CASE(without_its_head_a_session_ends_at_the_last_finished_version_before_it) {
  grown_tree t;
  const auto remove = [&](version_id v) { t.tree.remove(t.tree.removal_of(v, 7)); };
  const auto a = t.grow(0, "a", {1}), b = t.grow(a, "b", {2}), c = t.grow(a, "c", {3});
  remove(c);
  BOOST_TEST(t.tree.record().head == b);
  BOOST_TEST(t.tree.record().total_tokens == 2u);
  // A turn that continued a broken answer goes, and the answer can be continued again.
  const auto broken = t.grow(b, "d", {4}, true);
  const auto next = t.grow(broken, "e", {5});
  remove(next);
  BOOST_TEST(t.tree.record().head == b);
  BOOST_REQUIRE(t.tree.unfinished() != nullptr);
  BOOST_TEST(t.tree.unfinished()->id == broken);
  // What a rollback left behind does not come back.
  t.tree.set_head(a, 7);
  remove(a);
  BOOST_TEST(t.tree.record().head == 0u);
}

BOOST_AUTO_TEST_CASE(a_fork_has_the_path_and_nothing_else) {
  grown_tree t;
  const auto a = t.grow(0, "a", {1}), b = t.grow(a, "b", {2}), c = t.grow(a, "c", {3}), d = t.grow(c, "d", {4, 5});
  auto copy = forked(t.tree, d, {99, {"default", "new"}}, 5);
  BOOST_TEST(copy.record().uid == 99u);
  BOOST_TEST(copy.record().head == d);
  BOOST_TEST(copy.record().versions == 3u);
  BOOST_TEST(copy.record().total_tokens == 4u);
  BOOST_TEST(!copy.has(b));
  BOOST_TEST(copy.recognise("acdx", {}).version == d);
}

BOOST_AUTO_TEST_CASE(a_fork_shares_its_texts_and_not_their_marks) {
  grown_tree t;
  const auto a = t.grow(0, std::string(1000, 'a'), {1}), b = t.grow(a, "b", {2});
  auto copy = forked(t.tree, b, {99, {"default", "new"}}, 5);
  BOOST_TEST(copy.find(a) == t.tree.find(a));  // the same place in memory
  copy.remove(copy.removal_of(a, 7));
  BOOST_TEST(!copy.offers(a));
  BOOST_TEST(t.tree.offers(a));
  t.tree.remove(t.tree.removal_of(b, 7));
  t.tree.remove(t.tree.removal_of(a, 7));
  BOOST_TEST(copy.find(a)->text.size() == 1000u);
}

BOOST_AUTO_TEST_CASE(the_broken_answer_is_the_last_one_at_the_head) {
  grown_tree t;
  BOOST_TEST(t.tree.unfinished() == nullptr);
  const auto a = t.grow(0, "a", {1});
  const auto broken = t.grow(a, "", {2}, true);
  BOOST_TEST(t.tree.record().head == a);
  BOOST_REQUIRE(t.tree.unfinished() != nullptr);
  BOOST_TEST(t.tree.unfinished()->id == broken);
  const auto again = t.grow(a, "x", {2}, true);
  BOOST_TEST(t.tree.unfinished()->id == again);
  t.grow(a, "b", {3});  // the conversation went on
  BOOST_TEST(t.tree.unfinished() == nullptr);
}

// ---------------------------------------------------------------- how a question relates to a session

namespace {

open_session ask(turn_text kind, std::string history, bool only_new = false) {
  open_session q;
  q.session.id = "s";
  q.kind = kind;
  q.history = std::move(history);
  q.only_new = only_new;
  q.opening_follows = kind == turn_text::chat_messages;
  return q;
}

struct two_turns : grown_tree {
  two_turns() {
    grow(0, "User: a\n\nAssistant: x", {1});
    grow(1, "\n\nUser: b\n\nAssistant: y", {2});
  }
  turn_start must_start(const open_session& q) {
    const auto start = start_turn(&tree, q);
    BOOST_REQUIRE_MESSAGE(start, (start ? "" : start.error().message));
    return *start;
  }
  error_kind refusal(const open_session& q, const std::string& field) {
    const auto start = start_turn(&tree, q);
    BOOST_REQUIRE(!start);
    BOOST_TEST(start.error().field == field);
    return start.error().kind;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(increments_and_histories_are_told_apart) {
  two_turns s;
  const auto expect = [&](const open_session& q, version_id base, std::uint64_t from, session_state state) {
    const auto start = s.must_start(q);
    BOOST_TEST(start.base == base);
    BOOST_TEST(start.history_from == from);
    BOOST_TEST((start.state == state));
  };
  using enum session_state;
  const std::uint64_t one = s.histories[1].size(), two = s.histories[2].size();
  expect(ask(turn_text::increment, "User: c"), 2, 0, continued);
  expect(ask(turn_text::increment, s.histories[1] + "z"), 2, 0, continued);
  expect(ask(turn_text::chat_messages, "User: c", true), 2, 0, continued);
  expect(ask(turn_text::chat_messages, s.histories[2] + "\n\nUser: c"), 2, two, continued);
  expect(ask(turn_text::chat_messages, s.histories[1] + "\n\nUser: other"), 1, one, continued);
  expect(ask(turn_text::chat_messages, s.histories[1] + "yz\n\nUser: c"), 0, 0, rebuilt);  // the answer was edited
  expect(ask(turn_text::chat_messages, "User: q\n\nAssistant: r\n\nUser: c"), 0, 0, rebuilt);
  expect(ask(turn_text::chat_messages, s.histories[2]), 2, two, continued);
  auto nothing_new = ask(turn_text::chat_messages, s.histories[2]);
  nothing_new.opening_follows = false;
  expect(nothing_new, 1, one, continued);  // something must be left to feed
  expect(ask(turn_text::raw_text, s.histories[2] + "more"), 2, two, continued);
  expect(ask(turn_text::raw_text, "something else"), 2, 0, continued);

  auto from_one = ask(turn_text::increment, "User: c");
  from_one.from = 1;
  expect(from_one, 1, 0, continued);
  from_one = ask(turn_text::chat_messages, s.histories[1] + "\n\nUser: c");
  from_one.from = 1;
  expect(from_one, 1, one, continued);
  from_one.from = 0;
  expect(from_one, 0, 0, continued);
  from_one.from = 2;
  expect(from_one, 2, 0, continued);  // not its history: what comes next
}

BOOST_AUTO_TEST_CASE(an_unknown_session_begins) {
  const auto start = start_turn(nullptr, ask(turn_text::chat_messages, "User: a\n\nAssistant: b\n\nUser: c"));
  BOOST_REQUIRE(start);
  BOOST_TEST((start->state == session_state::fresh));
  BOOST_TEST(start->base == 0u);
  auto q = ask(turn_text::increment, "x");
  q.must_exist = true;
  BOOST_TEST((start_turn(nullptr, q).error().kind == error_kind::not_found));
  q = ask(turn_text::increment, "x");
  q.from = 3;
  BOOST_TEST((start_turn(nullptr, q).error().kind == error_kind::not_found));
  q = ask(turn_text::increment, "x");
  q.expected_version = 3;
  BOOST_TEST((start_turn(nullptr, q).error().kind == error_kind::conflict));
  q.expected_version = 0;
  BOOST_TEST(static_cast<bool>(start_turn(nullptr, q)));
  q.continue_unfinished = true;
  BOOST_TEST((start_turn(nullptr, q).error().kind == error_kind::not_found));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused_with_its_field) {
  two_turns s;
  auto q = ask(turn_text::increment, "x");
  q.expected_version = 1;
  BOOST_TEST((s.refusal(q, "expected_version") == error_kind::conflict));
  q = ask(turn_text::increment, "x");
  q.from = 3;
  BOOST_TEST((s.refusal(q, "from_version") == error_kind::not_found));
  q = ask(turn_text::increment, "x");
  q.initial_state = "tuned";
  BOOST_TEST((s.refusal(q, "state_name") == error_kind::conflict));
  q = ask(turn_text::increment, "");
  q.continue_unfinished = true;
  BOOST_TEST((s.refusal(q, "") == error_kind::not_found));
  const auto broken = s.grow(2, "", {5}, true);
  const auto start = s.must_start(q);
  BOOST_TEST(start.base == 2u);
  BOOST_REQUIRE(start.unfinished.has_value());
  BOOST_TEST(start.unfinished->id == broken);
}

BOOST_AUTO_TEST_CASE(a_repeated_answer_before_results_is_noticed) {
  const auto ended_with = [](grown_tree& t, const std::string& answer) {
    auto v = *t.tree.find(t.grow(0, "System: s\n\nUser: a\n\nAssistant: " + answer, {1}));
    v.id = 2, v.parent = 1, v.answer = answer;
    t.tree.add(v, 5);
  };
  grown_tree t;
  ended_with(t, "call");
  auto q = ask(turn_text::chat_messages, "System: s\n\nAssistant: call\n\nUser: 5");
  q.system_bytes = std::string_view("System: s").size();
  q.answer_at = q.history.find("call");
  q.answer_bytes = 4;
  const auto start_of = [&] {
    const auto start = start_turn(&t.tree, q);
    BOOST_REQUIRE(start);
    return *start;
  };
  BOOST_TEST(start_of().repeats_answer);
  BOOST_TEST(start_of().repeats_system);
  BOOST_TEST(start_of().base == 2u);
  BOOST_TEST((start_of().state == session_state::continued));
  q.from = 1;  // it has another answer
  BOOST_TEST(!start_of().repeats_answer);
  q.from.reset();
  q.history = "System: s\n\nAssistant: cALL\n\nUser: 5";
  BOOST_TEST(!start_of().repeats_answer);
  BOOST_TEST((start_of().state == session_state::rebuilt));
  q.answer_bytes = 0;
  BOOST_TEST(!start_of().repeats_answer);
}

BOOST_AUTO_TEST_CASE(a_repeated_system_text_is_noticed) {
  grown_tree t;
  t.grow(0, "System: be brief\n\nUser: a\n\nAssistant: x", {1});
  auto q = ask(turn_text::chat_messages, "System: be brief\n\nUser: b", true);
  q.system_bytes = std::string_view("System: be brief").size();
  auto start = start_turn(&t.tree, q);
  BOOST_REQUIRE(start);
  BOOST_TEST(start->repeats_system);
  BOOST_TEST(start->base == 1u);
  q.history = "System: be long!\n\nUser: b";
  start = start_turn(&t.tree, q);
  BOOST_TEST(!start->repeats_system);
  q.system_bytes = 1000;  // more than there is
  BOOST_TEST(!start_turn(&t.tree, q)->repeats_system);
}

BOOST_AUTO_TEST_CASE(a_session_is_called_by_what_its_user_said_first) {
  const auto title_of_chat = [](const std::string& said) {
    version_record v;
    v.messages = {{"system", "Be brief."}, {"user", said}, {"user", "And more."}};
    return title_of(v);
  };
  BOOST_TEST(title_of_chat("Hello!") == "Hello!");
  BOOST_TEST(title_of_chat("\n  \tTwo\twords \r\nnext line") == "Two words");
  BOOST_TEST(title_of_chat(" \n") == "");
  BOOST_TEST(title_of_chat(std::string(80, 'x')) == std::string(80, 'x'));
  BOOST_TEST(title_of_chat(std::string(81, 'x')) == std::string(80, 'x') + "…");
  BOOST_TEST(title_of_chat(std::string(70, 'x') + " " + std::string(70, 'y')) == std::string(70, 'x') + "…");
  std::string chinese, four_bytes;
  for (int i = 0; i < 100; ++i) chinese += "鹅", four_bytes += "🪿";
  BOOST_TEST(title_of_chat(chinese) == chinese.substr(0, 240) + "…");
  BOOST_TEST(title_of_chat(four_bytes) == four_bytes.substr(0, 240) + "…");

  version_record raw;
  raw.text = "Once upon a time";
  raw.prompt_bytes = 9;
  BOOST_TEST(title_of(raw) == "Once upon");

  grown_tree t;
  version_record v = raw;
  v.id = 1;
  t.tree.place(v, v.text);
  t.tree.add(v, 1);
  BOOST_TEST(t.tree.record().title == "Once upon");
  v.id = v.parent + 2;
  v.text = "Later";
  BOOST_TEST(t.tree.record_with(v, 2).title == "Once upon");
  t.tree.label("Mine", {{"a", "b"}});
  const session_tree copy = forked(t.tree, 1, {8, {default_tenant, "copy"}}, 3);
  BOOST_TEST(copy.record().title == "Mine");
  BOOST_TEST((copy.record().metadata == storage::session_metadata{{"a", "b"}}));
}

// As an imported session may have: with a walk along the chain for each leaf this takes hours.
BOOST_AUTO_TEST_CASE(broken_answers_behind_a_long_chain_of_broken_answers_are_found_at_once) {
  constexpr version_id length = 100'000;
  std::vector<version_record> versions;
  const auto add = [&](version_id parent) {
    version_record v;
    v.id = static_cast<version_id>(versions.size()) + 1;
    v.parent = parent;
    v.unfinished = v.id > 1;
    versions.push_back(std::move(v));
  };
  for (version_id i = 0; i < length; ++i) add(i);
  for (version_id i = 2; i <= length; ++i) add(i);
  auto record = record_of("s");
  record.head = 0;  // none of the leaves began there
  record.last_version = record.versions = static_cast<version_id>(versions.size());
  auto tree = session_tree::restore(record, versions);
  BOOST_REQUIRE_MESSAGE(tree, (tree ? "" : tree.error().message));
  const auto began = std::chrono::steady_clock::now();
  BOOST_TEST(tree->unfinished() == nullptr);
  BOOST_TEST(tree->broken_last() == 0u);
  tree->set_head(1, 1);
  BOOST_REQUIRE(tree->unfinished() != nullptr);
  BOOST_TEST(tree->unfinished()->id == versions.back().id);
  BOOST_TEST(tree->broken_last() == versions.back().id);
  BOOST_TEST((std::chrono::steady_clock::now() - began < std::chrono::seconds(20)));
}
