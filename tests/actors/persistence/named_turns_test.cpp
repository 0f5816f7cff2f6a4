// Turns that are named by their request key, as in the Responses API: they are read, continued by a further turn,
// resumed after an interruption, and removed.
#include <boost/test/unit_test.hpp>

#include "tests/actors/persistence/keeper_bench.hpp"

using namespace skein;
using namespace skein::persistence;
using namespace skein::test;

namespace {

struct bench : keeper_bench {
  bench() { open(); }
};

version_id named_turn(bench& b, const std::string& key, const std::string& from = {}, bool unfinished = false) {
  auto q = b.question("s", "more");
  q.from_key = from;
  const auto o = b.ask<session_opened>(std::move(q));
  auto c = b.commit_of(o, {1, 2, 3}, key);
  c.version.request_key = key;
  c.version.unfinished = unfinished;
  const auto version = b.ask<turn_committed>(std::move(c)).version;
  b.tell(state_kept{o.key, nullptr});
  return version;
}

describe_session look(const std::string& key) {
  describe_session d;
  d.session.id = "s";
  d.turn = key;
  return d;
}

remove_session removal(const std::string& key) {
  remove_session r;
  r.session.id = "s";
  r.turn = key;
  return r;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(named_turns)

BOOST_AUTO_TEST_CASE(a_turn_is_found_whole_by_its_key) {
  bench b;
  named_turn(b, "a");
  named_turn(b, "b");
  const auto found = b.answered<session_description>(look("a"));
  BOOST_REQUIRE_EQUAL(found.versions.size(), 1u);
  BOOST_TEST(found.versions[0]->id == 1u);
  BOOST_TEST(found.versions[0]->tokens.size() == 3u);
  BOOST_TEST(found.versions[0]->answer == "answer");
  b.tell(look("c"));
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
}

BOOST_AUTO_TEST_CASE(a_turn_continues_from_the_named_one) {
  bench b;
  named_turn(b, "a");
  named_turn(b, "b");
  BOOST_TEST(named_turn(b, "c", "a") == 3u);
  BOOST_TEST(b.answered<session_description>(look("c")).versions[0]->parent == 1u);
  auto q = b.question("s", "more");
  q.from_key = "nobody";
  b.tell(std::move(q));
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
}

BOOST_AUTO_TEST_CASE(the_named_interrupted_turn_continues_and_keeps_its_name) {
  bench b;
  named_turn(b, "a", "", true);
  named_turn(b, "b", "", true);
  auto q = b.question("s");
  q.request_key = "a";
  q.continue_unfinished = true;
  const auto o = b.ask<session_opened>(q);
  BOOST_REQUIRE(o.unfinished.has_value());
  BOOST_TEST(o.unfinished->request_key == "a");
  auto c = b.commit_of(o, {1, 2, 3, 4}, "a");
  c.version.request_key = "a";
  BOOST_TEST(b.ask<turn_committed>(std::move(c)).version == 3u);
  const auto now = b.answered<session_description>(look("a")).versions[0];
  BOOST_TEST(now->id == 3u);
  BOOST_TEST(!now->unfinished);
  q.reply.number = ++b.tickets;
  BOOST_TEST(b.ask<session_replayed>(q).version.id == 3u);  // it is complete: nothing is left to resume
}

BOOST_AUTO_TEST_CASE(a_turn_is_removed_and_others_stay) {
  bench b;
  named_turn(b, "a");
  named_turn(b, "b");
  BOOST_TEST(b.answered<removed>(removal("a")).sessions == 1u);
  b.tell(look("a"));
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
  BOOST_TEST(b.answered<session_description>(look("b")).versions.size() == 1u);
  BOOST_TEST(b.answered<removed>(removal("b")).sessions == 1u);
  b.tell(look("b"));
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
}

BOOST_AUTO_TEST_SUITE_END()
