// Shows what the persistence actor does about sessions, one rule a case, over a real database: turns and leases, states
// on their way, retries, broken answers, forks, removal, and what a crash leaves.
#include "actors/persistence/keeper/session_keeper.hpp"

#include <boost/test/unit_test.hpp>

#include "storage/database/database_impl.hpp"
#include "storage/sessions/session_store.hpp"
#include "tests/actors/persistence/keeper_bench.hpp"

using namespace skein;
using namespace skein::test;

namespace {

using tokens_t = std::vector<token_id>;

remove_session removal_of(const std::string& id, bool with_prefix = false) { return {{0, 1}, named(id), with_prefix}; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_turn_is_durable_when_it_says_so) {
  opened_bench b;
  const auto o = b.opened("s");
  BOOST_TEST((o.state == session_state::fresh));
  BOOST_TEST(o.number == 1u);
  BOOST_TEST(o.resume.state == nullptr);
  BOOST_TEST(o.resume.feed.empty());
  const auto done = b.ask<turn_committed>(b.commit_of(o, {1, 2, 3}, "abc"));
  BOOST_TEST(done.version == 1u);
  BOOST_TEST((done.durable == durability::process));
  b.crash();
  b.open();
  const auto again = b.opened("s");
  BOOST_TEST((again.state == session_state::continued));
  BOOST_TEST(again.base == 1u);
  BOOST_TEST(again.resume.state == nullptr);  // it was never sent; so the tokens are fed
  BOOST_TEST(again.resume.feed == tokens_t({1, 2, 3}), boost::test_tools::per_element());
  auto c = b.commit_of(again, {4}, "d");
  c.wanted = durability::power;
  BOOST_TEST((b.ask<turn_committed>(std::move(c)).durable == durability::power));
}

BOOST_AUTO_TEST_CASE(a_state_serves_the_next_turn_from_ram_and_after_an_orderly_end_from_disk) {
  opened_bench b;
  b.turn("s", {1, 2, 3}, "abc");
  auto o = b.opened("s");
  BOOST_REQUIRE(o.resume.state != nullptr);
  BOOST_TEST((*o.resume.state == *state_after(tokens_t{1, 2, 3})));
  BOOST_TEST(o.resume.feed.empty());
  BOOST_TEST(o.resume.cached_tokens == 3u);
  b.tell(release{o.reply, o.lease});
  b.end();
  b.open();
  o = b.opened("s");
  BOOST_REQUIRE(o.resume.state != nullptr);
  BOOST_TEST((*o.resume.state == *state_after(tokens_t{1, 2, 3})));
  BOOST_TEST(b.sessions->disk_works());
}

BOOST_AUTO_TEST_CASE(a_state_that_comes_before_the_commit_counts_after_it) {
  opened_bench b;
  auto o = b.opened("s");
  b.tell(state_kept{o.key, state_after(tokens_t{1})});
  (void)b.ask<turn_committed>(b.commit_of(o, {1}, "a"));
  auto next = b.opened("s");
  BOOST_TEST(next.resume.state != nullptr);
  // A turn that fails leaves no state, and its late state has no owner, although the number is given out again.
  b.tell(state_kept{next.key, state_after(tokens_t{9, 9, 9})});
  b.tell(release{next.reply, next.lease});
  const auto third = b.opened("s");
  BOOST_TEST(third.number == next.number);
  BOOST_TEST((third.key != next.key));
  b.tell(state_kept{next.key, state_after(tokens_t{9, 9, 9})});
  (void)b.ask<turn_committed>(b.commit_of(third, {2}, "b"));
  b.tell(state_kept{next.key, state_after(tokens_t{9, 9, 9})});
  b.tell(state_kept{third.key, state_after(tokens_t{1, 2})});
  const auto fourth = b.opened("s");
  BOOST_REQUIRE(fourth.resume.state != nullptr);
  BOOST_TEST((*fourth.resume.state == *state_after(tokens_t{1, 2})));
}

BOOST_AUTO_TEST_CASE(a_turn_waits_for_the_state_of_the_one_before) {
  opened_bench b;
  b.turn("s", {1}, "a");
  auto o = b.opened("s");
  (void)b.ask<turn_committed>(b.commit_of(o, {2}, "b"));
  b.tell(b.question("s"));
  BOOST_TEST(b.silent());
  b.tell(state_kept{o.key, state_after(tokens_t{1, 2})});
  auto next = b.take<session_opened>();
  BOOST_TEST((*next.resume.state == *state_after(tokens_t{1, 2})));
  // One that will not come costs feeding what lies between.
  (void)b.ask<turn_committed>(b.commit_of(next, {3}, "c"));
  b.tell(b.question("s"));
  b.tell(state_kept{next.key, nullptr});
  o = b.take<session_opened>();
  BOOST_TEST((*o.resume.state == *state_after(tokens_t{1, 2})));
  BOOST_TEST(o.resume.feed == tokens_t({3}), boost::test_tools::per_element());
  BOOST_TEST(o.resume.cached_tokens == 2u);
  // So does a state that never arrives.
  (void)b.ask<turn_committed>(b.commit_of(o, {4}, "d"));
  b.tell(b.question("s"));
  b.pass(5s);
  BOOST_TEST(b.silent());
  b.pass(6s);
  BOOST_TEST(b.take<session_opened>().resume.feed == tokens_t({3, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(one_turn_writes_others_wait_in_order) {
  opened_bench b;
  const auto first = b.opened("s");
  auto second = b.question("s"), third = b.question("s");
  b.tell(second);
  b.tell(third);
  BOOST_TEST(b.silent());
  (void)b.ask<turn_committed>(b.commit_of(first, {1}, "a"));
  b.tell(state_kept{first.key, state_after(tokens_t{1})});
  const auto o = b.take<session_opened>();
  BOOST_TEST(o.reply.number == second.reply.number);
  BOOST_TEST(o.base == 1u);
  b.tell(release{o.reply, 0});  // as one does who has not seen the answer yet
  BOOST_TEST(b.take<session_opened>().reply.number == third.reply.number);
  // One that leaves while it waits, and one whose time is over.
  auto fourth = b.question("s"), fifth = b.question("s");
  b.tell(fourth);
  b.tell(fifth);
  b.tell(release{fourth.reply, 0});
  b.pass(2min);
  const auto late = b.take<refused>();
  BOOST_TEST(late.reply.number == fifth.reply.number);
  BOOST_TEST((late.why.kind == error_kind::timeout));
  BOOST_TEST(b.silent());
}

BOOST_AUTO_TEST_CASE(too_many_waiters_and_busy_sessions_are_refused) {
  keeper_bench b;
  b.options.sessions.waiters_max = 1;
  b.open();
  const auto first = b.opened("s");
  b.tell(b.question("s"));
  b.tell(b.question("s"));
  BOOST_TEST((b.refusal().kind == error_kind::overloaded));
  b.close();
  b.options.sessions.busy = "refuse";
  b.open();
  (void)b.opened("s");
  b.tell(b.question("s"));
  const auto why = b.refusal();
  BOOST_TEST((why.kind == error_kind::conflict));
  BOOST_TEST(why.message == "session busy");
  for (auto* m : {"rollback", "remove"}) {
    if (m == std::string("rollback"))
      b.tell(rollback_session{{0, 1}, named("s"), 0});
    else
      b.tell(removal_of("s"));
    const auto kind = b.refusal().kind;
    BOOST_TEST((kind == error_kind::conflict || kind == error_kind::not_found));
  }
}

BOOST_AUTO_TEST_CASE(a_session_is_made_by_its_first_turn_and_by_nothing_else) {
  opened_bench b;
  const auto o = b.opened("s");
  note_running note{o.lease, {}, "a"};
  note.so_far.tokens = tokens_t(40, 1);
  b.tell(note);
  BOOST_TEST(b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "", 10}).sessions.empty());
  b.tell(release{o.reply, o.lease});
  b.tell(describe_session{{0, 1}, named("s"), false, {}});
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
  b.crash();
  b.open();
  b.tell(describe_session{{0, 1}, named("s"), false, {}});
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
  auto q = b.question("s");
  q.must_exist = true;
  b.tell(q);
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
}

BOOST_AUTO_TEST_CASE(a_retry_is_answered_once_also_after_a_crash) {
  opened_bench b;
  auto q = b.question("s");
  q.request_key = "key-1";
  const auto o = b.ask<session_opened>(q);
  b.tell(q);  // the client's library is impatient: this one waits
  auto c = b.commit_of(o, {1}, "a");
  c.version.request_key = "key-1";
  (void)b.ask<turn_committed>(std::move(c));
  BOOST_TEST(b.take<session_replayed>().version.id == 1u);
  q.expected_version = 0;  // true when it was first sent
  BOOST_TEST(b.ask<session_replayed>(q).version.answer == "answer");
  b.crash();
  b.open();
  const auto replayed = b.ask<session_replayed>(q);
  BOOST_TEST(replayed.version.text == "a");
  BOOST_TEST((replayed.durable == durability::process));
  BOOST_TEST(b.described("s").versions.size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_interrupted_answer_can_continue_after_a_crash) {
  for (const bool first_turn : {true, false}) {
    opened_bench b;
    if (!first_turn) b.turn("s", {1}, "a");
    const auto o = b.opened("s");
    note_running note{o.lease, {}, "segment"};
    note.so_far.tokens = tokens_t(20, 5);
    note.so_far.text = "half an answer";
    b.tell(note);
    note.so_far.tokens.push_back(6);  // too little to be noted at once
    b.tell(note);
    if (first_turn) b.pass(300ms);  // but noted after a while
    b.crash();
    b.open();
    auto q = b.question("s");
    q.continue_unfinished = true;
    const auto again = b.ask<session_opened>(q);
    BOOST_REQUIRE(again.unfinished.has_value());
    BOOST_TEST(again.unfinished->text == "half an answer");
    BOOST_TEST(again.unfinished->tokens.size() == (first_turn ? 21u : 20u));
    BOOST_TEST(again.unfinished->unfinished);
    BOOST_TEST(again.base == (first_turn ? 0u : 1u));
    BOOST_TEST(again.number == again.base + 2);
    b.tell(release{again.reply, again.lease});
    BOOST_TEST(b.described("s").session.record.head == again.base);
    BOOST_TEST(b.described("s").versions.size() == again.base + 1);
  }
}

BOOST_AUTO_TEST_CASE(a_session_that_was_made_before_its_first_turn_keeps_what_a_crash_left_of_it) {
  opened_bench b;
  label_session making{{0, 1}, named("s"), "a title", storage::session_metadata{{"topic", "weather"}}};
  making.make = true;
  BOOST_TEST(b.answered<done>(making).session.versions == 0u);
  b.crash();
  b.open();
  const auto o = b.opened("s");
  BOOST_TEST(o.number == 1u);
  storage::version_record half;
  half.tokens = tokens_t(20, 5);
  half.text = "half an answer";
  b.tell(note_running{o.lease, half, "segment"});
  b.crash();
  b.open();
  auto q = b.question("s");
  q.continue_unfinished = true;
  const auto again = b.ask<session_opened>(q);  // its model is known
  BOOST_REQUIRE(again.unfinished.has_value());
  BOOST_TEST(again.unfinished->text == "half an answer");
  (void)b.ask<turn_committed>(b.commit_of(again, {8}, "whole"));
  const auto record = b.described("s").session.record;
  BOOST_TEST(record.title == "a title");
  BOOST_TEST(record.metadata.size() == 1u);
  BOOST_TEST(record.model_identity == b.model);
}

BOOST_AUTO_TEST_CASE(a_drained_answer_is_a_version_and_not_the_head) {
  opened_bench b;
  b.turn("s", {1}, "a");
  const auto o = b.opened("s");
  auto c = b.commit_of(o, {2, 3}, "bc");
  c.version.unfinished = true;
  c.version.stop_reason = "drain";
  BOOST_TEST(b.ask<turn_committed>(std::move(c)).version == 2u);
  b.tell(state_kept{o.key, nullptr});
  BOOST_TEST(b.described("s").session.record.head == 1u);
  b.end();
  b.open();
  auto q = b.question("s");
  q.continue_unfinished = true;
  const auto again = b.ask<session_opened>(q);
  BOOST_TEST(again.unfinished->stop_reason == "drain");
  BOOST_TEST(again.base == 1u);
}

BOOST_AUTO_TEST_CASE(removal_leaves_nothing_in_any_tier) {
  opened_bench b;
  b.turn("s", {1}, "a");
  b.turn("s:x", {1}, "a");
  b.turn("s:", {1}, "a");
  b.turn("sx", {1}, "a");
  b.pass(2s);  // states are on disk
  BOOST_TEST(b.states->list()->size() == 4u);
  BOOST_TEST(b.answered<removed>(removal_of("s")).sessions == 1u);
  BOOST_TEST(b.forgotten.size() == 1u);
  BOOST_TEST(b.states->list()->size() == 3u);
  b.tell(removal_of("s"));
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
  BOOST_TEST(b.answered<removed>(removal_of("s", true)).sessions == 2u);
  BOOST_TEST(b.states->list()->size() == 1u);
  BOOST_TEST((b.opened("s").state == session_state::fresh));
  BOOST_TEST(b.answered<removed>(removal_of("nobody", true)).sessions == 0u);
  b.crash();
  b.open();
  BOOST_TEST(b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "", 10}).sessions.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_state_that_is_being_written_does_not_outlive_its_session) {
  opened_bench b;
  b.turn("s", {1}, "a");
  b.time.advance(2s);
  b.sessions->tick();  // the write is queued, not run
  BOOST_REQUIRE(b.runner.jobs.size() == 1u);
  b.sessions->handle(removal_of("s"));
  b.sessions->handle(b.question("s"));  // waits for the end of the old one
  BOOST_TEST(b.silent());
  b.pump();
  BOOST_TEST(std::get<removed>(b.take<answer>().body).sessions == 1u);
  BOOST_TEST((b.take<session_opened>().state == session_state::fresh));
  BOOST_TEST(b.states->list()->empty());
}

BOOST_AUTO_TEST_CASE(a_state_that_comes_while_its_session_goes_does_not_stay) {
  opened_bench b;
  const auto o = b.opened("s");
  (void)b.ask<turn_committed>(b.commit_of(o, {1}, "a"));
  b.sessions->handle(removal_of("s"));
  b.sessions->handle(state_kept{o.key, state_after(tokens_t{1})});
  b.time.advance(2s);
  b.pump();
  BOOST_TEST(std::get<removed>(b.take<answer>().body).sessions == 1u);
  b.pass(3s);
  b.sessions->publish();
  BOOST_TEST(b.counters.sessions.ram == 0u);
  BOOST_TEST(b.counters.sessions.disk == 0u);
  BOOST_TEST(b.states->list()->empty());
}

BOOST_AUTO_TEST_CASE(histories_and_increments_find_their_place) {
  opened_bench b;
  const std::string one = "User: a\n\nAssistant: x";
  b.turn("s", {1, 2}, one);
  auto q = b.question("s", one + "\n\nUser: b", turn_text::chat_messages);
  q.opening_follows = true;
  auto o = b.ask<session_opened>(q);
  BOOST_TEST(o.base == 1u);
  BOOST_TEST(o.history_from == one.size());
  b.tell(release{o.reply, o.lease});
  q = b.question("s", "User: else\n\nAssistant: x\n\nUser: b", turn_text::chat_messages);
  o = b.ask<session_opened>(q);
  BOOST_TEST((o.state == session_state::rebuilt));
  BOOST_TEST(o.base == 0u);
  BOOST_TEST(o.resume.state == nullptr);
}

BOOST_AUTO_TEST_CASE(another_models_session_is_refused_with_both_named) {
  opened_bench b;
  b.turn("s", {1}, "a");
  b.end();
  b.model = "model-b";
  b.open();
  b.tell(b.question("s"));
  const auto why = b.refusal();
  BOOST_TEST((why.kind == error_kind::conflict));
  BOOST_TEST(why.field == "model");
  BOOST_TEST(why.message.find("model-a") != std::string::npos);
  BOOST_TEST(why.message.find("model-b") != std::string::npos);
  b.turn("t", {1}, "a");  // and touches no other session
}

BOOST_AUTO_TEST_CASE(two_models_in_turns_each_keep_their_sessions_and_states) {
  opened_bench b;
  b.end();
  b.second_model = "model-b";
  for (int opening = 0; opening < 2; ++opening) {
    b.open();
    for (const std::string model : {"model-a", "model-b"}) {
      b.model = model;
      const std::string mine = "of " + model, other = model == "model-a" ? "of model-b" : "of model-a";
      if (opening > 0) {
        b.tell(b.question(other));
        BOOST_TEST(b.refusal().field == "model");
        const auto o = b.opened(mine);  // its state was written, and is read, as that of its own model
        BOOST_TEST(o.resume.state != nullptr);
        BOOST_TEST(o.resume.feed.empty());
        b.tell(release{o.reply, o.lease});
      }
      b.turn(mine, {1, 2}, "ab");
    }
    b.second_model = "model-a";  // the one that runs is b
    b.sessions->publish();
    BOOST_TEST(b.counters.sessions.load_failures == 0u);
    BOOST_TEST(b.counters.sessions.write_failures == 0u);
    b.end();
  }
}

BOOST_AUTO_TEST_CASE(lists_come_in_pages_and_status_by_use) {
  opened_bench b;
  for (int i = 0; i < 25; ++i) b.turn("s" + std::to_string(10 + i), {1}, "a"), b.pass(5ms);
  std::string after;
  std::size_t pages = 0, total = 0;
  for (bool more = true; more; ++pages) {
    const auto page = b.answered<session_list>(list_sessions{{0, 1}, default_tenant, after, 10});
    total += page.sessions.size();
    more = page.more;
    after = page.sessions.back().record.key.id;
    BOOST_TEST((page.sessions.front().fastest == tier::ram));
  }
  BOOST_TEST(pages == 3u);
  BOOST_TEST(total == 25u);
  const auto report = b.answered<tiers_report>(tiers_status{{0, 1}, default_tenant});
  BOOST_TEST(report.sessions.size() == 25u);
  BOOST_TEST(report.total == 25u);
  BOOST_TEST(report.sessions.front().record.key.id == "s34");
  BOOST_TEST(report.ram == 25u);
}

BOOST_AUTO_TEST_CASE(a_status_counts_more_sessions_than_it_lists) {
  opened_bench b;
  for (int i = 0; i < 10'005; ++i) {
    label_session make{{0, 1}, named("s" + std::to_string(i)), std::nullopt, std::nullopt, true};
    b.sessions->handle(std::move(make));
  }
  b.replies.all.clear();
  const auto report = b.answered<tiers_report>(tiers_status{{0, 1}, default_tenant});
  BOOST_TEST(report.sessions.size() == 10'000u);
  BOOST_TEST(report.total == 10'005u);
  BOOST_TEST(b.answered<tiers_report>(tiers_status{{0, 1}, "nobody"}).total == 0u);
}

BOOST_AUTO_TEST_CASE(a_page_is_full_also_where_first_turns_run) {
  opened_bench b;
  for (const char* id : {"a", "b"}) {
    const auto o = b.opened(id);
    note_running n{o.lease, {}};
    n.so_far.tokens = tokens_t(20, 1);
    b.tell(std::move(n));  // the log has the session, and it is none yet
  }
  b.turn("c", {1}, "a");
  b.turn("d", {1}, "a");
  const auto first = b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "", 1});
  BOOST_REQUIRE(first.sessions.size() == 1u);
  BOOST_TEST(first.sessions[0].record.key.id == "c");
  BOOST_TEST(first.more);
  const auto rest = b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "c", 5});
  BOOST_TEST(rest.sessions.size() == 1u);
  BOOST_TEST(!rest.more);
}

BOOST_AUTO_TEST_CASE(a_transcript_has_the_texts_of_its_path) {
  opened_bench b;
  b.turn("s", {1}, "a");
  b.turn("s", {2}, "b", tokens_t{1, 2});
  const auto tree = b.described("s");
  BOOST_TEST(tree.versions.size() == 2u);
  const auto script = b.described("s", true);
  BOOST_TEST(script.versions[1]->text == "b");
  BOOST_TEST(script.versions[1]->messages.size() == 1u);
  BOOST_TEST(script.versions[1]->total_tokens == 2u);
}

BOOST_AUTO_TEST_CASE(a_damaged_state_costs_feeding_its_tokens) {
  opened_bench b;
  b.turn("s", {1, 2}, "ab");
  b.end();
  {
    auto db = storage::database::open({.directory = b.folder.path() / "db"});
    const model::state_layout other{.layers = 2, .embd = 4};
    storage::state_store store(*db, other, "model-a", dtype::f32);
    const auto key = store.list()->at(0).key;
    BOOST_REQUIRE(store.put({"model-a", default_tenant, key, 2},
                            model::state_of(other, std::vector<float>(16))));  // of another shape
  }
  b.open();
  const auto o = b.opened("s");
  BOOST_TEST(o.resume.state == nullptr);
  BOOST_TEST(o.resume.feed == tokens_t({1, 2}), boost::test_tools::per_element());
  BOOST_TEST(b.counters.sessions.load_failures == 0u);  // not published yet
  b.sessions->publish();
  BOOST_TEST(b.counters.sessions.load_failures == 1u);
}

BOOST_AUTO_TEST_CASE(unused_sessions_age) {
  keeper_bench b;
  b.options.sessions.session_age_max_s = 60;
  b.open();
  b.turn("old", {1}, "a");
  b.pass(50s);
  b.turn("young", {1}, "a");
  b.pass(15s);
  const auto list = b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "", 10});
  BOOST_REQUIRE(list.sessions.size() == 1u);
  BOOST_TEST(list.sessions[0].record.key.id == "young");
}

