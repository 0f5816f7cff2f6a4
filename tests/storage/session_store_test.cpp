// Shows that sessions come back from a database as they were committed, in the order of their names, with nothing mixed
// and nothing left after removal, and that a damaged record is set aside alone. On databases in memory and in folders.
#include "storage/sessions/session_store.hpp"

#include <boost/test/unit_test.hpp>
#include <set>

#include "storage/database/database_impl.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/states/state_store.hpp"
#include "tests/storage/outcomes.hpp"
#include "tests/storage/random_records.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using namespace skein::storage;
using test::random_cases;

namespace {

using test::succeed;

std::vector<std::string> ids(const std::vector<session_record>& page) {
  std::vector<std::string> all;
  for (const auto& session : page) all.push_back(session.key.id);
  return all;
}

void commit_empty(session_store& store, session_key key) {
  session_record session;
  session.uid = store.new_uid().value();
  session.key = std::move(key);
  succeed(store.commit(session, {}, false));
}

/// Changes a stored record behind the store's back.
void overwrite(database& db, family where, const std::string& key, const std::string& value) {
  succeed(db.internals().write(safety::logged, [&](change_list& changes) { changes.put(where, key, value); }));
}

std::size_t records_in(database& db, family where) {
  std::size_t count = 0;
  succeed(db.internals().scan(where, {}, {}, [&](auto, auto) { return ++count > 0; }));
  return count;
}

}  // namespace

BOOST_AUTO_TEST_CASE(sessions_and_versions_come_back) {
  random_cases random;
  const test::temporary_folder folder;
  std::vector<test::random_tree> trees;
  for (int opening = 0; opening < 3; ++opening) {
    session_store store(test::opened(folder.path()));
    for (int i = 0; i < 5; ++i) {
      auto tree =
          test::random_tree_of(random, store.new_uid().value(), random.bytes(1 + random.below(256)), random.below(20));
      succeed(store.commit(tree.session, tree.versions, i % 2 == 0));
      trees.push_back(std::move(tree));
    }
    for (const auto& tree : trees) {
      BOOST_TEST((store.find(tree.session.key).value() == tree.session));
      BOOST_TEST((store.versions(tree.session.uid).value() == tree.versions));
    }
  }
  session_store store(test::opened(folder.path()));
  BOOST_TEST(!store.find({default_tenant, "not there"}).value());
  BOOST_TEST(!store.find({"another tenant", trees[0].session.key.id}).value());
  BOOST_TEST(store.versions(12345678).value().empty());
}

BOOST_AUTO_TEST_CASE(running_turns_are_noted_each_by_itself) {
  random_cases random;
  const test::temporary_folder folder;
  const auto db = test::opened(folder.path());
  session_store store(db);
  const auto tree = test::random_tree_of(random, store.new_uid().value(), "s", 2);
  const session_uid uid = tree.session.uid;
  const auto noted = [&] {
    std::vector<version_id> numbers;
    for (const auto& turn : store.running(uid).value()) numbers.push_back(turn.so_far.id);
    return numbers;
  };
  using numbers = std::vector<version_id>;
  const running_turn first{test::random_version(random, 3, 2)}, second{test::random_version(random, 3, 2)},
      beside{test::random_version(random, 4, 1)}, last{test::random_version(random, 300, 2)};
  succeed(store.note_running(uid, first));
  succeed(store.note_running(uid, second));
  BOOST_TEST((store.running(uid).value() == std::vector{second}));
  BOOST_TEST(store.running(uid + 1).value().empty());
  succeed(store.note_running(uid, last));
  succeed(store.note_running(uid, beside));
  succeed(store.note_running(uid + 1, first));
  BOOST_TEST((noted() == numbers{3, 4, 300}));
  // A turn that becomes a version takes its own note along, and one that fails.
  succeed(store.commit(tree.session, {{beside.so_far}}, false));
  BOOST_TEST((noted() == numbers{3, 300}));
  succeed(store.forget_running(uid, 300));
  BOOST_TEST((noted() == numbers{3}));
  // An older program had one note a session.
  overwrite(*db, family::running, keys::of_number(uid), encode_running(uid, beside));
  BOOST_TEST((noted() == numbers{3, 4}));
  overwrite(*db, family::running, keys::of_version(uid, 3), "no note");
  BOOST_TEST((noted() == numbers{4}));
  BOOST_TEST(records_in(*db, family::quarantine) == 1u);
  succeed(store.forget_running(uid));
  BOOST_TEST(noted().empty());
  overwrite(*db, family::running, keys::of_number(uid), encode_running(uid, beside));
  succeed(store.note_running(uid, first));
  succeed(store.remove(tree.session));
  BOOST_TEST(noted().empty());
  BOOST_TEST(records_in(*db, family::running) == 1u);  // of the other session
}

