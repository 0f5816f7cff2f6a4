// Shows what a tenant may store: sessions, versions and bytes are counted as they are made, imported, forked and
// removed, also over restarts, and what exceeds a limit is refused with the setting's name. And that titles and
// metadata leave memory with their sessions.
#include <boost/test/unit_test.hpp>

#include "tests/actors/persistence/keeper_bench.hpp"

using namespace skein;
using namespace skein::test;

namespace {

struct quota_bench : keeper_bench {
  explicit quota_bench(const config::session_settings& settings) {
    options.sessions = settings;
    open();
  }
  label_session making(const std::string& id) {
    label_session m{{0, 1}, named(id), "title", {}};
    m.make = true;
    return m;
  }
  void remove(const std::string& id) {
    BOOST_TEST(answered<removed>(remove_session{{0, 1}, named(id)}).sessions == 1u);
  }
  template <typename Message>
  void refused_for(const std::string& key, Message m) {
    tell(std::move(m));
    const error why = refusal();
    BOOST_TEST((why.kind == error_kind::no_space));
    BOOST_TEST(why.message.find("sessions." + key) != std::string::npos, why.message);
  }
  storage::stored_amount counted() {
    sessions->publish();
    return {counters.stored_sessions, counters.stored_versions, counters.stored_bytes};
  }
  /// What the store has is what was counted.
  void agrees() {
    storage::stored_amount all;
    for (const auto& [tenant, amount] : storage::session_store(db).amounts().value()) all = all + amount;
    BOOST_TEST((counted() == all));
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_tenant_has_a_limit_of_sessions) {
  quota_bench b({.tenant_sessions_max = 2});
  b.turn("a", {1}, "x");
  (void)b.answered<done>(b.making("b"));
  const std::string file = b.answered<session_bytes>(export_session{{0, 1}, named("a"), true}).file;
  b.refused_for("tenant_sessions_max", b.question("c"));
  b.refused_for("tenant_sessions_max", b.making("c"));
  b.refused_for("tenant_sessions_max", fork_session{{0, 1}, named("a"), named("c"), {}});
  b.refused_for("tenant_sessions_max", import_session{{0, 1}, named("c"), file});
  b.refused_for("tenant_sessions_max", b.question("a:1"));  // which would begin there
  b.agrees();
  // What is there goes on, and may be replaced.
  b.turn("a", {2}, "y");
  b.turn("b", {2}, "y");
  (void)b.answered<done>(import_session{{0, 1}, named("b"), file, true});
  // Another tenant has room of its own.
  auto other = b.question("c");
  other.session.tenant = "other";
  const auto o = b.ask<session_opened>(other);
  (void)b.ask<turn_committed>(b.commit_of(o, {1}, "x"));
  b.agrees();

  b.remove("a");
  b.turn("c", {1}, "x");
  b.refused_for("tenant_sessions_max", b.question("d"));
  b.remove("c");
  const auto running = b.opened("d");  // one that is about to be
  b.refused_for("tenant_sessions_max", b.question("e"));
  b.tell(release{running.reply, running.lease});
  b.turn("e", {1}, "x");
  b.sessions->change({});
  b.turn("f", {1}, "x");
  b.agrees();
}

BOOST_AUTO_TEST_CASE(a_tenant_has_a_limit_of_versions) {
  quota_bench b({.tenant_versions_max = 3});
  b.turn("a", {1}, "x");
  b.turn("a", {2}, "y");
  b.refused_for("tenant_versions_max", fork_session{{0, 1}, named("a"), named("b"), {}});
  b.turn("a", {3}, "z");
  b.refused_for("tenant_versions_max", b.question("a"));
  b.refused_for("tenant_versions_max", b.question("c"));
  (void)b.answered<done>(b.making("c"));  // has none
  (void)b.answered<removed>(remove_session{{0, 1}, named("a:3")});
  b.turn("c", {1}, "x");
  b.agrees();
}

BOOST_AUTO_TEST_CASE(a_tenant_has_a_limit_of_bytes) {
  quota_bench b({.tenant_bytes_max = 2000});
  b.turn("a", {1}, std::string(1200, 'x'));
  BOOST_TEST(b.counted().bytes >= 2000u);  // a turn is as long as it is
  b.refused_for("tenant_bytes_max", b.question("a"));
  b.refused_for("tenant_bytes_max", b.making("b"));
  b.refused_for("tenant_bytes_max", label_session{{0, 1}, named("a"), {}, storage::session_metadata{{"k", "v"}}});
  (void)b.answered<done>(label_session{{0, 1}, named("a"), "x", {}});  // shorter than the one before
  b.agrees();
  b.remove("a");
  BOOST_TEST((b.counted() == storage::stored_amount{}));
  b.turn("b", {1}, "x");
}

BOOST_AUTO_TEST_CASE(counts_are_the_same_after_a_restart) {
  quota_bench b({.tenant_sessions_max = 100});
  for (const char* id : {"a", "b", "c"}) b.turn(id, {1, 2, 3}, "some text");
  b.turn("a", {4}, "more");
  (void)b.answered<done>(fork_session{{0, 1}, named("a"), named("d"), {}});
  b.remove("b");
  (void)b.answered<removed>(remove_session{{0, 1}, named("d:2")});
  b.pass(3s);
  const auto before = b.counted();
  BOOST_TEST(before.sessions == 3u);
  BOOST_TEST(before.versions == 4u);
  BOOST_TEST(b.counters.largest_sessions == 3u);
  b.agrees();
  b.crash();
  b.options.sessions.tenant_sessions_max = 3;
  b.counters.stored_sessions = b.counters.largest_sessions = 0;
  b.open();
  BOOST_TEST(b.counters.stored_sessions == 3u);  // before anything is asked
  BOOST_TEST(b.counters.largest_sessions == 3u);
  BOOST_TEST((b.counted() == before));
  b.refused_for("tenant_sessions_max", b.question("e"));
  for (const char* id : {"a", "c", "d"}) b.remove(id);
  BOOST_TEST((b.counted() == storage::stored_amount{}));
  b.agrees();
}

BOOST_AUTO_TEST_CASE(titles_and_metadata_count_as_texts_in_memory) {
  keeper_bench b;
  b.options.sessions.tree_bytes_max = 1 << 20;
  b.open();
  storage::session_metadata large;
  for (int i = 0; i < 16; ++i) large.emplace_back("name" + std::to_string(i), std::string(512, 'v'));
  for (int i = 0; i < 500; ++i) {
    label_session making{{0, 1}, {default_tenant, "s" + std::to_string(i)}, std::string(256, 't'), large};
    making.make = true;
    (void)b.answered<done>(std::move(making));
    b.pass(50ms);
  }
  b.sessions->publish();
  BOOST_TEST(b.counters.tree_bytes <= 1u << 20);
  BOOST_TEST(b.counters.open_sessions <= 128u);
  // What left memory is read again.
  BOOST_TEST((b.described("s0").session.record.metadata == large));
  b.sessions->publish();
  const std::size_t before = b.counters.tree_bytes;
  (void)b.answered<done>(label_session{{0, 1}, {default_tenant, "s0"}, "short", storage::session_metadata{}});
  b.sessions->publish();
  BOOST_TEST(b.counters.tree_bytes + 16 * 512 <= before);
}
