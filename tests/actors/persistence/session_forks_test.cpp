// Shows how sessions and branches share states: a fork uses the states of its origin, also after a restart and without
// a copy of them; a deletion removes exactly the states that no other session shares.
#include <boost/test/unit_test.hpp>

#include "storage/database/database_impl.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/sessions/session_store.hpp"
#include "tests/actors/persistence/keeper_bench.hpp"

using namespace skein;
using namespace skein::test;

namespace {

using tokens_t = std::vector<token_id>;

fork_session fork_of(const std::string& from, const std::string& to, std::optional<version_id> version = {}) {
  return {{0, 1}, named(from), named(to), version};
}
remove_session removal_of(const std::string& id, bool with_prefix = false) { return {{0, 1}, named(id), with_prefix}; }

struct disk_bench : opened_bench {
  void again() {
    pass(3s);
    end();
    open();
  }
  /// A session of three turns, with a state of each on disk.
  void three_turns(const std::string& id) {
    turn(id, {1}, "a");
    turn(id, {2}, "b", tokens_t{1, 2});
    turn(id, {3}, "c", tokens_t{1, 2, 3});
    pass(3s);
  }
  std::size_t on_disk() { return states->list().value().size(); }
  /// What the next turn of a session would begin with.
  resume_point next(const std::string& id) {
    const auto o = opened(id);
    tell(release{o.reply, o.lease});
    return o.resume;
  }
  void goes_on_after(const std::string& id, const tokens_t& tokens) {
    const auto at = next(id);
    BOOST_REQUIRE_MESSAGE(at.state, id);
    BOOST_TEST((*at.state == *state_after(tokens)), id);
    BOOST_TEST(at.feed.empty(), id);
  }
  void is_fed(const std::string& id, const tokens_t& tokens) {
    const auto at = next(id);
    BOOST_TEST(!at.state, id);
    BOOST_TEST(at.feed == tokens, boost::test_tools::per_element());
  }
};

/// A session of many versions, each the parent of the next, read from the log after a restart.
struct large_bench : disk_bench {
  static constexpr version_id count = 100'000;
  large_bench() {
    write(storage::session_store(db));
    again();
    (void)described("s");  // in memory, as after a turn
  }
  void write(storage::session_store store) const {
    session_record session;
    session.uid = store.new_uid().value();
    session.key = named("s");
    session.model_identity = model;
    session.title = "a title";
    for (version_id id = 1; id <= count;) {
      std::vector<version_record> some;
      for (; id <= count && some.size() < 10'000; ++id) {
        version_record v;
        v.id = id;
        v.parent = id - 1;
        v.tokens = {static_cast<token_id>(id % 1000)};
        v.total_tokens = id;
        v.text = v.answer = "x";
        some.push_back(v);
        session.log_bytes += storage::content_bytes(v);
      }
      session.head = session.last_version = session.versions = id - 1;
      session.total_tokens = id - 1;
      BOOST_REQUIRE(store.commit(session, some, false));
    }
  }
  std::uint64_t log_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder.path() / "db"))
      if (file.path().extension() == ".log") bytes += file.file_size();
    return bytes;
  }
  std::size_t versions_on_disk() {
    std::size_t records = 0;
    BOOST_REQUIRE(db->internals().scan(storage::family::versions, {}, {}, [&](auto, auto) { return ++records > 0; }));
    return records;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_fork_of_many_versions_writes_a_few_kilobytes) {
  large_bench b;
  const auto before = b.log_bytes();
  const auto began = std::chrono::steady_clock::now();
  const auto forked = b.answered<done>(fork_of("s", "t")).session;
  const auto took = std::chrono::steady_clock::now() - began;
  BOOST_TEST(b.log_bytes() - before < 4096u);
  BOOST_TEST(b.versions_on_disk() == b.count);
  BOOST_TEST(std::chrono::duration_cast<std::chrono::milliseconds>(took).count() < 50);
  BOOST_TEST(forked.versions == b.count);
  BOOST_TEST(forked.title == "a title");
  // Shared versions count in full in each session's quota.
  b.sessions->publish();
  BOOST_TEST(b.counters.stored_versions == 2 * b.count);
  BOOST_TEST(b.counters.stored_bytes == 2 * storage::amount_of(forked).bytes);
  // A turn on "s:50000" makes a fork too.
  const auto o = b.opened("s:50000");
  (void)b.ask<turn_committed>(b.commit_of(o, {7}, "z"));
  b.tell(state_kept{o.key, nullptr});
  BOOST_TEST(b.log_bytes() - before < 8192u);
  // Origin and fork continue independently, also after a restart.
  b.turn("t", {1}, "of t");
  b.turn("s", {2}, "of s");
  for (const bool restarted : {false, true}) {
    const auto last = [&](const std::string& id) { return b.described(id).versions.back(); };
    BOOST_TEST(last("t")->text == "of t");
    BOOST_TEST(last("s")->text == "of s");
    BOOST_TEST(last("t")->parent == b.count);
    BOOST_TEST(b.described("t").versions.size() == b.count + 1);
    BOOST_TEST(b.described("s:50000").versions.size() == 50'001u);
    if (!restarted) {
      b.crash();
      b.open();
    }
  }
  // The versions that forks need stay until the last fork is deleted.
  BOOST_TEST(b.answered<removed>(removal_of("s")).sessions == 1u);
  BOOST_TEST(b.versions_on_disk() == b.count + 2);
  BOOST_TEST(b.answered<removed>(removal_of("t")).sessions == 1u);
  BOOST_TEST(b.versions_on_disk() == 50'001u);
  b.again();
  BOOST_TEST(b.described("s:50000").versions.size() == 50'001u);
  BOOST_TEST(b.answered<removed>(removal_of("s:50000")).sessions == 1u);
  BOOST_TEST(b.versions_on_disk() == 0u);
  b.sessions->publish();
  BOOST_TEST(b.counters.stored_versions == 0u);
}

BOOST_AUTO_TEST_CASE(a_fork_of_a_session_with_many_states_shares_some_of_them) {
  disk_bench b;
  tokens_t all;
  for (token_id i = 1; i <= 150; ++i) {
    all.push_back(i);
    b.turn("s", {i}, "x", all);
  }
  b.pass(3s);
  const auto fork = b.answered<done>(fork_of("s", "t", 140)).session;
  auto shared = storage::session_store(b.db).shares().of(fork.uid);
  BOOST_TEST(shared.size() < 40u);
  BOOST_TEST((shared.front() == state_key{b.described("s").session.record.uid, 140}));
  // From each version, the nearest earlier state is at most as far as the end.
  std::ranges::reverse(shared);
  for (std::size_t i = 1; i < shared.size(); ++i)
    BOOST_TEST(shared[i].number - shared[i - 1].number <= std::max<std::uint64_t>(1, 140 - shared[i].number));
  all.resize(140);
  b.goes_on_after("t", all);
  b.answered<removed>(removal_of("s"));
  b.sessions->publish();
  BOOST_TEST(b.counters.sessions.ram <= shared.size());
  b.again();
  b.goes_on_after("t", all);
  b.answered<removed>(removal_of("t"));
  BOOST_TEST(b.on_disk() == 0u);
}

BOOST_AUTO_TEST_CASE(a_version_that_a_session_and_its_fork_delete_is_gone_when_both_have) {
  disk_bench b;
  b.three_turns("s");
  (void)b.answered<done>(fork_of("s", "t"));
  const auto versions_on_disk = [&] {
    std::size_t records = 0;
    BOOST_REQUIRE(b.db->internals().scan(storage::family::versions, {}, {}, [&](auto, auto) { return ++records > 0; }));
    return records;
  };
  const auto deleted = [&](const std::string& id, std::size_t which) {
    return bool(b.described(id).versions.at(which)->deleted);
  };
  (void)b.answered<removed>(removal_of("s:2"));  // others continue from it
  (void)b.answered<removed>(removal_of("t:1"));
  for (int opened = 0; opened < 2; ++opened) {
    BOOST_TEST(deleted("s", 1));
    BOOST_TEST(!deleted("t", 1));
    BOOST_TEST(!deleted("s", 0));
    BOOST_TEST(deleted("t", 0));
    b.again();
  }
  // A fork takes over the deletions of its origin; the origin does not take over those of a fork.
  (void)b.answered<done>(fork_of("t", "u"));
  b.again();
  BOOST_TEST(deleted("u", 0));
  BOOST_TEST(!deleted("u", 1));
  (void)b.answered<removed>(removal_of("s:3"));
  BOOST_TEST(b.described("s").versions.size() == 1u);  // 2 is gone too: only 3 needed it
  BOOST_TEST(b.described("t").versions.size() == 3u);
  BOOST_TEST(versions_on_disk() == 3u);
  (void)b.answered<removed>(removal_of("t:3"));
  BOOST_TEST(versions_on_disk() == 3u);
  (void)b.answered<removed>(removal_of("u:3"));
  BOOST_TEST(versions_on_disk() == 2u);
  b.again();
  BOOST_TEST(b.described("t").session.record.head == 2u);
  BOOST_TEST(b.described("s").session.record.head == 1u);
  (void)b.answered<removed>(removal_of("t"));
  (void)b.answered<removed>(removal_of("u"));
  BOOST_TEST(versions_on_disk() == 1u);
}

BOOST_AUTO_TEST_CASE(a_fork_finds_its_origins_states_after_a_restart_and_there_is_no_copy) {
  disk_bench b;
  b.three_turns("s");
  (void)b.answered<done>(fork_of("s", "t", 2));
  (void)b.answered<done>(fork_of("t", "u"));
  for (const bool restarted : {false, true}) {
    BOOST_TEST(b.on_disk() == 3u);
    b.goes_on_after("t", {1, 2});
    b.goes_on_after("u", {1, 2});
    const auto listed = b.described("u").session;
    BOOST_TEST((listed.fastest != tier::none));
    BOOST_TEST(listed.state_bytes > 0u);
    if (!restarted) b.again();
  }
  // Its own turns are its own.
  b.turn("t", {9}, "z", tokens_t{1, 2, 9});
  b.again();
  b.goes_on_after("t", {1, 2, 9});
  b.goes_on_after("u", {1, 2});
  b.goes_on_after("s", {1, 2, 3});
}

BOOST_AUTO_TEST_CASE(an_origin_that_is_deleted_leaves_its_forks_their_states_and_the_last_one_takes_them) {
  for (const bool restarts : {false, true}) {
    disk_bench b;
    b.three_turns("s");
    (void)b.answered<done>(fork_of("s", "t", 2));
    (void)b.answered<done>(fork_of("t", "u", 1));
    const auto perhaps_again = [&] {
      if (restarts) b.again();
    };
    BOOST_TEST(b.answered<removed>(removal_of("s")).sessions == 1u);
    BOOST_TEST(b.on_disk() == 2u);  // what only "s" had is gone
    perhaps_again();
    b.goes_on_after("t", {1, 2});
    BOOST_TEST(b.answered<removed>(removal_of("t")).sessions == 1u);
    BOOST_TEST(b.on_disk() == 1u);
    perhaps_again();
    b.goes_on_after("u", {1});
    BOOST_TEST(b.answered<removed>(removal_of("u")).sessions == 1u);
    BOOST_TEST(b.on_disk() == 0u);
    perhaps_again();
    b.pass(3s);
    BOOST_TEST(b.on_disk() == 0u);
    b.sessions->publish();
    BOOST_TEST(b.counters.sessions.ram == 0u);
    BOOST_TEST(b.counters.sessions.disk == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_fork_that_is_deleted_leaves_its_origin_whole) {
  disk_bench b;
  b.three_turns("s");
  (void)b.answered<done>(fork_of("s", "t"));
  b.answered<removed>(removal_of("t"));
  BOOST_TEST(b.on_disk() == 3u);
  b.again();
  b.goes_on_after("s", {1, 2, 3});
  b.answered<removed>(removal_of("s"));
  BOOST_TEST(b.on_disk() == 0u);
}

BOOST_AUTO_TEST_CASE(forks_by_name_share_and_go_with_their_origin) {
  disk_bench b;
  b.three_turns("a");
  const auto failed = b.opened("a:2");
  b.tell(release{failed.reply, failed.lease});
  const auto o = b.opened("a:2");
  (void)b.ask<turn_committed>(b.commit_of(o, {7}, "z"));
  b.tell(state_kept{o.key, nullptr});  // so that only its origin's state can serve it
  b.again();
  const auto at = b.next("a:2");
  BOOST_REQUIRE(at.state);
  BOOST_TEST((*at.state == *state_after(tokens_t{1, 2})));
  BOOST_TEST(at.feed == tokens_t{7}, boost::test_tools::per_element());
  BOOST_TEST(b.answered<removed>(removal_of("a", true)).sessions == 2u);
  BOOST_TEST(b.on_disk() == 0u);
  // The fork that failed holds nothing.
  b.three_turns("c");
  const auto second = b.opened("c:2");
  b.tell(release{second.reply, second.lease});
  b.answered<removed>(removal_of("c"));
  BOOST_TEST(b.on_disk() == 0u);
}

BOOST_AUTO_TEST_CASE(a_fork_waits_for_a_state_that_its_origin_is_about_to_get) {
  disk_bench b;
  const auto o = b.opened("s");
  (void)b.ask<turn_committed>(b.commit_of(o, {1}, "a"));
  (void)b.answered<done>(fork_of("s", "t"));
  b.tell(b.question("t"));
  BOOST_TEST(b.silent());
  b.tell(state_kept{o.key, state_after(tokens_t{1})});
  BOOST_TEST((*b.take<session_opened>().resume.state == *state_after(tokens_t{1})));
}

BOOST_AUTO_TEST_CASE(a_fork_that_did_not_come_to_be_is_the_last_to_have_states_of_an_origin_that_went) {
  disk_bench b;
  b.three_turns("a");
  const auto o = b.opened("a:2");
  b.answered<removed>(removal_of("a"));
  BOOST_TEST(b.on_disk() == 2u);  // those on the way of the fork
  b.tell(release{o.reply, o.lease});
  BOOST_TEST(b.on_disk() == 0u);
  b.sessions->publish();
  BOOST_TEST(b.counters.sessions.ram == 0u);
}

BOOST_AUTO_TEST_CASE(a_fork_that_did_not_come_to_be_leaves_its_origin_what_only_memory_has) {
  disk_bench b;
  b.files->plan({.kind = fault_kind::no_space, .first = 1, .count = 1'000'000});
  b.turn("a", {1}, "a");
  const auto o = b.opened("a:1");
  b.tell(release{o.reply, o.lease});
  b.goes_on_after("a", {1});
}

BOOST_AUTO_TEST_CASE(a_fork_does_not_wait_for_a_state_of_an_origin_that_went) {
  disk_bench b;
  const auto o = b.opened("s");
  (void)b.ask<turn_committed>(b.commit_of(o, {1}, "a"));
  (void)b.answered<done>(fork_of("s", "t"));
  b.tell(b.question("t"));
  BOOST_TEST(b.silent());
  b.answered<removed>(removal_of("s"));
  b.tell(state_kept{o.key, state_after(tokens_t{1})});
  BOOST_TEST(b.take<session_opened>().resume.feed == tokens_t{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_fork_does_not_wait_for_ever) {
  disk_bench b;
  const auto o = b.opened("s");
  (void)b.ask<turn_committed>(b.commit_of(o, {1}, "a"));
  (void)b.answered<done>(fork_of("s", "t"));
  b.tell(b.question("t"));
  b.pass(11s);
  BOOST_TEST(b.take<session_opened>().resume.feed == tokens_t{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_list_of_shared_states_that_is_damaged_costs_feeding) {
  disk_bench b;
  b.three_turns("s");
  const auto fork = b.answered<done>(fork_of("s", "t")).session;
  const std::string key = storage::keys::of_shares(fork.uid);
  BOOST_REQUIRE(b.db->internals().write(
      storage::safety::logged, [&](auto& changes) { changes.put(storage::family::meta, key, "no such list"); }));
  b.again();
  b.is_fed("t", {1, 2, 3});
  b.goes_on_after("s", {1, 2, 3});
}

BOOST_AUTO_TEST_CASE(a_replaced_origin_leaves_its_forks_their_states) {
  disk_bench b;
  b.three_turns("s");
  (void)b.answered<done>(fork_of("s", "t"));
  auto file = b.answered<session_bytes>(export_session{{0, 1}, named("t"), true}).file;
  (void)b.answered<done>(import_session{{0, 1}, named("s"), std::move(file), true, true});
  b.again();
  b.goes_on_after("s", {1, 2, 3});  // its file had the state that "t" shares
  b.goes_on_after("t", {1, 2, 3});
  b.answered<removed>(removal_of("t"));
  BOOST_TEST(b.on_disk() == 1u);
  b.answered<removed>(removal_of("s"));
  BOOST_TEST(b.on_disk() == 0u);
}

BOOST_AUTO_TEST_CASE(forks_and_ways_back) {
  disk_bench b;
  b.turn("s", {1}, "a");
  b.turn("s", {2}, "b", tokens_t{1, 2});
  b.turn("s", {3}, "c", tokens_t{1, 2, 3});
  const auto forked = b.answered<done>(fork_of("s", "t", 2)).session;
  BOOST_TEST(forked.head == 2u);
  BOOST_TEST(forked.total_tokens == 2u);
  auto o = b.opened("t");
  BOOST_REQUIRE(o.resume.state != nullptr);  // its origin's serves it
  BOOST_TEST((*o.resume.state == *state_after(tokens_t{1, 2})));
  (void)b.ask<turn_committed>(b.commit_of(o, {9}, "z"));
  b.tell(fork_of("s", "t"));
  BOOST_TEST(b.refusal().field == "to");
  b.tell(fork_of("s", "u", 7));
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
  b.tell(fork_of("nobody", "u"));
  BOOST_TEST((b.refusal().kind == error_kind::not_found));

  BOOST_TEST(b.answered<done>(rollback_session{{0, 1}, named("s"), 1}).session.head == 1u);
  b.tell(rollback_session{{0, 1}, named("s"), 9});
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
  b.crash();
  b.open();
  o = b.opened("s");
  BOOST_TEST(o.base == 1u);
  BOOST_TEST(o.number == 4u);  // numbers of versions that are there are not used again
  (void)b.ask<turn_committed>(b.commit_of(o, {8}, "y"));
  BOOST_TEST(b.described("s").versions.size() == 4u);
  b.tell(state_kept{o.key, nullptr});
  BOOST_TEST(b.opened("t").resume.feed == tokens_t({1, 2, 9}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_name_with_a_version_begins_as_a_fork) {
  disk_bench b;
  b.turn("a", {1}, "x");
  b.turn("a", {2}, "y", tokens_t{1, 2});
  auto o = b.opened("a:1");
  BOOST_TEST((o.state == session_state::continued));
  BOOST_TEST(o.base == 1u);
  BOOST_TEST(o.number == 2u);
  BOOST_TEST((*o.resume.state == *state_after(tokens_t{1})));
  b.tell(release{o.reply, o.lease});
  const list_sessions all{{0, 1}, default_tenant, "", 10};
  BOOST_TEST(b.answered<session_list>(all).sessions.size() == 1u);  // a turn that failed makes none
  o = b.opened("a:1");
  (void)b.ask<turn_committed>(b.commit_of(o, {7}, "z"));
  b.crash();
  b.open();
  BOOST_TEST(b.opened("a:1").resume.feed == tokens_t({1, 7}), boost::test_tools::per_element());
  BOOST_TEST(b.described("a").versions.size() == 2u);
  // No such version, no such session, no number: names like any other.
  for (const char* id : {"a:3", "a:0", "b:1", "a:x", ":1", "a:99999999999999"})
    BOOST_TEST((b.opened(id).state == session_state::fresh), id);
}

BOOST_AUTO_TEST_CASE(a_name_with_a_version_is_read_as_that_version) {
  disk_bench b;
  b.three_turns("a");
  const auto two = b.described("a:2");
  BOOST_TEST(two.session.record.key.id == "a:2");
  BOOST_TEST(two.session.record.head == 2u);
  BOOST_TEST(two.session.record.total_tokens == 2u);
  BOOST_TEST((two.session.fastest != tier::none));  // it has the state of its version
  BOOST_REQUIRE(two.versions.size() == 2u);
  BOOST_TEST(two.versions.back()->text == "b");
  BOOST_TEST(b.described("a:1", true).versions.size() == 1u);
  BOOST_TEST(b.described("a").versions.size() == 3u);

  // A file of it is a session that goes on there; so is a fork.
  const auto file = b.answered<session_bytes>(export_session{{0, 1}, named("a:2"), true}).file;
  (void)b.answered<done>(import_session{{0, 1}, named("in"), file, false});
  b.goes_on_after("in", {1, 2});
  (void)b.answered<done>(fork_of("a:2", "b"));
  b.goes_on_after("b", {1, 2});
  (void)b.answered<done>(fork_of("a:2", "c", 1));
  b.goes_on_after("c", {1});
  b.tell(fork_of("a:2", "d", 3));  // not a version of that name
  BOOST_TEST((b.refusal().kind == error_kind::not_found));

  // Reading made no session, and one of that name comes first.
  const list_sessions all{{0, 1}, default_tenant, "", 10};
  BOOST_TEST(b.answered<session_list>(all).sessions.size() == 4u);
  const auto o = b.opened("a:1");
  BOOST_TEST(b.described("a:1").versions.size() == 1u);  // while its first turn runs
  (void)b.ask<turn_committed>(b.commit_of(o, {7}, "z"));
  BOOST_TEST(b.described("a:1").versions.back()->text == "z");
  (void)b.answered<removed>(removal_of("a:2"));
  for (const char* id : {"a:2", "a:4", "a:0", "b:x", "none:1"}) {
    b.tell(describe_session{{0, 1}, named(id), false, {}});
    BOOST_TEST((b.refusal().kind == error_kind::not_found), id);
  }
}

BOOST_AUTO_TEST_CASE(a_branch_goes_by_its_name_and_nothing_else_with_it) {
  keeper_bench b;
  b.open();
  b.turn("a", {1}, "a");
  b.turn("a", {2}, "b", tokens_t({1, 2}));
  auto q = b.question("a", "c");
  q.from = 1;
  const auto o = b.ask<session_opened>(q);
  b.ask<turn_committed>(b.commit_of(o, {3}, "c"));
  b.tell(state_kept{o.key, state_after(tokens_t({1, 3}))});
  b.pass(2s);  // states are on disk
  const auto remove = [](const std::string& id) { return remove_session{{0, 1}, {default_tenant, id}}; };
  BOOST_TEST(b.answered<removed>(remove("a:3")).sessions == 1u);
  auto left = b.described("a");
  BOOST_TEST(left.versions.size() == 2u);
  BOOST_TEST(left.session.record.head == 2u);
  BOOST_TEST(left.session.record.total_tokens == 2u);
  b.tell(remove("a:3"));
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
  b.end();
  b.open();
  BOOST_TEST(b.described("a").versions.size() == 2u);
  BOOST_TEST(b.states->list().value().size() == 2u);
  const auto next = b.opened("a");
  BOOST_TEST(next.base == 2u);
  BOOST_TEST(next.number == 4u);  // no number comes twice
  b.tell(release{next.reply, next.lease});
  b.answered<removed>(remove("a:2"));
  BOOST_TEST(b.answered<removed>(remove("a:1")).sessions == 1u);
  b.tell(remove("a"));
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
  BOOST_TEST(b.states->list().value().empty());
}

BOOST_AUTO_TEST_CASE(a_fork_does_not_take_later_states_of_its_origin_for_its_own) {
  disk_bench b;
  b.turn("s", {1}, "a");
  (void)b.answered<done>(fork_of("s", "t"));
  b.turn("s", {2}, "b", tokens_t{1, 2});
  const auto o = b.opened("t");
  (void)b.ask<turn_committed>(b.commit_of(o, {3}, "c"));
  b.tell(state_kept{o.key, nullptr});
  const auto next = b.opened("t");  // version 2 of both
  BOOST_TEST((*next.resume.state == *state_after(tokens_t{1})));
  BOOST_TEST(next.resume.feed == tokens_t({3}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_deleted_version_stays_only_for_versions_that_continue_it) {
  disk_bench b;
  b.three_turns("a");
  auto keyed = b.question("a", "d");
  keyed.from = 1;
  keyed.request_key = "once";
  const auto o = b.ask<session_opened>(keyed);  // 4, after 1
  auto c = b.commit_of(o, {4}, "d");
  c.version.request_key = "once";
  (void)b.ask<turn_committed>(std::move(c));
  b.tell(state_kept{o.key, state_after(tokens_t{1, 4})});
  b.pass(3s);
  BOOST_TEST(b.answered<removed>(removal_of("a:1")).sessions == 1u);
  BOOST_TEST(b.on_disk() == 3u);
  b.again();
  for (const auto& v : b.described("a").versions) BOOST_TEST(v->deleted == (v->id == 1u));
  b.tell(removal_of("a:1"));
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
  auto from = b.question("a");
  from.from = 1;
  b.tell(from);
  BOOST_TEST(b.refusal().field == "from_version");
  b.tell(fork_of("a", "x", 1));
  BOOST_TEST(b.refusal().field == "version");
  b.tell(rollback_session{{0, 1}, named("a"), 1});
  BOOST_TEST(b.refusal().field == "version");
  BOOST_TEST((b.opened("a:1").state == session_state::fresh));
  b.goes_on_after("a", {1, 4});
  BOOST_TEST(b.described("a", true).versions.front()->text == "a");  // the text is theirs too
  // Its own state is gone, so it is made again where it is needed.
  (void)b.answered<done>(rollback_session{{0, 1}, named("a"), 2});
  b.goes_on_after("a", {1, 2});
  // Of the versions below the head none is left.
  b.answered<removed>(removal_of("a:2"));
  BOOST_TEST(b.described("a").session.record.head == 0u);
  b.answered<removed>(removal_of("a:3"));  // with it goes 2, which was there for it alone
  auto left = b.described("a");
  BOOST_TEST(left.versions.size() == 2u);
  BOOST_TEST(left.session.record.versions == 2u);
  b.answered<removed>(removal_of("a:4"));
  b.tell(removal_of("a"));
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
  BOOST_TEST(b.on_disk() == 0u);
}

BOOST_AUTO_TEST_CASE(a_branch_that_a_fork_continues_leaves_it_its_state) {
  disk_bench b;
  b.three_turns("s");
  (void)b.answered<done>(fork_of("s", "t"));
  b.answered<removed>(removal_of("s:3"));
  b.answered<removed>(removal_of("s:1"));
  BOOST_TEST(b.on_disk() == 3u);
  b.again();
  b.goes_on_after("t", {1, 2, 3});
  b.goes_on_after("s", {1, 2});
  // In the fork too, a branch takes with it what it was the last to have.
  b.answered<removed>(removal_of("t:1"));
  BOOST_TEST(b.on_disk() == 2u);
  b.answered<removed>(removal_of("t:3"));
  BOOST_TEST(b.on_disk() == 1u);
  b.again();
  b.goes_on_after("t", {1, 2});
}