BOOST_AUTO_TEST_CASE(a_version_that_was_refused_goes_unless_its_number_was_given_to_another) {
  random_cases random;
  session_store store(test::opened());
  auto session = test::random_tree_of(random, store.new_uid().value(), "s", 0).session;
  const auto refused = test::random_version(random, 1, 0), other = test::random_version(random, 1, 0),
             later = test::random_version(random, 2, 0);
  succeed(store.commit(session, {{refused}}, false));
  const std::vector<version_id> number{1};
  succeed(store.commit(session, {{later}}, false, number));
  BOOST_TEST((store.versions(session.uid).value() == std::vector{later}));
  succeed(store.commit(session, {{other}}, false, number));
  BOOST_TEST((store.versions(session.uid).value() == std::vector{other, later}));
}

BOOST_AUTO_TEST_CASE(names_of_tenants_and_sessions_do_not_run_together) {
  session_store store(test::opened());
  commit_empty(store, {"a", "bc"});
  commit_empty(store, {"ab", "c"});
  commit_empty(store, {"ab", "ca"});
  BOOST_TEST(store.find({"a", "bc"}).value()->uid != store.find({"ab", "c"}).value()->uid);
  BOOST_TEST(!store.find({"abc", ""}).value());
  BOOST_TEST((ids(store.list("a", {}, 10).value()) == std::vector<std::string>{"bc"}));
  BOOST_TEST((ids(store.list("ab", {}, 10).value()) == std::vector<std::string>{"c", "ca"}));
  BOOST_TEST(store.list("abc", {}, 10).value().empty());
}

BOOST_AUTO_TEST_CASE(a_list_has_every_session_once_in_pages_of_any_size) {
  random_cases random;
  session_store store(test::opened());
  std::set<std::string> names;
  while (names.size() < 50) names.insert(random.bytes(1 + random.below(6)));
  for (const auto& name : names) commit_empty(store, {default_tenant, name});
  commit_empty(store, {"defaulu", "after the tenant"});
  const std::vector<std::string> all(names.begin(), names.end());
  for (const std::uint32_t size : {1u, 7u, 49u, 50u, 51u}) {
    std::vector<std::string> seen;
    for (std::vector<std::string> page(1); !page.empty();) {
      page = ids(store.list(default_tenant, seen.empty() ? "" : seen.back(), size).value());
      BOOST_TEST(page.size() <= size);
      seen.insert(seen.end(), page.begin(), page.end());
    }
    BOOST_TEST((seen == all));
  }
  BOOST_TEST(store.list(default_tenant, {}, 0).value().empty());
}

BOOST_AUTO_TEST_CASE(numbers_of_sessions_are_never_given_out_twice) {
  const test::temporary_folder folder;
  std::set<session_uid> seen;
  for (int opening = 0; opening < 3; ++opening) {
    session_store store(test::opened(folder.path()));
    for (int i = 0; i < 1500; ++i) BOOST_TEST(seen.insert(store.new_uid().value()).second);
  }
  BOOST_TEST(!seen.contains(0));
}

BOOST_AUTO_TEST_CASE(removal_takes_everything_of_one_session_alone) {
  random_cases random;
  const auto db = test::opened();
  session_store store(db);
  state_store states(db, test::small_layout(), "model", dtype::f32);
  const auto state = test::random_state(random, test::small_layout());
  std::vector<test::random_tree> trees;
  for (int i = 0; i < 3; ++i) {
    trees.push_back(test::random_tree_of(random, store.new_uid().value(), "s" + std::to_string(i), 4));
    const auto uid = trees.back().session.uid;
    succeed(store.commit(trees.back().session, trees.back().versions, false));
    succeed(store.note_running(uid, {trees.back().versions[0]}));
    succeed(states.put({"model", default_tenant, {uid, 1}, 5}, state));
  }
  succeed(store.remove(trees[1].session));
  BOOST_TEST(!store.find(trees[1].session.key).value());
  BOOST_TEST(store.versions(trees[1].session.uid).value().empty());
  BOOST_TEST(store.running(trees[1].session.uid).value().empty());
  BOOST_TEST(!states.get({trees[1].session.uid, 1}).value());
  BOOST_TEST(states.list().value().size() == 2u);
  for (const int i : {0, 2}) {
    BOOST_TEST((store.find(trees[i].session.key).value() == trees[i].session));
    BOOST_TEST((store.versions(trees[i].session.uid).value() == trees[i].versions));
    BOOST_TEST(store.running(trees[i].session.uid).value().size() == 1u);
    BOOST_TEST((states.get({trees[i].session.uid, 1}).value()->state == state));
  }
}

