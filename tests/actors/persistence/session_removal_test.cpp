// Shows that the sessions of a prefix are removed a few at a time, while turns of others go on, and which sessions stay
// without their turns.
#include "tests/actors/persistence/keeper_bench.hpp"

BOOST_AUTO_TEST_SUITE(removal_by_prefix)

using namespace skein;
using namespace skein::test;

namespace {

/// "ID" and all sessions whose names begin with "ID:".
remove_session all_of(const std::string& id) { return {{0, 1}, named(id), true}; }

}  // namespace

BOOST_AUTO_TEST_CASE(many_sessions_are_removed_without_all_coming_into_memory) {
  keeper_bench b;
  b.options.sessions.tree_bytes_max = 1 << 20;
  b.open();
  for (int i = 0; i < 50; ++i) b.turn("s:" + std::to_string(i), {1}, std::string(1 << 20, 'x'));
  for (int i = 0; i < 500; ++i) b.turn("s:" + std::to_string(1000 + i), {1}, "a");
  b.turn("t", {1}, "a");
  b.turn("s;", {1}, "a");
  b.pass(1s);  // the trees leave memory
  std::size_t most = 0, turns = 0;
  b.sessions->handle(all_of("s"));
  do {
    b.time.advance(20ms);
    b.sessions->tick();
    b.sessions->publish();
    most = std::max<std::size_t>(most, b.counters.tree_bytes);
    if (!b.silent()) break;
    b.sessions->handle(b.question("t"));  // turns of others go on meanwhile
    const auto o = b.take<session_opened>();
    b.sessions->handle(release{o.reply, o.lease});
    ++turns;
  } while (b.runner.step());
  BOOST_TEST(std::get<removed>(b.take<answer>().body).sessions == 550u);
  BOOST_TEST(most < 20u << 20);
  BOOST_TEST(turns >= 5u);
  BOOST_TEST(b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "", 1000}).sessions.size() == 2u);
  b.pass(2s);
  BOOST_TEST(b.states->list()->size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_removal_by_prefix_stops_at_a_turn_that_runs) {
  opened_bench b;
  for (int i = 0; i < 300; ++i) b.turn("s:" + std::to_string(100 + i), {1}, "a");
  const auto left = [&] {
    return b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "", 1000}).sessions.size();
  };
  const auto o = b.opened("s:399");
  b.tell(all_of("s"));
  BOOST_TEST(b.refusal().field == "session_id");
  BOOST_TEST(left() == 300u);  // it was noticed before the first one was removed
  b.tell(release{o.reply, o.lease});
  b.sessions->handle(all_of("s"));
  b.sessions->handle(b.question("s:399"));
  BOOST_TEST((b.take<session_opened>().state == session_state::continued));
  b.pump();
  BOOST_TEST(b.refusal().field == "session_id");
  BOOST_TEST(left() > 0u);
  BOOST_TEST(left() < 300u);
}

BOOST_AUTO_TEST_CASE(the_longest_name_may_be_a_prefix) {
  opened_bench b;
  const std::string longest(storage::session_id_bytes_max, 'n');
  b.turn(longest, {1}, "a");
  BOOST_TEST(b.answered<removed>(all_of(longest)).sessions == 1u);
}

BOOST_AUTO_TEST_CASE(sessions_that_are_being_removed_make_no_others_go) {
  keeper_bench b(true);  // without a disk the oldest sessions go when their bytes are too many
  b.options.sessions.unsaved_bytes_max = 256 << 10;
  b.open();
  const auto kept = [&] {
    return b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "", 1000}).sessions.size();
  };
  const std::string text(1 << 10, 'x');
  std::size_t made = 0;
  for (; made < 500; ++made) b.turn(std::to_string(made), {1}, text);
  const std::size_t before = kept();
  BOOST_TEST(before < 500u);
  for (int i = 0; i < 20; ++i) {  // no removal ends meanwhile
    b.sessions->handle(b.question(std::to_string(made++)));
    const auto o = b.take<session_opened>();
    b.sessions->handle(b.commit_of(o, {1}, text));
    b.take<turn_committed>();
  }
  b.pump();
  BOOST_TEST(kept() + 2 >= before);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(removal_of_the_last_version)

using namespace skein;
using namespace skein::test;

