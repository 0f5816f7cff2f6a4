// Shows what a repair recovers of a database of which a file of any kind is damaged or missing: sessions that were not
// in it come back to the byte, what is lost is listed by name, what was deleted stays deleted, and the old database
// stays beside the new one as it was.
#include "storage/repair/repair.hpp"

#include <boost/test/unit_test.hpp>

#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table_properties.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "storage/database/database_impl.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/repair/verify.hpp"
#include "storage/sessions/session_store.hpp"
#include "storage/states/state_store.hpp"
#include "tests/storage/outcomes.hpp"
#include "tests/storage/random_records.hpp"
#include "tests/storage/small_disk.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using namespace skein::storage;
namespace fs = std::filesystem;

namespace {

using test::large_layout;
using test::succeed;

constexpr std::uint32_t batches = 3, sessions_of_batch = 12;

std::map<std::string, std::string> contents_of(const fs::path& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::directory_iterator(folder))
    all[entry.path().filename()] = test::content_of(entry.path());
  all.erase("LOCK");
  return all;
}

/// Sessions in three batches, each in table files of its own but for the last, which is in the log; a session of the
/// first was deleted since. Each session has a small state, some a large one too, and there are prefixes.
struct written_store {
  test::temporary_folder folder;
  test::random_cases random;
  std::vector<test::random_tree> trees;
  model::state_value small = test::random_state(random, test::small_layout());
  model::state_value large = test::random_state(random, large_layout());
  std::string deleted = "session 0";

  written_store() {
    for (std::uint32_t batch = 0; batch < batches; ++batch) {
      const auto db = test::opened(directory());
      write_batch(db, batch);
      if (batch + 1 < batches) succeed(db->flush());
    }
    trees.erase(trees.begin());
  }
  fs::path directory() const { return database_directory(folder.path()); }

  void write_batch(const std::shared_ptr<database>& db, std::uint32_t batch) {
    session_store store(db);
    state_store states(db, test::small_layout(), "small", dtype::f32);
    state_store large_states(db, large_layout(), "large", dtype::f32);
    for (std::uint32_t i = 0; i < sessions_of_batch; ++i) {
      auto tree = test::random_tree_of(random, store.new_uid().value(), "session " + std::to_string(trees.size()), 4);
      tree.session.key.tenant = i % 3 == 0 ? "alice" : default_tenant;
      succeed(store.commit(tree.session, tree.versions, false));
      succeed(states.put({"small", tree.session.key.tenant, {tree.session.uid, 4}, 1}, small));
      if (i % 4 == 0) succeed(large_states.put({"large", tree.session.key.tenant, {tree.session.uid, 3}, 1}, large));
      trees.push_back(std::move(tree));
    }
    const std::vector<token_id> tokens{1, 2, static_cast<token_id>(batch)};
    succeed(states.put_prefix({"small", "alice", {0, batch + 1}, 3}, tokens, "", small));
    succeed(large_states.put_prefix({"large", "alice", {0, batch + 11}, 3}, tokens, "", large));
    if (batch + 1 == batches) succeed(store.remove(trees.front().session));
  }

  /// Files that end or begin so, the oldest first.
  std::vector<fs::path> files(const std::string& kind) const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(directory())) {
      const std::string name = entry.path().filename();
      if (name.ends_with(kind) || name.starts_with(kind)) all.push_back(entry.path());
    }
    std::ranges::sort(all);
    return all;
  }
  /// Tables of a family, the oldest first.
  std::vector<fs::path> tables(family of) const {
    std::vector<fs::path> all;
    for (const auto& path : files(".sst")) {
      rocksdb::SstFileReader reader{rocksdb::Options()};
      BOOST_REQUIRE(reader.Open(path.string()).ok());
      if (reader.GetTableProperties()->column_family_name == to_string(of)) all.push_back(path);
    }
    return all;
  }
  void refuses_to_open() const {
    const auto opened = database::open({.directory = directory()});
    BOOST_TEST(!opened);
  }
};

void overwrite(const fs::path& path, std::uint64_t at, std::uint64_t bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(at));
  file << std::string(bytes, '\x5a');
}