BOOST_AUTO_TEST_CASE(a_changed_clock_removes_nothing_until_time_has_passed) {
  keeper_bench b;
  b.options.sessions.session_age_max_s = 60;
  b.open();
  b.turn("s", {1}, "a");
  const auto sessions = [&] {
    return b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "", 100}).sessions.size();
  };
  constexpr std::int64_t year = 365LL * 24 * 3600 * 1000;
  b.pass(1s);
  b.ms += year;
  for (int i = 0; i < 10; ++i) b.pass(61s);
  BOOST_TEST(sessions() == 1u);
  b.ms -= year;  // it was used
  for (int i = 0; i < 40; ++i) {
    b.turn("s", {2}, "b");
    b.pass(59s);
  }
  BOOST_TEST(sessions() == 1u);
  b.ms += year;
  for (int i = 0; i < 70; ++i) b.pass(61s);
  BOOST_TEST(sessions() == 0u);
}

BOOST_AUTO_TEST_CASE(many_old_sessions_go_without_all_coming_into_memory) {
  keeper_bench b;
  b.options.sessions.session_age_max_s = 60;
  b.options.sessions.tree_bytes_max = 1 << 20;
  b.open();
  for (int i = 0; i < 40; ++i) b.turn("s" + std::to_string(i), {1}, std::string(1 << 20, 'x'));
  std::size_t most = 0;
  for (int i = 0; i < 200; ++i) {
    b.time.advance(1s);
    b.ms += 1000;
    b.sessions->tick();  // and what it leaves to be done comes later
    b.sessions->publish();
    most = std::max<std::size_t>(most, b.counters.tree_bytes);
    b.pump();
  }
  BOOST_TEST(b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "", 100}).sessions.empty());
  BOOST_TEST(most < 40u << 20);
}

