// Shows turns of one session that run beside each other: their states, their numbers in whatever order they end, what
// fails alone, what a crash, a drain and a full disk leave of them, and that others see nothing half done.
#include <boost/test/unit_test.hpp>
#include <set>

#include "storage/database/database_impl.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/repair/verify.hpp"
#include "tests/actors/persistence/keeper_bench.hpp"

using namespace skein;
using namespace skein::test;

namespace {

using tokens_t = std::vector<token_id>;
using numbers = std::vector<version_id>;

struct parallel_bench : keeper_bench {
  explicit parallel_bench(std::size_t unsaved_bytes_max = 64 << 20) {
    options.sessions.unsaved_bytes_max = unsaved_bytes_max;
    open();
  }
  open_session from(version_id version, const std::string& id = "s") {
    auto q = question(id, "more");
    q.from = version;
    return q;
  }
  session_opened branch(version_id version, const std::string& id = "s") {
    return ask<session_opened>(from(version, id));
  }
  std::vector<session_opened> branches(version_id version, int count, const std::string& id = "s") {
    std::vector<session_opened> all;
    for (int i = 0; i < count; ++i) all.push_back(branch(version, id));
    return all;
  }
  version_id commit(const session_opened& o, tokens_t tokens, bool unfinished = false) {
    auto c = commit_of(o, std::move(tokens), "text " + std::to_string(o.number));
    c.version.unfinished = unfinished;
    return ask<turn_committed>(std::move(c)).version;
  }
  void note(const session_opened& o, token_id token = 5) {
    note_running n{o.lease, {}, "segment"};
    n.so_far.tokens = tokens_t(20, token);
    n.so_far.text = "half of " + std::to_string(o.number);
    tell(std::move(n));
  }
  numbers versions(const std::string& id = "s", bool unfinished = false) {
    numbers all;
    for (const auto& v : described(id).versions)
      if (v->unfinished == unfinished) all.push_back(v->id);
    return all;
  }
  version_id head(const std::string& id = "s") { return described(id).session.record.head; }
  std::size_t notes() {
    std::size_t count = 0;
    BOOST_REQUIRE(db->internals().scan(storage::family::running, {}, {}, [&](auto, auto) { return ++count > 0; }));
    return count;
  }
  bool unknown(const std::string& id) {
    tell(describe_session{{0, 1}, {default_tenant, id}, false, {}});
    return refusal().kind == error_kind::not_found;
  }
  void sound() {
    const auto report = storage::verify(*db, {});
    BOOST_REQUIRE(report);
    for (const auto& one : report->damaged) BOOST_ERROR(one.record << ": " << one.why);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(parallel_turns)

BOOST_AUTO_TEST_CASE(answers_to_one_prompt_begin_at_one_state_and_end_in_any_order) {
  parallel_bench b;
  b.turn("s", {1}, "a");
  const auto turns = b.branches(1, 8);
  b.sessions->publish();
  BOOST_TEST(b.counters.leases == 8u);
  std::set<state_key> keys;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    BOOST_TEST(turns[i].number == 2 + i);
    BOOST_TEST(turns[i].base == 1u);
    BOOST_REQUIRE(turns[i].resume.state != nullptr);
    BOOST_TEST((*turns[i].resume.state == *state_after(tokens_t{1})));
    BOOST_TEST(keys.insert(turns[i].key).second);
  }
  b.tell(b.from(1));  // the ninth waits
  BOOST_TEST(b.silent());
  BOOST_TEST(b.commit(turns[5], {2, 5}) == 7u);
  BOOST_TEST(b.take<session_opened>().number == 10u);
  for (const std::size_t i : {2, 0, 7, 1, 6, 3, 4}) {
    BOOST_TEST(b.commit(turns[i], {2, static_cast<token_id>(i)}) == 2 + i);
    b.tell(state_kept{turns[i].key, state_after(tokens_t{1, 2, static_cast<token_id>(i)})});
    BOOST_TEST(b.head() == (i == 2 || i == 0 ? 7u : 9u));  // the one that began last, whenever it ended
  }
  BOOST_TEST((b.versions() == numbers{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  for (const auto& v : b.described("s").versions) BOOST_TEST(v->parent == (v->id == 1 ? 0u : 1u));
  b.crash();
  b.open();
  BOOST_TEST((b.versions() == numbers{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  BOOST_TEST(b.head() == 9u);
  const auto o = b.branch(4);
  tokens_t swallowed(o.resume.cached_tokens == 0 ? tokens_t() : tokens_t{1});
  swallowed.insert(swallowed.end(), o.resume.feed.begin(), o.resume.feed.end());
  BOOST_TEST(swallowed == tokens_t({1, 2, 2}), boost::test_tools::per_element());
  b.sound();
}

BOOST_AUTO_TEST_CASE(answers_wait_for_one_state_together) {
  parallel_bench b;
  const auto first = b.opened("s");
  (void)b.commit(first, {1});
  for (int i = 0; i < 3; ++i) b.tell(b.from(1));
  BOOST_TEST(b.silent());
  b.tell(state_kept{first.key, state_after(tokens_t{1})});
  for (int i = 0; i < 3; ++i) BOOST_TEST((*b.take<session_opened>().resume.state == *state_after(tokens_t{1})));
}

BOOST_AUTO_TEST_CASE(a_turn_at_the_head_waits_for_all_and_sees_their_results) {
  parallel_bench b;
  b.turn("s", {1}, "a");
  const auto turns = b.branches(1, 2);
  const auto late = b.question("s");
  b.tell(late);
  auto expecting = b.question("s");
  expecting.expected_version = 3;
  b.tell(expecting);
  const auto behind = b.from(1);
  b.tell(behind);
  BOOST_TEST(b.silent());
  BOOST_TEST(b.commit(turns[1], {3}) == 3u);
  b.tell(state_kept{turns[1].key, nullptr});
  BOOST_TEST(b.silent());
  b.tell(release{turns[0].reply, turns[0].lease});
  const auto at_head = b.take<session_opened>();
  BOOST_TEST(at_head.reply.number == late.reply.number);
  BOOST_TEST(at_head.base == 3u);
  BOOST_TEST(b.silent());  // also the one that only waits in line
  BOOST_TEST(b.commit(at_head, {4}) == 4u);
  BOOST_TEST(b.take<refused>().why.field == "expected_version");
  BOOST_TEST(b.take<session_opened>().reply.number == behind.reply.number);
}

BOOST_AUTO_TEST_CASE(who_waited_behind_one_that_left_runs) {
  parallel_bench b;
  b.turn("s", {1}, "a");
  const auto runs = b.branch(1);
  auto leaves = b.question("s"), too_late = b.question("s");
  too_late.deadline = b.time.now() + 1s;
  b.tell(leaves);
  b.tell(b.from(1));
  b.tell(too_late);
  b.tell(b.from(1));
  BOOST_TEST(b.silent());
  b.tell(release{leaves.reply, 0});
  BOOST_TEST(b.take<session_opened>().base == 1u);
  BOOST_TEST(b.silent());
  b.pass(2s);
  BOOST_TEST((b.refusal().kind == error_kind::timeout));
  BOOST_TEST(b.take<session_opened>().base == 1u);
}

BOOST_AUTO_TEST_CASE(a_turn_that_names_one_that_runs_waits_for_it) {
  parallel_bench b;
  auto q = b.question("s", "more");
  q.request_key = "one";
  const auto first = b.ask<session_opened>(q);
  auto next = b.question("s", "and more");
  next.from_key = "one";
  b.tell(next);
  BOOST_TEST(b.silent());
  auto c = b.commit_of(first, {1}, "a");
  c.version.request_key = "one";
  (void)b.ask<turn_committed>(std::move(c));
  b.tell(state_kept{first.key, nullptr});
  BOOST_TEST(b.take<session_opened>().base == 1u);
}

BOOST_AUTO_TEST_CASE(a_retry_waits_for_the_turn_that_it_repeats) {
  parallel_bench b;
  b.turn("s", {1}, "a");
  auto q = b.from(1);
  q.request_key = "key";
  const auto first = b.ask<session_opened>(q);
  const auto beside = b.branch(1);
  q.reply.number = ++b.tickets;
  b.tell(q);
  BOOST_TEST(b.silent());
  auto c = b.commit_of(first, {2}, "b");
  c.version.request_key = "key";
  (void)b.ask<turn_committed>(std::move(c));
  BOOST_TEST(b.take<session_replayed>().version.id == 2u);  // while the other one runs
  BOOST_TEST(b.commit(beside, {3}) == 3u);
}

BOOST_AUTO_TEST_CASE(one_that_fails_takes_nothing_along) {
  parallel_bench b;
  b.turn("s", {1}, "a");
  const auto turns = b.branches(1, 3);
  for (const auto& o : turns) b.note(o);
  BOOST_TEST(b.notes() == 3u);
  b.tell(release{turns[0].reply, turns[0].lease});
  BOOST_TEST(b.notes() == 2u);
  BOOST_TEST(b.commit(turns[2], {3}) == 4u);
  BOOST_TEST(b.notes() == 1u);
  BOOST_TEST(b.commit(turns[1], {2}) == 3u);
  BOOST_TEST(b.notes() == 0u);
  b.tell(state_kept{turns[0].key, state_after(tokens_t{9})});  // has no owner
  BOOST_TEST((b.versions() == numbers{1, 3, 4}));
  b.crash();
  b.open();
  BOOST_TEST((b.versions() == numbers{1, 3, 4}));
  b.sound();
  BOOST_TEST(b.branch(1).number == 5u);
}

BOOST_AUTO_TEST_CASE(a_crash_leaves_each_as_far_as_it_was_noted_and_once) {
  for (const bool first_turns : {true, false}) {
    parallel_bench b;
    const version_id base = first_turns ? 0 : 1;
    if (!first_turns) b.turn("s", {1}, "a");
    const auto turns = b.branches(base, 4);
    for (const auto& o : turns) b.note(o, static_cast<token_id>(o.number));
    if (!first_turns) BOOST_TEST(b.commit(turns[2], {7}) == 4u);
    b.crash();
    for (int start = 0; start < 3; ++start) {
      b.open();
      const auto broken = first_turns ? numbers{1, 2, 3, 4} : numbers{2, 3, 5};
      BOOST_TEST((b.versions("s", true) == broken));
      BOOST_TEST(b.head() == (first_turns ? 0u : 4u));
      for (const auto& v : b.described("s", true).versions)
        if (v->unfinished) BOOST_TEST(v->text == "half of " + std::to_string(v->id));
      BOOST_TEST(b.notes() == 0u);
      b.sound();
      b.crash();
    }
  }
}

BOOST_AUTO_TEST_CASE(the_note_of_an_older_program_is_taken_up) {
  parallel_bench b;
  b.turn("s", {1}, "a");
  const auto uid = b.described("s").session.record.uid;
  version_record v;
  v.id = 2;
  v.parent = 1;
  v.tokens = {2, 3};
  v.text = "half an answer";
  const auto write = [&] {
    BOOST_REQUIRE(b.db->internals().write(storage::safety::logged, [&](storage::change_list& changes) {
      changes.put(storage::family::running, storage::keys::of_number(uid), storage::encode_running(uid, {v}));
    }));
  };
  write();
  b.crash();
  b.open();
  BOOST_TEST((b.versions("s", true) == numbers{2}));
  BOOST_TEST(b.notes() == 0u);
  write();  // as if the end had come before it was forgotten
  b.crash();
  b.open();
  BOOST_TEST((b.versions("s", true) == numbers{2}));
  BOOST_TEST(b.notes() == 0u);
}

BOOST_AUTO_TEST_CASE(a_drain_keeps_each) {
  parallel_bench b;
  b.turn("s", {1}, "a");
  const auto turns = b.branches(1, 3);
  for (const auto& o : turns) (void)b.commit(o, {7}, true);
  BOOST_TEST((b.versions("s", true) == numbers{2, 3, 4}));
  BOOST_TEST(b.head() == 1u);
  for (const auto& o : turns) b.tell(state_kept{o.key, nullptr});
  b.end();
  b.open();
  BOOST_TEST((b.versions("s", true) == numbers{2, 3, 4}));
}

BOOST_AUTO_TEST_CASE(interrupted_answers_continue_in_parallel) {
  parallel_bench b;
  b.turn("s", {1}, "a");
  const auto turns = b.branches(1, 2);
  for (const auto& o : turns) {
    auto c = b.commit_of(o, {7}, "x");
    c.version.unfinished = true;
    c.version.request_key = "turn " + std::to_string(o.number);
    (void)b.ask<turn_committed>(std::move(c));
    b.tell(state_kept{o.key, nullptr});
  }
  for (const version_id number : {2, 3}) {
    auto q = b.question("s");
    q.continue_unfinished = true;
    q.request_key = "turn " + std::to_string(number);
    const auto o = b.ask<session_opened>(std::move(q));
    BOOST_TEST(o.unfinished->id == number);
    BOOST_TEST(o.base == 1u);
  }
}

BOOST_AUTO_TEST_CASE(the_first_turns_of_a_session_make_it_together) {
  {
    parallel_bench b;
    const auto turns = b.branches(0, 3);
    b.note(turns[1]);  // so the log has a session without versions
    BOOST_TEST(b.unknown("s"));
    b.tell(release{turns[0].reply, turns[0].lease});
    BOOST_TEST(b.unknown("s"));
    BOOST_TEST(b.commit(turns[2], {3}) == 3u);
    BOOST_TEST((b.versions() == numbers{3}));
    b.tell(release{turns[1].reply, turns[1].lease});
    b.crash();
    b.open();
    BOOST_TEST((b.versions() == numbers{3}));
    b.sound();
  }
  {
    parallel_bench b;
    const auto turns = b.branches(0, 2);
    b.note(turns[0]);
    b.tell(release{turns[0].reply, turns[0].lease});
    b.crash();  // while the other one, of which nothing is noted, runs
    b.open();
    BOOST_TEST(b.unknown("s"));
  }
  parallel_bench b;
  for (const auto& o : b.branches(0, 3)) {
    b.note(o);
    b.tell(release{o.reply, o.lease});
    BOOST_TEST(b.unknown("s"));
  }
  b.crash();
  b.open();
  BOOST_TEST(b.unknown("s"));
  BOOST_TEST(b.notes() == 0u);
}

BOOST_AUTO_TEST_CASE(looking_after_a_session_while_several_run) {
  parallel_bench b;
  b.turn("s", {1}, "a");
  b.turn("s", {2}, "b", tokens_t{1, 2});
  const auto turns = b.branches(1, 3);
  BOOST_TEST(b.commit(turns[2], {5}) == 5u);  // leaves a gap
  b.tell(state_kept{turns[2].key, state_after(tokens_t{1, 5})});
  const session_key s{default_tenant, "s"}, fork{default_tenant, "fork"}, copy{default_tenant, "copy"};
  for (int i = 0; i < 3; ++i) {
    if (i == 0) b.tell(rollback_session{{0, 1}, s, 1});
    if (i == 1) b.tell(remove_session{{0, 1}, s, false});
    if (i == 2) b.tell(remove_session{{0, 1}, {default_tenant, "s:2"}, false});
    BOOST_TEST((b.refusal().kind == error_kind::conflict));
  }
  BOOST_TEST(b.answered<done>(fork_session{{0, 1}, s, fork, 5}).session.versions == 2u);
  const auto file = b.answered<session_bytes>(export_session{{0, 1}, s, true}).file;
  BOOST_TEST(b.answered<done>(import_session{{0, 1}, copy, file}).session.versions == 3u);
  b.tell(import_session{{0, 1}, s, file, true});
  BOOST_TEST((b.refusal().kind == error_kind::conflict));
  for (const auto* id : {"fork", "copy"}) BOOST_TEST(b.opened(id).base == 5u);
  BOOST_TEST((b.versions("copy") == numbers{1, 2, 5}));
  for (int i = 0; i < 2; ++i) BOOST_TEST(b.commit(turns[i], {3}) == 3u + i);
  BOOST_TEST(b.head() == 5u);
  BOOST_TEST(b.answered<removed>(remove_session{{0, 1}, s, false}).sessions == 1u);
  b.sound();
}

/// The disk fails somewhere in the write of a turn that is refused; those beside it stay in memory until it works
/// again.
BOOST_AUTO_TEST_CASE(a_turn_that_the_disk_may_have_does_not_come_back) {
  for (const bool first_turns : {false, true})
    for (const bool one_more : {false, true})
      for (const std::uint64_t operation : {1, 2, 3}) {
        BOOST_TEST_INFO("operation " << operation << ", of the first turns " << first_turns << ", more " << one_more);
        parallel_bench b(4000);
        if (!first_turns) b.turn("s", {1}, "a");
        const version_id base = first_turns ? 0 : 1;
        const auto turns = b.branches(base, 2);
        b.files->plan({.kind = fault_kind::io_error, .first = operation, .count = 1'000'000});
        auto c = b.commit_of(turns[0], {2}, std::string(5000, 'x'));
        c.wanted = durability::power;
        b.tell(std::move(c));
        BOOST_REQUIRE(std::holds_alternative<refused>(b.replies.all.front()));
        b.replies.all.clear();
        if (one_more)
          BOOST_TEST(b.commit(turns[1], {3}) == base + 2);
        else
          b.tell(release{turns[1].reply, turns[1].lease});
        b.recover();
        b.crash();
        b.open();
        b.sound();
        if (first_turns && !one_more) {
          BOOST_TEST(b.unknown("s"));
          continue;
        }
        auto expected = first_turns ? numbers{} : numbers{1};
        if (one_more) expected.push_back(base + 2);
        BOOST_TEST((b.versions() == expected));
      }
}

BOOST_AUTO_TEST_SUITE_END()
