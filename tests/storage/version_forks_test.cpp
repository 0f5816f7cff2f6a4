// Shows that forks, which share the versions of their origin, behave like copies: seeded lives of sessions that are
// forked from each other, grow, lose versions and are deleted, against a model with a copy of everything. Also that the
// log has each needed version once and no other, even when a server crashes or its disk fills up between two steps of a
// deletion; that long chains of forks are read fast; and how damage and repair of a database affect forks.
#include "storage/sessions/version_forks.hpp"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <set>

#include "storage/database/database_impl.hpp"
#include "storage/database/quarantine.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/repair/repair.hpp"
#include "storage/repair/verify.hpp"
#include "storage/sessions/session_store.hpp"
#include "tests/storage/fault_file_system.hpp"
#include "tests/storage/outcomes.hpp"
#include "tests/storage/random_records.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using namespace skein::storage;

namespace {

using test::succeed;

std::size_t records_in(database& db, family where, const std::string& first = {}) {
  std::size_t count = 0;
  const auto end = first.empty() ? first : keys::after_all(first);
  succeed(db.internals().scan(where, first, end, [&](auto, auto) { return ++count > 0; }));
  return count;
}

std::size_t marks_in(database& db) {
  std::size_t count = 0;
  for (const auto what : {keys::forks_prefix, keys::stems_prefix, keys::trims_prefix})
    count += records_in(db, family::meta, std::string(what));
  return count;
}

void is_sound(database& db) {
  const auto checked = verify(db);
  BOOST_REQUIRE(checked);
  for (const auto& one : checked->damaged) BOOST_ERROR(one.record << ": " << one.why);
}

/// A session with a copy of all its versions.
struct whole_session {
  session_record record;
  std::map<version_id, version_record> versions;
  std::map<version_id, std::uint64_t> born;  ///< a number for each version; forks share it

  bool is_last(version_id v) const {
    return std::ranges::none_of(versions, [&](const auto& one) { return one.second.parent == v; });
  }
  std::vector<version_record> all() const {
    std::vector<version_record> list;
    for (const auto& [id, v] : versions) list.push_back(v);
    return list;
  }
};

struct forks_bench {
  test::random_cases random;
  test::temporary_folder folder;
  std::shared_ptr<test::fault_file_system> files = std::make_shared<test::fault_file_system>();
  test::fault_environment environment{files};
  std::shared_ptr<database> db;
  std::optional<session_store> store;
  std::vector<whole_session> sessions;
  std::uint64_t births = 0, names = 0;

  forks_bench() { open(); }
  std::filesystem::path directory() const { return database_directory(folder.path()); }
  void open() {
    store.reset();
    db.reset();
    auto opened = database::open({.directory = directory(), .environment = &environment});
    BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
    db = std::move(*opened);
    store.emplace(db);
    store->trim_forks();
  }
  void crash() {
    files->freeze();
    store.reset();
    db.reset();
    files->heal();
    files->thaw();
    open();
  }