struct repaired {
  repair_report report;
  std::set<std::string> touched;  ///< sessions of the list of what is lost
  std::size_t whole = 0, shorter = 0, answered_as_damaged = 0;
};

/// A session that the list does not name is as it was; one that it names has some of its versions, or is damaged.
void look_at(const written_store& in, session_store& store, const test::random_tree& tree, repaired& so_far) {
  const auto& key = tree.session.key;
  const bool touched = so_far.touched.contains("session '" + key.id + "' of tenant '" + key.tenant + "'") ||
                       so_far.touched.contains("session number " + std::to_string(tree.session.uid));
  const auto found = store.find(key);
  if (!found) {
    BOOST_TEST(to_string(found.error().kind) == "damaged");
    BOOST_TEST(touched, key.id << " is lost without a word");
    ++so_far.answered_as_damaged;
    return;
  }
  if (!*found) {
    BOOST_TEST(touched, key.id << " is gone without a word");
    return;
  }
  const auto versions = store.versions((*found)->uid);
  BOOST_REQUIRE_MESSAGE(versions, key.id << ": " << versions.error().message);
  for (const auto& version : *versions) BOOST_TEST((version == tree.versions[version.id - 1]));
  const bool whole = **found == tree.session && *versions == tree.versions;
  ++(whole ? so_far.whole : so_far.shorter);
  BOOST_TEST((whole || touched), key.id << " is shorter without a word");
  (void)in;
}

repaired repair_and_look(const written_store& in) {
  const auto before = contents_of(in.directory());
  const auto planned = repair(in.folder.path(), true);
  BOOST_REQUIRE_MESSAGE(planned, (planned ? "" : planned.error().message));
  BOOST_TEST((contents_of(in.directory()) == before));
  auto done = repair(in.folder.path(), false);
  BOOST_REQUIRE_MESSAGE(done, (done ? "" : done.error().message));
  BOOST_TEST(planned->lost_count == done->lost_count);
  BOOST_TEST(planned->sessions == done->sessions);
  BOOST_REQUIRE(!done->aside.empty());
  BOOST_TEST((contents_of(done->aside) == before));
  BOOST_TEST(!fs::exists(in.directory().string() + ".repair"));

  repaired all{std::move(*done), {}};
  for (const auto& one : all.report.lost) all.touched.insert(one.what);
  {
    const auto db = test::opened(in.directory());
    session_store store(db);
    for (const auto& tree : in.trees) look_at(in, store, tree, all);
    const auto verified = verify(*db);
    BOOST_REQUIRE(verified);
    for (const auto& one : verified->damaged) BOOST_ERROR(one.record << ": " << one.why);
    BOOST_TEST(verified->sessions == all.report.sessions);
    BOOST_TEST(verified->states == all.report.states);
    BOOST_TEST(verified->prefixes == all.report.prefixes);
    const auto next = store.new_uid().value();
    for (const auto& tree : in.trees) BOOST_TEST(next > tree.session.uid);
  }
  const auto again = repair(in.folder.path(), false);
  BOOST_REQUIRE(again);
  BOOST_TEST(again->sound());
  BOOST_TEST(again->aside.empty());
  return all;
}

void expect_deleted(const written_store& in) {
  session_store store(test::opened(in.directory()));
  for (const auto* tenant : {"alice", "default"}) BOOST_TEST(!store.find({tenant, in.deleted}).value());
}

bool names(const repair_report& report, const std::string& file) {
  return report.trouble.find(fs::path(file).stem().string()) != std::string::npos ||
         std::ranges::any_of(report.files, [&](const auto& one) { return one.what == file; });
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_sound_database_stays_as_it_is) {
  const written_store in;
  const auto before = contents_of(in.directory());
  const auto report = repair(in.folder.path(), false);
  BOOST_REQUIRE_MESSAGE(report, report.error().message);
  BOOST_TEST(report->sound());
  for (const auto& one : report->lost) BOOST_ERROR(one.what << ": " << one.why);
  BOOST_TEST(report->sessions == in.trees.size());
  BOOST_TEST(report->states == in.trees.size() + batches * 3 - 1);
  BOOST_TEST(report->prefixes == 2 * batches);
  BOOST_TEST((contents_of(in.directory()) == before));
}

