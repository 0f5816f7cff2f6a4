// Shows that damage in the middle of the write-ahead log costs the sessions that it hit and no others: each is whole,
// to the byte, or answered as damaged, and never as it was some turns ago; what was written behind the damage is there,
// and no number of a session is given out twice. SKEIN_FLIPS says how many bits are flipped, one at a time.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "storage/database/database_impl.hpp"
#include "storage/repair/verify.hpp"
#include "storage/sessions/session_store.hpp"
#include "tests/storage/fault_file_system.hpp"
#include "tests/storage/random_records.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using namespace skein::storage;

namespace {

constexpr std::uint32_t sessions = 60, turns = 5, forks = 10;

std::uint32_t flips() {
  const char* const given = std::getenv("SKEIN_FLIPS");
  return given ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10)) : 40;
}

session_record record_at(const test::random_tree& tree, version_id version) {
  auto record = tree.session;
  record.head = record.last_version = record.versions = version;
  record.total_tokens = tree.versions[version - 1].total_tokens;
  return record;
}

/// Turns of many sessions in sequence, and forks that begin between them, in a log of a few hundred KiB that was not
/// flushed to files yet.
struct written_log {
  test::temporary_folder folder;
  test::random_cases random;
  std::vector<test::random_tree> trees;  ///< forks come last
  session_uid last = 0;

  /// A fork of a session at its third version, with one more turn.
  test::random_tree fork(session_store& store, const test::random_tree& from) {
    last = store.new_uid().value();
    test::random_tree made{from.session, {}};
    std::vector<version_id> deleted;
    for (version_id at = 3; at != beginning; at = made.versions.front().parent) {
      made.versions.insert(made.versions.begin(), from.versions[at - 1]);
      if (from.versions[at - 1].deleted) deleted.insert(deleted.begin(), at);
    }
    auto turn = test::random_version(random, 4, 3);
    turn.total_tokens = from.versions[2].total_tokens + turn.tokens.size();
    made.session.uid = last;
    made.session.key.id = "fork of " + from.session.key.id;
    made.session.head = made.session.last_version = 3;
    made.session.versions = static_cast<std::uint32_t>(made.versions.size());
    made.session.total_tokens = from.versions[2].total_tokens;
    store.fork(last, from.session.uid, 3, deleted);
    BOOST_REQUIRE(store.commit(made.session, {}, false));
    made.versions.push_back(turn);
    ++made.session.versions;
    made.session.head = made.session.last_version = 4;
    made.session.total_tokens = turn.total_tokens;
    BOOST_REQUIRE(store.commit(made.session, {{turn}}, false));
    return made;
  }

  written_log() {
    const auto files = std::make_shared<test::fault_file_system>();
    test::fault_environment environment(files);
    const auto db = database::open({.directory = path(), .environment = &environment});
    BOOST_REQUIRE(db);
    session_store store(*db);
    for (std::uint32_t i = 0; i < sessions; ++i) {
      last = store.new_uid().value();
      trees.push_back(test::random_tree_of(random, last, "session " + std::to_string(i), turns));
    }
    std::vector<test::random_tree> forked;
    for (version_id turn = 1; turn <= turns; ++turn) {
      for (auto& tree : trees) {
        const auto record = record_at(tree, turn);
        BOOST_REQUIRE(store.commit(record, std::span(&tree.versions[turn - 1], 1), false));
        tree.session = record;
      }
      for (std::uint32_t i = 0; turn == 3 && i < forks; ++i) forked.push_back(fork(store, trees[10 + i]));
    }
    for (auto& tree : forked) trees.push_back(std::move(tree));
    // A way back changes the record alone.
    trees[7].session.head = 1;
    trees[7].session.total_tokens = trees[7].versions[0].total_tokens;
    BOOST_REQUIRE(store.commit(trees[7].session, {}, false));
    BOOST_REQUIRE(store.remove(trees[8].session));
    for (int i = 0; i < 20; ++i)  // so that this is not the log's end
      BOOST_REQUIRE(store.note_running(trees[0].session.uid, {trees[0].versions[0]}));
    files->freeze();
  }
  std::filesystem::path path() const { return folder.path() / "db"; }
};

std::filesystem::path log_of(const std::filesystem::path& folder) {
  std::filesystem::path largest;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == ".log" && (largest.empty() || file.file_size() > file_size(largest)))
      largest = file.path();
  return largest;
}