  whole_session& begin() {
    whole_session s;
    s.record.uid = store->new_uid().value();
    s.record.key.id = "s" + std::to_string(++names);
    succeed(store->commit(s.record, {}, false));
    return sessions.emplace_back(std::move(s));
  }
  version_id some(const whole_session& s, bool offered = false) {
    std::vector<version_id> all;
    for (const auto& [id, v] : s.versions)
      if (!offered || !v.deleted) all.push_back(id);
    return all.empty() ? beginning : all[random.below(static_cast<std::uint32_t>(all.size()))];
  }
  void grow(whole_session& s, version_id parent) {
    const version_id id = s.record.last_version + 1;
    auto v = test::random_version(random, id, parent);
    v.deleted = false;
    v.tokens.resize(std::min<std::size_t>(v.tokens.size(), 3));
    v.prompt_tokens = 0;
    v.total_tokens = v.tokens.size() + (parent == beginning ? 0 : s.versions.at(parent).total_tokens);
    s.versions[id] = v;
    s.born[id] = ++births;
    s.record.last_version = s.record.head = id;
    count(s);
    succeed(store->commit(s.record, {{v}}, false));
  }
  static void count(whole_session& s) {
    s.record.versions = static_cast<std::uint32_t>(s.versions.size());
    s.record.total_tokens = s.record.head == beginning ? 0 : s.versions.at(s.record.head).total_tokens;
  }
  void fork(std::size_t from, version_id version) {
    whole_session f;
    f.record.uid = store->new_uid().value();
    f.record.key.id = "s" + std::to_string(++names);
    f.record.head = f.record.last_version = version;
    std::vector<version_id> deleted;
    for (version_id at = version; at != beginning; at = f.versions.at(at).parent) {
      f.versions[at] = sessions[from].versions.at(at);
      f.born[at] = sessions[from].born.at(at);
      if (f.versions[at].deleted) deleted.insert(deleted.begin(), at);
    }
    count(f);
    store->fork(f.record.uid, sessions[from].record.uid, version, deleted);
    if (random.below(8) == 0) return store->unfork(f.record.uid);
    // Passing the shared versions to the commit makes no difference.
    succeed(store->commit(f.record, random.below(2) == 0 ? f.all() : std::vector<version_record>(), false));
    sessions.push_back(std::move(f));
  }
  void remove(std::size_t which) {
    succeed(store->remove(sessions[which].record));
    sessions.erase(sessions.begin() + static_cast<std::ptrdiff_t>(which));
  }
  void remove_version(whole_session& s, version_id v) {
    std::vector<version_id> gone;
    std::vector<version_record> marked;
    if (!s.is_last(v)) {
      s.versions.at(v).deleted = true;
      marked.push_back(s.versions.at(v));
    } else {
      do {
        gone.push_back(v);
        v = s.versions.extract(v).mapped().parent;
      } while (v != beginning && s.versions.at(v).deleted && s.is_last(v));
    }
    s.record.head = beginning;
    for (const auto& [id, one] : s.versions)
      if (!one.deleted) s.record.head = id;
    count(s);
    succeed(store->remove_versions(s.record, gone, marked));
  }
  void step() {
    if (sessions.empty()) return void(begin());
    const std::size_t which = random.below(static_cast<std::uint32_t>(sessions.size()));
    whole_session& s = sessions[which];
    switch (random.below(12)) {
      case 0: begin(); break;
      case 1:
      case 2: fork(which, some(s, true)); break;
      case 3: remove(which); break;
      case 4:
      case 5:
        if (const version_id v = some(s, true); v != beginning) remove_version(s, v);
        break;
      case 6: random.below(2) == 0 ? crash() : open(); break;
      default: grow(s, random.below(3) == 0 ? some(s, true) : s.record.head); break;
    }
  }
  /// Each session has the versions of the model, and the log has each of them once and no other.
  void compare() {
    std::set<std::uint64_t> needed;
    for (const auto& s : sessions) {
      const auto versions = store->versions(s.record.uid);
      BOOST_REQUIRE_MESSAGE(versions, (versions ? "" : versions.error().message));
      BOOST_REQUIRE_MESSAGE(*versions == s.all(), s.record.key.id << " is another one");
      for (const auto& [id, born] : s.born)
        if (s.versions.contains(id)) needed.insert(born);
    }
    BOOST_REQUIRE_EQUAL(records_in(*db, family::versions), needed.size());
    is_sound(*db);
  }
  void remove_all() {
    while (!sessions.empty()) remove(random.below(static_cast<std::uint32_t>(sessions.size())));
    BOOST_REQUIRE_EQUAL(records_in(*db, family::versions), 0u);
    BOOST_REQUIRE_EQUAL(marks_in(*db), 0u);
  }
  std::uint64_t format() {
    std::string bytes;
    BOOST_REQUIRE(db->internals().read(family::meta, keys::format, [&](auto value) { bytes = value; }).value());
    return decode_number(bytes, record_kind::database_format).value();
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(forks_are_like_copies_and_the_log_has_each_version_once) {
  for (int life = 0; life < 20; ++life) {
    forks_bench b;
    for (int i = 0; i < 120; ++i) {
      b.step();
      if (i % 8 == 0) b.compare();
    }
    b.compare();
    b.crash();
    b.compare();
    b.remove_all();
  }
}

BOOST_AUTO_TEST_CASE(a_database_has_the_older_format_until_its_first_fork) {
  forks_bench b;
  auto& s = b.begin();
  b.grow(s, beginning);
  b.remove_version(s, 1);
  b.grow(s, beginning);
  BOOST_TEST(b.format() == 1u);
  while (b.sessions.size() < 2) b.fork(0, 2);
  BOOST_TEST(b.format() == 2u);
  b.open();
  b.compare();
}

BOOST_AUTO_TEST_CASE(a_chain_of_forks_is_read_fast_and_goes_with_its_last) {
  forks_bench b;
  b.grow(b.begin(), beginning);
  constexpr version_id depth = 1000;
  while (b.sessions.size() < depth) {
    const std::size_t last = b.sessions.size() - 1;
    b.fork(last, b.sessions[last].record.head);
    if (b.sessions.size() > last + 1) b.grow(b.sessions.back(), b.sessions.back().record.head);
  }
  const auto read = [&] {
    const auto began = std::chrono::steady_clock::now();
    const auto versions = b.store->versions(b.sessions.back().record.uid);
    const auto took = std::chrono::steady_clock::now() - began;
    BOOST_REQUIRE_MESSAGE(versions, (versions ? "" : versions.error().message));
    BOOST_TEST((*versions == b.sessions.back().all()));
    BOOST_TEST(std::chrono::duration_cast<std::chrono::milliseconds>(took).count() < 500);
  };
  read();
  b.open();
  read();
  while (b.sessions.size() > 1) b.remove(0);
  read();
  BOOST_TEST(records_in(*b.db, family::versions) == depth);
  b.open();
  read();
  b.remove_all();
}

BOOST_AUTO_TEST_CASE(a_fork_that_came_to_no_commit_keeps_nothing) {
  for (const bool crashes : {true, false}) {
    forks_bench b;
    b.begin();
    for (int i = 0; i < 5; ++i) b.grow(b.sessions[0], b.sessions[0].record.head);
    const auto fork = b.store->new_uid().value();
    b.store->fork(fork, b.sessions[0].record.uid, 3, {});
    b.remove(0);
    BOOST_TEST(records_in(*b.db, family::versions) == 3u);
    BOOST_TEST(b.store->versions(fork).value().size() == 3u);
    if (crashes)
      b.crash();
    else
      b.store->unfork(fork);
    BOOST_TEST(records_in(*b.db, family::versions) == 0u);
    if (!crashes) b.open();
    BOOST_TEST(marks_in(*b.db) == 0u);
  }
}

BOOST_AUTO_TEST_CASE(what_only_a_deleted_fork_needed_goes_with_it) {
  for (const bool origin_lives : {true, false}) {
    forks_bench b;
    b.begin();
    for (int i = 0; i < 5; ++i) b.grow(b.sessions[0], b.sessions[0].record.head);
    while (b.sessions.size() < 2) b.fork(0, 5);
    b.grow(b.sessions[1], 2);  // a sibling of 3, which this fork shares too
    while (b.sessions.size() < 3) b.fork(1, 6);
    BOOST_TEST(b.sessions[2].versions.size() == 3u);
    if (!origin_lives) b.remove(0);
    b.compare();
    if (origin_lives)  // its last versions
      for (const version_id v : {5u, 4u, 3u}) b.remove_version(b.sessions[0], v);
    b.compare();
    b.remove(origin_lives ? 1 : 0);
    BOOST_TEST(records_in(*b.db, family::versions) == 3u);
    b.compare();
    b.remove_all();
  }
}

BOOST_AUTO_TEST_CASE(a_fork_that_drops_what_it_shares_lets_its_origin_go) {
  forks_bench b;
  b.begin();
  for (int i = 0; i < 5; ++i) b.grow(b.sessions[0], b.sessions[0].record.head);
  while (b.sessions.size() < 2) b.fork(0, 5);
  b.grow(b.sessions[1], 2);
  while (b.sessions.size() < 3) b.fork(1, 6);
  b.remove(0);
  for (const version_id v : {5u, 4u, 3u}) {
    b.remove_version(b.sessions[0], v);
    BOOST_TEST(records_in(*b.db, family::versions) == v);  // version 6 included
    b.compare();
  }
  b.crash();
  b.compare();
  b.remove_all();
}

BOOST_AUTO_TEST_CASE(a_deletion_that_was_cut_short_is_finished_by_the_next_start) {
  std::set<std::size_t> outcomes;
  for (std::uint32_t writes = 1; writes < 8; ++writes) {
    forks_bench b;
    auto& s = b.begin();
    for (int i = 0; i < 5; ++i) b.grow(s, b.sessions[0].record.head);
    while (b.sessions.size() < 2) b.fork(0, 2);
    while (b.sessions.size() < 3) b.fork(1, 1);
    b.grow(b.sessions[1], 2);
    b.files->plan({.kind = test::fault_kind::no_space, .first = writes, .count = 1'000'000});
    std::size_t removed = 0;
    for (; removed < 2 && b.store->remove(b.sessions[removed].record); ++removed) {
    }
    b.sessions.erase(b.sessions.begin(), b.sessions.begin() + static_cast<std::ptrdiff_t>(removed));
    b.crash();
    // A refused write may still have reached the disk.
    std::erase_if(b.sessions, [&](const auto& one) { return !b.store->find(one.record.key).value(); });
    outcomes.insert(b.sessions.size());
    b.compare();
    b.remove_all();
  }
  BOOST_TEST(outcomes.size() == 3u);  // none, one and both were deleted
}

BOOST_AUTO_TEST_CASE(what_a_failed_deletion_may_have_written_is_taken_back_with_the_next_commit) {
  forks_bench b;
  auto& s = b.begin();
  for (int i = 0; i < 5; ++i) b.grow(s, b.sessions[0].record.head);
  while (b.sessions.size() < 2) b.fork(0, 4);
  b.grow(b.sessions[1], 4);
  while (b.sessions.size() < 3) b.fork(1, 5);
  for (const std::size_t which : {0u, 1u}) {
    b.files->plan({.kind = test::fault_kind::no_space, .first = 1, .count = 1'000'000});
    const auto before = b.sessions[which];
    BOOST_TEST(!b.store->remove(before.record));
    BOOST_TEST(!b.store->remove_versions(before.record, std::vector<version_id>{5, 4}, {}));
    b.files->heal();
    for (int i = 0; i < 1000 && !b.db->probe(); ++i) continue;
    succeed(b.store->commit(before.record, before.all(), false));
    b.compare();
    b.crash();
    b.compare();
  }
  b.remove_all();
}

BOOST_AUTO_TEST_CASE(a_damaged_version_costs_the_forks_that_have_it_and_no_other) {
  forks_bench b;
  auto& s = b.begin();
  for (int i = 0; i < 5; ++i) b.grow(s, b.sessions[0].record.head);
  while (b.sessions.size() < 2) b.fork(0, 4);
  while (b.sessions.size() < 3) b.fork(0, 2);
  const std::string key = keys::of_version(b.sessions[0].record.uid, 3);
  succeed(b.db->internals().write(safety::logged,
                                  [&](change_list& changes) { changes.put(family::versions, key, "no version"); }));
  for (const bool again : {false, true}) {
    for (const std::size_t which : {1u, 0u}) {
      const auto versions = b.store->versions(b.sessions[which].record.uid);
      BOOST_REQUIRE(!versions);
      BOOST_TEST((versions.error().kind == error_kind::damaged));
    }
    BOOST_TEST((b.store->versions(b.sessions[2].record.uid).value() == b.sessions[2].all()));
    if (!again) b.open();
  }
  // Versions that a fork may need stay, and all are deleted in the end.
  b.remove(0);
  BOOST_TEST((b.store->versions(b.sessions[1].record.uid).value() == b.sessions[1].all()));
  b.remove(0);
  b.remove_all();
}

BOOST_AUTO_TEST_CASE(a_damaged_origin_costs_its_fork_alone) {
  forks_bench b;
  auto& s = b.begin();
  for (int i = 0; i < 3; ++i) b.grow(s, b.sessions[0].record.head);
  while (b.sessions.size() < 2) b.fork(0, 3);
  const std::string key = keys::of_fork(b.sessions[1].record.uid);
  succeed(b.db->internals().write(safety::logged,
                                  [&](change_list& changes) { changes.put(family::meta, key, "no origin"); }));
  BOOST_TEST(verify(*b.db).value().damaged_count > 0u);
  for (int opened = 0; opened < 2; ++opened) {
    b.open();
    const auto versions = b.store->versions(b.sessions[1].record.uid);
    BOOST_REQUIRE(!versions);
    BOOST_TEST((versions.error().kind == error_kind::damaged));
    BOOST_TEST((b.store->versions(b.sessions[0].record.uid).value() == b.sessions[0].all()));
  }
  b.remove_all();
}

BOOST_AUTO_TEST_CASE(a_repaired_database_has_its_forks_again) {
  for (int life = 0; life < 8; ++life) {
    forks_bench b;
    for (int i = 0; i < 80; ++i) {
      b.step();
      if (i == 40) succeed(b.db->flush());
    }
    b.store.reset();
    b.db.reset();
    const auto looked = repair(b.folder.path(), true);
    BOOST_REQUIRE(looked);
    BOOST_TEST(looked->sound());
    std::filesystem::remove(b.directory() / "CURRENT");
    const auto repaired = repair(b.folder.path(), false);
    BOOST_REQUIRE_MESSAGE(repaired, (repaired ? "" : repaired.error().message));
    BOOST_TEST(repaired->lost_count == 0u);
    b.open();
    b.compare();
    b.remove_all();
  }
}

BOOST_AUTO_TEST_CASE(a_repair_names_the_forks_that_lost_a_version_and_keeps_the_others) {
  forks_bench b;
  auto& s = b.begin();
  for (int i = 0; i < 5; ++i) b.grow(s, b.sessions[0].record.head);
  while (b.sessions.size() < 2) b.fork(0, 4);
  while (b.sessions.size() < 3) b.fork(0, 2);
  b.grow(b.sessions[1], 4);
  b.grow(b.sessions[2], 2);
  b.remove(0);
  const session_uid owner = 1;
  BOOST_REQUIRE(records_in(*b.db, family::versions, keys::of_number(owner)) == 4u);
  succeed(b.db->internals().write(
      safety::logged, [&](change_list& changes) { changes.erase(family::versions, keys::of_version(owner, 3)); }));
  BOOST_TEST(verify(*b.db).value().damaged_count == 1u);
  b.store.reset();
  b.db.reset();
  const auto repaired = repair(b.folder.path(), false);
  BOOST_REQUIRE_MESSAGE(repaired, (repaired ? "" : repaired.error().message));
  BOOST_REQUIRE(repaired->lost_count == 1u);
  BOOST_TEST(repaired->lost.front().what == "session 's2' of tenant 'default'");
  b.open();
  const auto lost = b.store->find(b.sessions[0].record.key);
  BOOST_REQUIRE(!lost);
  BOOST_TEST((lost.error().kind == error_kind::damaged));
  succeed(b.store->forget_damaged(b.sessions[0].record.key));
  b.sessions.erase(b.sessions.begin());
  b.compare();
  b.remove_all();
}