namespace {

void make(keeper_bench& b, const std::string& id, std::optional<std::string> title = {}) {
  label_session making{{0, 1}, named(id), std::move(title), storage::session_metadata{{"topic", "weather"}}};
  making.make = true;
  (void)b.answered<done>(making);
}

/// Removes a version by its name.
void remove_version(keeper_bench& b, const std::string& id) {
  BOOST_TEST(b.answered<removed>(remove_session{{0, 1}, named(id)}).sessions == 1u);
}

storage::session_record record_of(keeper_bench& b, const std::string& id) { return b.described(id).session.record; }

void reopen(keeper_bench& b) {
  if (!b.on_disk) return;
  b.end();
  b.open();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_session_that_was_made_without_turns_is_then_as_before_the_first) {
  for (const bool in_memory : {false, true}) {
    keeper_bench b(in_memory);
    b.open();
    make(b, "s");
    const auto before = record_of(b, "s");
    const auto stored = b.counters.tree_bytes.load();
    b.turn("s", {1}, "My secret.");
    BOOST_TEST(record_of(b, "s").title == "My secret.");
    b.pass(2s);
    remove_version(b, "s:1");
    auto after = record_of(b, "s");
    BOOST_TEST(after.last_version == 1u);  // numbers are not given out again
    after.last_version = before.last_version;
    after.used_ms = before.used_ms;
    BOOST_TEST((after == before));
    b.pass(2s);
    BOOST_TEST(b.counters.tree_bytes.load() == stored);
    BOOST_TEST(b.states->list()->empty());
    reopen(b);
    BOOST_TEST(record_of(b, "s").metadata.size() == 1u);
    const auto o = b.opened("s");
    BOOST_TEST((o.state == session_state::fresh));
    BOOST_TEST(o.number == 2u);
    BOOST_TEST(o.base == storage::beginning);
    BOOST_TEST(o.resume.feed.empty());
    (void)b.ask<turn_committed>(b.commit_of(o, {2}, "again"));
    BOOST_TEST(record_of(b, "s").head == 2u);
    remove_version(b, "s:2");
    reopen(b);
    BOOST_TEST(record_of(b, "s").versions == 0u);
    BOOST_TEST(b.answered<removed>(remove_session{{0, 1}, named("s")}).sessions == 1u);
    BOOST_TEST(b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "", 1000}).sessions.empty());
  }
}

BOOST_AUTO_TEST_CASE(a_title_of_the_client_stays_and_forks_keep_the_turn) {
  opened_bench b;
  make(b, "s", "a title");
  b.turn("s", {1}, "a");
  b.turn("s", {2}, "b", tokens_t{1, 2});
  BOOST_TEST(b.answered<done>(fork_session{{0, 1}, named("s"), named("t"), 2}).session.versions == 2u);
  remove_version(b, "s:1");  // is only marked
  BOOST_TEST(record_of(b, "s").versions == 2u);
  remove_version(b, "s:2");
  BOOST_TEST(record_of(b, "s").title == "a title");
  BOOST_TEST(record_of(b, "s").versions == 0u);
  reopen(b);
  BOOST_TEST(record_of(b, "s").versions == 0u);
  BOOST_TEST(b.described("t", true).versions.size() == 2u);
  BOOST_TEST(b.opened("t").base == 2u);
}

BOOST_AUTO_TEST_CASE(a_turn_that_runs_is_busy_by_its_key) {
  opened_bench b;
  const auto removal = [](const std::string& key) {
    remove_session q{{0, 1}, named("s")};
    q.turn = key;
    return q;
  };
  for (const auto* key : {"first", "second"}) {  // of a session that is only being made, and of a stored one
    auto q = b.question("s");
    q.request_key = key;
    const auto o = b.ask<session_opened>(q);
    b.tell(removal(key));
    BOOST_TEST(b.refusal().field == "session_id");
    b.tell(removal("another"));
    BOOST_TEST((b.refusal().kind == error_kind::not_found));
    auto c = b.commit_of(o, {1}, "a");
    c.version.request_key = key;
    (void)b.ask<turn_committed>(c);
    b.tell(state_kept{o.key, nullptr});
  }
  BOOST_TEST(b.answered<removed>(removal("second")).sessions == 1u);
  b.tell(removal("second"));
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
}

BOOST_AUTO_TEST_CASE(a_session_that_began_with_a_turn_goes) {
  opened_bench b;
  b.turn("s", {1}, "a");
  remove_version(b, "s:1");
  describe_session d;
  d.session.id = "s";
  b.tell(d);
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
}

BOOST_AUTO_TEST_SUITE_END()