BOOST_AUTO_TEST_CASE(sessions_of_tenants_not_seen_since_the_start_age_too) {
  keeper_bench b;
  b.options.sessions.session_age_max_s = 60;
  b.open();
  for (const char* tenant : {"other", "a", "long name"}) {
    auto q = b.question("old");
    q.session.tenant = tenant;
    const auto o = b.ask<session_opened>(q);
    b.ask<turn_committed>(b.commit_of(o, {1}, "a"));
    b.tell(state_kept{o.key, nullptr});
  }
  b.end();
  b.open();
  BOOST_TEST((storage::session_store(b.db).tenants().value() == std::vector<tenant_id>{"a", "other", "long name"}));
  b.pass(130s);
  BOOST_TEST(storage::session_store(b.db).tenants().value().empty());
}

BOOST_AUTO_TEST_CASE(a_device_without_room_hears_of_a_removal_later) {
  keeper_bench b;
  b.open();
  b.turn("s", {1}, "a");
  b.device_full = true;
  BOOST_TEST(b.answered<removed>(remove_session{{0, 1}, {default_tenant, "s"}}).sessions == 1u);
  BOOST_TEST(b.forgotten.empty());
  BOOST_TEST((b.sessions->next_wake() <= b.time.now() + 20ms));
  b.pass(20ms);
  b.device_full = false;
  b.pass(20ms);
  b.pass(20ms);
  BOOST_TEST(b.forgotten.size() == 1u);
}