struct damaged_copy {
  test::temporary_folder folder;
  std::filesystem::path path = folder.path() / "db";
  damaged_copy(const written_log& original, std::uint64_t at, unsigned bit) {
    std::filesystem::copy(original.path(), path);
    std::fstream file(log_of(path), std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 1 << bit));
  }
};

/// Sessions that are answered as damaged; all others must be as they were.
std::uint32_t hurt_in(const written_log& original, const std::shared_ptr<database>& db) {
  session_store store(db);
  std::uint32_t hurt = 0;
  for (std::uint32_t i = 0; i < original.trees.size(); ++i) {
    const auto& tree = original.trees[i];
    const auto found = store.find(tree.session.key);
    const auto versions = store.versions(tree.session.uid);
    if (i == 8) continue;  // its removal may be what was hit
    if (!found) {
      BOOST_TEST((found.error().kind == error_kind::damaged), found.error().message);
      ++hurt;
      continue;
    }
    BOOST_REQUIRE_MESSAGE(*found, "session " << i << " is lost without a word");
    BOOST_TEST((**found == tree.session), "session " << i << " is as it was at version " << (**found).last_version);
    BOOST_REQUIRE(versions);
    BOOST_TEST((*versions == tree.versions));
  }
  BOOST_TEST(store.new_uid().value() > original.last);
  return hurt;
}

}  // namespace

BOOST_AUTO_TEST_CASE(damage_in_the_middle_of_the_log_costs_those_whom_it_hit) {
  written_log original;
  const auto bytes = static_cast<std::uint32_t>(file_size(log_of(original.path())));
  BOOST_REQUIRE(bytes > (200u << 10));
  std::uint32_t hurt = 0, more = 0;
  for (std::uint32_t run = 0; run < flips(); ++run) {
    const damaged_copy copy(original, original.random.below(bytes / 4 * 3), original.random.below(8));
    const auto db = database::open({.directory = copy.path});
    if (!db) {  // what says the format was hit
      BOOST_TEST((db.error().kind == error_kind::conflict || db.error().kind == error_kind::damaged));
      continue;
    }
    const std::uint32_t now = hurt_in(original, *db);
    BOOST_TEST(now < sessions / 2);
    hurt += now > 0 ? 1 : 0;
    more += now > 1 ? 1 : 0;  // where it is no longer known how long a record is
  }
  BOOST_TEST(hurt > 0u);
  BOOST_TEST(more < hurt / 2);
  BOOST_TEST_MESSAGE(hurt << " of " << flips() << " bits hurt a session, " << more << " of them more than one");
}

BOOST_AUTO_TEST_CASE(what_was_hit_is_named_also_to_who_only_looks) {
  const written_log original;
  const auto bytes = file_size(log_of(original.path()));
  const damaged_copy copy(original, bytes / 3 * 2, 3);
  {
    const auto looked = database::open({.directory = copy.path, .read_only = true});
    BOOST_REQUIRE(looked);
    const auto report = verify(**looked);
    BOOST_REQUIRE(report);
    BOOST_TEST(report->damaged_count > 0u);
  }
  const auto db = database::open({.directory = copy.path});
  BOOST_REQUIRE(db);
  BOOST_TEST(hurt_in(original, *db) > 0u);
  BOOST_TEST(verify(**db).value().set_aside == (**db).internals().log_losses.size());
}

BOOST_AUTO_TEST_CASE(a_log_that_is_cut_short_is_what_it_was_then) {
  const written_log original;
  const test::temporary_folder folder;
  const auto path = folder.path() / "db";
  std::filesystem::copy(original.path(), path);
  std::filesystem::resize_file(log_of(path), file_size(log_of(path)) / 2 + 11);
  const auto db = database::open({.directory = path});
  BOOST_REQUIRE(db);
  BOOST_TEST((**db).internals().log_losses.empty());
  session_store store(*db);
  for (const auto& tree : original.trees) {
    const auto found = store.find(tree.session.key);
    BOOST_REQUIRE(found);
    if (!*found) continue;
    const auto version = (**found).last_version;
    if (!tree.session.key.id.starts_with("fork")) BOOST_TEST((**found == record_at(tree, version)));
    const bool is_fork = tree.session.key.id.starts_with("fork");
    BOOST_TEST(store.versions(tree.session.uid).value().size() == (is_fork ? (**found).versions : version));
  }
}