BOOST_AUTO_TEST_CASE(without_its_lists_of_files_everything_comes_back) {
  for (const std::string kind : {"CURRENT", "MANIFEST-", "both", "cut"}) {
    BOOST_TEST_CONTEXT(kind) {
      const written_store in;
      for (const auto* name : {"CURRENT", "MANIFEST-"})
        if (kind == name || kind == "both") fs::remove(in.files(name).back());
      if (kind == "cut") overwrite(in.files("MANIFEST-").back(), 20, 200);
      in.refuses_to_open();
      const auto got = repair_and_look(in);
      BOOST_TEST(got.report.lost_count == 0u);
      BOOST_TEST(got.whole == in.trees.size());
      BOOST_TEST(got.report.prefixes == 2 * batches);
      expect_deleted(in);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_table_that_is_missing_costs_what_was_in_it) {
  for (const bool cut : {false, true}) {
    const written_store in;
    const auto tables = in.tables(family::versions);
    BOOST_REQUIRE(tables.size() >= 2u);
    const auto& table = tables[1];  // of the second batch
    cut ? fs::resize_file(table, 100) : (void)fs::remove(table);
    in.refuses_to_open();
    const auto got = repair_and_look(in);
    BOOST_TEST(names(got.report, table.filename()), got.report.trouble << " lacks " << table.filename());
    BOOST_TEST(got.whole == in.trees.size() - sessions_of_batch);
    BOOST_TEST(got.answered_as_damaged == sessions_of_batch);
    expect_deleted(in);
  }
}

BOOST_AUTO_TEST_CASE(versions_whose_session_is_lost_are_kept_under_a_name_of_their_tenant) {
  const written_store in;
  fs::remove(in.tables(family::sessions)[1]);
  in.refuses_to_open();
  const auto got = repair_and_look(in);
  BOOST_TEST(got.whole == in.trees.size() - sessions_of_batch);
  const auto db = test::opened(in.directory());
  session_store store(db);
  std::size_t kept = 0;
  for (const auto& tree : in.trees) {
    const session_key name{tree.session.key.tenant, "recovered-" + std::to_string(tree.session.uid)};
    const auto found = store.find(name).value();
    if (!found) continue;
    ++kept;
    BOOST_TEST((store.versions(found->uid).value() == tree.versions));
    BOOST_TEST((found->model_identity == "small" || found->model_identity == "large"));
  }
  BOOST_TEST(kept == sessions_of_batch);
}

BOOST_AUTO_TEST_CASE(damaged_blocks_cost_what_was_in_them) {
  for (const family of : {family::versions, family::sessions, family::state_index}) {
    const written_store in;
    const auto table = in.tables(of)[1];
    overwrite(table, of == family::versions ? fs::file_size(table) / 3 : 200, 20);
    const auto got = repair_and_look(in);
    BOOST_TEST(names(got.report, table.filename()));
    if (of == family::versions) BOOST_TEST(got.shorter + got.answered_as_damaged <= 3u);
    if (of == family::state_index) BOOST_TEST(got.whole == in.trees.size());
    expect_deleted(in);
  }
}

BOOST_AUTO_TEST_CASE(a_damaged_blob_file_costs_states_alone) {
  for (const std::string how : {"missing", "cut", "value", "header"}) {
    BOOST_TEST_CONTEXT(how) {
      const written_store in;
      const auto file = in.files(".blob").back();
      if (how == "missing") fs::remove(file);
      if (how == "cut") fs::resize_file(file, fs::file_size(file) / 2);
      if (how == "value") overwrite(file, fs::file_size(file) / 2, 10);
      if (how == "header") overwrite(file, 30, 16);
      const auto got = repair_and_look(in);
      BOOST_TEST(got.whole == in.trees.size());
      BOOST_TEST(got.report.lost_count > 0u);
      for (const auto& one : got.report.lost) BOOST_TEST(one.what.starts_with("state of "), one.what);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_damaged_log_costs_what_was_hit) {
  const written_store in;
  const auto log = in.files(".log").back();
  overwrite(log, fs::file_size(log) / 2, 8);
  fs::remove(in.files("CURRENT").back());
  in.refuses_to_open();
  const auto got = repair_and_look(in);
  BOOST_TEST(names(got.report, log.filename()));
  BOOST_TEST(got.whole >= in.trees.size() - 3);
}

BOOST_AUTO_TEST_CASE(where_nothing_can_be_read_nothing_is_replaced) {
  const written_store in;
  for (const auto& entry : fs::directory_iterator(in.directory()))
    overwrite(entry.path(), 0, fs::file_size(entry.path()));
  const auto before = contents_of(in.directory());
  const auto report = repair(in.folder.path(), false);
  BOOST_REQUIRE(!report);
  BOOST_TEST(to_string(report.error().kind) == "damaged");
  BOOST_TEST(report.error().message.find("nothing") != std::string::npos, report.error().message);
  BOOST_TEST((contents_of(in.directory()) == before));
}

BOOST_AUTO_TEST_CASE(a_database_in_use_or_none_is_refused) {
  const written_store in;
  const test::temporary_folder empty;
  BOOST_TEST(to_string(repair(empty.path(), false).error().kind) == "missing_file");
  const auto server = test::opened(in.directory());
  for (const bool dry_run : {false, true}) {
    const auto report = repair(in.folder.path(), dry_run);
    BOOST_REQUIRE(!report);
    BOOST_TEST(to_string(report.error().kind) == "in_use");
  }
}

BOOST_AUTO_TEST_CASE(what_a_repair_that_died_left_is_removed) {
  const written_store in;
  fs::remove(in.files("MANIFEST-").back());
  const fs::path left = in.directory().string() + ".repair";
  fs::create_directories(left / "made");
  std::ofstream(left / "made" / "000001.sst") << "half of it";
  fs::create_directories(left / "remains" / "lost");
  const auto got = repair_and_look(in);
  BOOST_TEST(got.whole == in.trees.size());
}

BOOST_AUTO_TEST_CASE(a_disk_that_becomes_full_ends_the_repair, *boost::unit_test::precondition(test::may_mount)) {
  const written_store in;
  const test::small_disk disk("48");
  fs::copy(in.folder.path(), disk.path(), fs::copy_options::recursive);
  const fs::path directory = database_directory(disk.path());
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().filename().string().starts_with("MANIFEST-")) fs::remove(entry.path());
  const auto before = contents_of(directory);
  std::uint32_t full = 0;
  for (std::uintmax_t room = 0; room < 1u << 21; room = room * 5 / 4 + (1u << 12)) {
    disk.fill(room);
    const auto ended = repair(disk.path(), true);
    if (!ended) BOOST_TEST(to_string(ended.error().kind) == "no_space", ended.error().message);
    if (ended && !ended->files.empty())  // an intact file was taken for a damaged one
      BOOST_ERROR(ended->files.front().what << ": " << ended->files.front().why);
    full += !ended;
    BOOST_TEST((contents_of(directory) == before));
    disk.free();
  }
  BOOST_TEST(full > 0u);
  const auto report = repair(disk.path(), false);
  BOOST_REQUIRE_MESSAGE(report, report.error().message);
  BOOST_TEST(report->lost_count == 0u);
}

BOOST_AUTO_TEST_CASE(a_turn_that_was_set_aside_does_not_keep_its_session_from_coming_back) {
  written_store in;
  const auto& tree = in.trees[20];
  {
    const auto db = test::opened(in.directory());
    succeed(db->internals().write(safety::logged, [&](change_list& changes) {
      changes.put(family::versions, keys::of_version(tree.session.uid, 4), "torn");
    }));
    session_store store(db);
    BOOST_TEST(!store.versions(tree.session.uid));  // sets it aside
  }
  const auto got = repair_and_look(in);
  BOOST_TEST(got.shorter == 1u);
  BOOST_TEST(got.whole == in.trees.size() - 1);
}