BOOST_AUTO_TEST_CASE(a_damaged_session_is_set_aside_alone) {
  random_cases random;
  const auto db = test::opened();
  session_store store(db);
  std::vector<test::random_tree> trees;
  for (int i = 0; i < 3; ++i) {
    trees.push_back(test::random_tree_of(random, store.new_uid().value(), "s" + std::to_string(i), 3));
    succeed(store.commit(trees.back().session, trees.back().versions, false));
  }
  auto bad = encode_session(trees[1].session);
  bad[20] = static_cast<char>(bad[20] ^ 1);
  overwrite(*db, family::sessions, keys::of_session(trees[1].session.key), bad);

  BOOST_TEST((ids(store.list(default_tenant, {}, 10).value()) == std::vector<std::string>{"s0", "s2"}));
  BOOST_TEST(records_in(*db, family::quarantine) == 1u);
  for (int again = 0; again < 2; ++again) {  // never taken for a session that does not exist
    const auto found = store.find(trees[1].session.key);
    BOOST_REQUIRE(!found);
    BOOST_TEST(to_string(found.error().kind) == "damaged");
    BOOST_TEST(found.error().message.find("'s1'") != std::string::npos, found.error().message);
  }
  BOOST_TEST((store.find(trees[0].session.key).value() == trees[0].session));
  succeed(store.forget_damaged(trees[1].session.key));
  BOOST_TEST(!store.find(trees[1].session.key).value());
}

BOOST_AUTO_TEST_CASE(a_damaged_version_spoils_its_session_alone_and_stays_known) {
  random_cases random;
  const test::temporary_folder folder;
  std::vector<test::random_tree> trees;
  {
    const auto db = test::opened(folder.path());
    session_store store(db);
    for (int i = 0; i < 2; ++i) {
      trees.push_back(test::random_tree_of(random, store.new_uid().value(), "s" + std::to_string(i), 3));
      succeed(store.commit(trees.back().session, trees.back().versions, false));
    }
    overwrite(*db, family::versions, keys::of_version(trees[0].session.uid, 2), "no record at all");
    BOOST_TEST(!store.versions(trees[0].session.uid));
  }
  const auto db = test::opened(folder.path());
  session_store store(db);
  const auto again = store.versions(trees[0].session.uid);
  BOOST_REQUIRE(!again);
  BOOST_TEST(to_string(again.error().kind) == "damaged");
  BOOST_TEST((store.versions(trees[1].session.uid).value() == trees[1].versions));
  BOOST_TEST(records_in(*db, family::quarantine) == 1u);
  succeed(store.remove(trees[0].session));
  BOOST_TEST(records_in(*db, family::quarantine) == 0u);
}

BOOST_AUTO_TEST_CASE(a_record_of_another_session_is_seen) {
  random_cases random;
  const auto db = test::opened();
  session_store store(db);
  const auto mine = test::random_tree_of(random, store.new_uid().value(), "mine", 1);
  succeed(store.commit(mine.session, mine.versions, false));
  overwrite(*db, family::sessions, keys::of_session({default_tenant, "yours"}), encode_session(mine.session));
  const auto found = store.find({default_tenant, "yours"});
  BOOST_REQUIRE(!found);
  BOOST_TEST(to_string(found.error().kind) == "damaged");
  overwrite(*db, family::versions, keys::of_version(mine.session.uid, 2),
            encode_version(mine.session.uid, mine.versions[0]));
  BOOST_TEST(!store.versions(mine.session.uid));
}

BOOST_AUTO_TEST_CASE(a_record_of_a_newer_format_stays_where_it_is) {
  const auto db = test::opened();
  session_store store(db);
  record_writer out(record_kind::session, format_of(record_kind::session) + 1);
  overwrite(*db, family::sessions, keys::of_session({default_tenant, "new"}), std::move(out).sealed());
  const auto found = store.find({default_tenant, "new"});
  BOOST_REQUIRE(!found);
  BOOST_TEST(to_string(found.error().kind) == "conflict");
  BOOST_TEST(store.list(default_tenant, {}, 10).value().empty());
  BOOST_TEST(records_in(*db, family::sessions) == 1u);
  BOOST_TEST(records_in(*db, family::quarantine) == 0u);
}
