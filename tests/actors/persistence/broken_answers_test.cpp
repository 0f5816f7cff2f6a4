// Shows from which state an answer is continued that the device cut off: its own, which is kept beside the head's.
#include "tests/actors/persistence/keeper_bench.hpp"

BOOST_AUTO_TEST_SUITE(broken_answers)

using namespace skein;
using namespace skein::test;

namespace {

using tokens_t = std::vector<token_id>;

}  // namespace

// Its state lacks the last token, which is fed again to sample the next one.
BOOST_AUTO_TEST_CASE(a_broken_answer_is_continued_from_its_own_state) {
  for (const bool late : {false, true})  // the state comes after the commit
    for (const bool restarts : {false, true}) {
      opened_bench b;
      b.turn("s", {1}, "a");
      const auto o = b.opened("s");
      auto c = b.commit_of(o, {2, 3, 4}, "bcd");
      c.version.unfinished = true;
      c.version.prompt_tokens = 1;
      c.version.stop_reason = "timeout";
      c.state_lacks = 1;
      const state_kept kept{o.key, state_after(tokens_t{1, 2, 3})};
      if (!late) b.tell(kept);
      BOOST_TEST(b.ask<turn_committed>(std::move(c)).version == 2u);
      if (late) b.tell(kept);
      if (restarts) {
        b.end();
        b.open();
      }
      auto q = b.question("s");
      q.continue_unfinished = true;
      const auto again = b.ask<session_opened>(q);
      BOOST_TEST(again.base == 1u);
      BOOST_REQUIRE(again.resume.state);
      BOOST_TEST((*again.resume.state == *state_after(tokens_t{1, 2, 3})));
      BOOST_TEST(again.resume.ahead == 2u);
      BOOST_TEST(again.resume.feed.empty());
      BOOST_TEST(again.resume.cached_tokens == 1u);
      b.tell(release{again.reply, again.lease});
      // Another text after the broken answer needs all of it.
      auto from = b.question("s", "e");
      from.from = 2;
      const auto other = b.ask<session_opened>(from);
      BOOST_TEST((*other.resume.state == *state_after(tokens_t{1, 2, 3})));
      BOOST_TEST(other.resume.feed == tokens_t({4}), boost::test_tools::per_element());
      BOOST_REQUIRE(other.resume.parts.size() == 1u);
      BOOST_TEST(other.resume.parts.front().sampled);
      BOOST_TEST(other.resume.cached_tokens == 3u);
      // The head has its own state as before.
      b.tell(release{other.reply, other.lease});
      BOOST_TEST((*b.opened("s").resume.state == *state_after(tokens_t{1})));
    }
}

BOOST_AUTO_TEST_CASE(a_broken_answer_whose_state_has_all_of_it_is_fed_again) {
  opened_bench b;
  b.turn("s", {1}, "a");
  const auto o = b.opened("s");
  auto c = b.commit_of(o, {2, 3}, "bc");
  c.version.unfinished = true;
  c.version.stop_reason = "client_gone";
  (void)b.ask<turn_committed>(std::move(c));
  b.tell(state_kept{o.key, state_after(tokens_t{1, 2, 3})});
  auto q = b.question("s");
  q.continue_unfinished = true;
  const auto again = b.ask<session_opened>(q);
  BOOST_TEST((*again.resume.state == *state_after(tokens_t{1})));
  BOOST_TEST(again.resume.ahead == 0u);
}

// The reader of a file takes a state for that of the whole version.
BOOST_AUTO_TEST_CASE(a_file_leaves_out_the_state_of_a_broken_answer) {
  opened_bench b;
  const auto o = b.opened("s");
  auto c = b.commit_of(o, {1, 2, 3}, "abc");
  c.version.unfinished = true;
  c.version.prompt_tokens = 1;
  c.version.stop_reason = "drain";
  c.state_lacks = 1;
  (void)b.ask<turn_committed>(std::move(c));
  b.tell(state_kept{o.key, state_after(tokens_t{1, 2})});
  (void)b.answered<done>(rollback_session{{0, 1}, named("s"), 1});  // it is the head
  for (const char* as : {"from RAM", "from disk"}) {
    auto file = b.answered<session_bytes>(export_session{{0, 1}, named("s")}).file;
    (void)b.answered<done>(import_session{{0, 1}, named(as), std::move(file), false, true});
    const auto opened = b.opened(as);
    BOOST_TEST(!opened.resume.state);
    BOOST_TEST(opened.resume.feed == tokens_t({1, 2, 3}), boost::test_tools::per_element());
    b.end();
    b.open();
  }
}

BOOST_AUTO_TEST_SUITE_END()