BOOST_AUTO_TEST_CASE(deletions_are_written_to_files_soon_so_that_space_comes_back) {
  keeper_bench b;
  b.open();
  const auto in_memory = [&] {
    std::uint64_t entries = 0;
    auto& db = b.db->internals();
    const auto handle = db.handles[static_cast<std::size_t>(storage::family::state_index)];
    BOOST_REQUIRE(db.db->GetIntProperty(handle, "rocksdb.num-entries-active-mem-table", &entries));
    return entries;
  };
  b.turn("s", {1}, "a");
  b.pass(70s);
  BOOST_TEST(in_memory() > 0u);  // nothing was deleted
  b.answered<removed>(remove_session{{0, 1}, {default_tenant, "s"}});
  b.pass(70s);
  BOOST_TEST(in_memory() == 0u);
}

BOOST_AUTO_TEST_CASE(without_a_folder_everything_is_memory_and_has_a_ceiling) {
  keeper_bench b(true);
  b.options.sessions.unsaved_bytes_max = 4000;
  b.open();
  for (int i = 0; i < 20; ++i)
    BOOST_TEST((b.turn("s" + std::to_string(i), {1}, std::string(400, 'x')).durable == durability::memory));
  const auto list = b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "", 100});
  BOOST_TEST(list.sessions.size() >= 2u);
  BOOST_TEST(list.sessions.size() <= 5u);
  BOOST_TEST((b.opened("s19").state == session_state::continued));
  BOOST_TEST((b.opened("s0").state == session_state::fresh));
}
