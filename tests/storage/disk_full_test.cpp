// Shows what a full disk does: writes say no_space and leave nothing half done, reads go on, and writes come back by
// themselves once there is space. On a small file system of its own where it may be mounted, and on one that says so.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <thread>

#include "storage/database/database.hpp"
#include "storage/sessions/session_store.hpp"
#include "storage/states/state_store.hpp"
#include "tests/storage/commit_ledger.hpp"
#include "tests/storage/fault_file_system.hpp"
#include "tests/storage/small_disk.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using namespace skein::storage;

namespace {

/// Fills the disk, empties it, and looks at what the database says meanwhile.
void go_through_full_disk(const std::shared_ptr<database>& db, test::commit_ledger& ledger,
                          const std::function<void()>& fill, const std::function<void()>& free) {
  ledger.live(db, 12);
  BOOST_TEST(!db->failing());
  const auto before = ledger.acknowledged();
  fill();
  const model::state_layout layout{.layers = 4, .embd = 256, .heads = 16, .head_size = 64};
  const auto large = model::state_of(layout, std::vector<float>(layout.floats(), 1.0f));
  state_store states(db, layout, "model", dtype::f32);
  result<void> put;
  for (std::uint64_t number = 1; put && number < 100; ++number)
    put = states.put({"model", default_tenant, {0, number}, 1}, large);
  BOOST_REQUIRE(!put);
  BOOST_TEST(to_string(put.error().kind) == "no_space");
  BOOST_TEST(db->failing());
  BOOST_TEST(!db->probe());
  session_store store(db);
  session_record session;
  session.uid = 1'000'000;
  session.key.id = "refused";
  const auto refused = store.commit(session, {}, false);
  BOOST_REQUIRE(!refused);
  BOOST_TEST(to_string(refused.error().kind) == "no_space");
  BOOST_TEST(!store.find(session.key).value().has_value());
  const auto meanwhile = ledger.faults_in(db, test::crash::process);
  BOOST_TEST(meanwhile.empty(), (meanwhile.empty() ? "" : meanwhile.front()));

  free();
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  while (!db->probe() && seconds() < 60) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  BOOST_TEST_MESSAGE("writes were back after " << seconds() << " s");
  BOOST_TEST(!db->failing());
  ledger.live(db, 12);
  BOOST_TEST(ledger.acknowledged() > before);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_full_file_system, *boost::unit_test::precondition(test::may_mount)) {
  const test::small_disk disk;
  test::random_cases random;
  test::commit_ledger ledger(random);
  const auto folder = disk.path() / "db";
  {
    const auto db = database::open({.directory = folder});
    BOOST_REQUIRE(db);
    go_through_full_disk(
        *db, ledger, [&] { disk.fill(); }, [&] { disk.free(); });
  }
  const auto faults = ledger.faults_in(test::opened(folder), test::crash::process);
  BOOST_TEST(faults.empty(), (faults.empty() ? "" : faults.front()));
}

BOOST_AUTO_TEST_CASE(a_file_system_that_says_it_is_full) {
  const test::temporary_folder folder;
  test::random_cases random;
  test::commit_ledger ledger(random);
  const auto files = std::make_shared<test::fault_file_system>();
  test::fault_environment environment(files);
  {
    const auto db = database::open({.directory = folder.path() / "db", .environment = &environment});
    BOOST_REQUIRE(db);
    go_through_full_disk(
        *db, ledger, [&] { files->plan({.kind = test::fault_kind::no_space, .first = 1, .count = 1u << 30}); },
        [&] { files->heal(); });
    files->freeze();
  }
  files->cut_power();
  const auto db = database::open({.directory = folder.path() / "db", .environment = &environment});
  BOOST_REQUIRE(db);
  const auto faults = ledger.faults_in(*db, test::crash::power);
  BOOST_TEST(faults.empty(), (faults.empty() ? "" : faults.front()));
}

BOOST_AUTO_TEST_CASE(a_disk_that_fails_and_then_works_again) {
  const test::temporary_folder folder;
  test::random_cases random;
  test::commit_ledger ledger(random);
  const auto files = std::make_shared<test::fault_file_system>();
  test::fault_environment environment(files);
  const auto db = database::open({.directory = folder.path() / "db", .environment = &environment});
  BOOST_REQUIRE(db);
  ledger.live(*db, 12);
  files->plan({.kind = test::fault_kind::io_error, .first = 1, .count = 1u << 30});
  ledger.live(*db, 5);
  BOOST_TEST((*db)->failing());
  BOOST_TEST(!(*db)->probe());
  const auto meanwhile = ledger.faults_in(*db, test::crash::process);
  BOOST_TEST(meanwhile.empty(), (meanwhile.empty() ? "" : meanwhile.front()));
  files->heal();
  BOOST_TEST((*db)->probe());
  BOOST_TEST(!(*db)->failing());
  const auto before = ledger.acknowledged();
  ledger.live(*db, 12);
  BOOST_TEST(ledger.acknowledged() > before);
}
