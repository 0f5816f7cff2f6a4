// Shows that no failure of the disk loses, tears or mixes what was acknowledged: the first, second, third ... operation
// fails, until a run passes without a fault; then the process or the machine dies, and what is found must be whole.
// SKEIN_EVERY_FAULT=1 tries every operation, else every few of them are tried.
#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "storage/database/database.hpp"
#include "tests/storage/commit_ledger.hpp"
#include "tests/storage/fault_file_system.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using namespace skein::storage;
using test::commit_ledger;
using test::crash;
using test::fault_kind;
using test::fault_plan;

namespace {

constexpr std::uint64_t for_good = 1u << 30;

bool every_fault() { return std::getenv("SKEIN_EVERY_FAULT") != nullptr; }

std::string shown(const std::vector<std::string>& faults) {
  std::string all;
  for (const auto& fault : faults) all += "\n  " + fault;
  return all;
}

/// A database with such faults.
struct faulty_database {
  test::temporary_folder folder;
  std::shared_ptr<test::fault_file_system> files = std::make_shared<test::fault_file_system>();
  std::unique_ptr<test::fault_environment> environment = std::make_unique<test::fault_environment>(files);

  result<std::shared_ptr<database>> open() const {
    return database::open({.directory = folder.path() / "db", .environment = environment.get()});
  }
};

/// One life with one fault and a crash. Returns whether the fault happened.
bool run(const fault_plan& plan, crash how, std::uint32_t before, std::uint32_t after) {
  test::random_cases random;
  commit_ledger ledger(random);
  const faulty_database faulty;
  faulty.files->plan(plan);
  if (auto db = faulty.open()) {
    ledger.live(*db, before);
    if (plan.count == for_good && faulty.files->faults() > 0) faulty.files->heal();
    ledger.live(*db, after);
    faulty.files->freeze();
  }
  if (how == crash::power)
    faulty.files->cut_power();
  else
    faulty.files->thaw();
  const auto again = faulty.open();
  BOOST_TEST_CONTEXT("operation " << plan.first << ", fault " << static_cast<int>(plan.kind) << ", "
                                  << (how == crash::power ? "power cut" : "kill")) {
    BOOST_TEST(again.has_value(), (again ? "" : again.error().message));
    if (again) {
      const auto faults = ledger.faults_in(*again, how);
      BOOST_TEST(faults.empty(), shown(faults));
    }
  }
  return faulty.files->faults() > 0;
}

/// All operations in turn, from the first to the last one that there is.
void fail_at_every_operation(fault_kind kind, std::uint64_t count, crash how) {
  const std::uint64_t stride = every_fault() ? 1 : 29;
  std::uint64_t at = every_fault() ? 1 : 1 + test::random_cases::seed() % stride;
  std::uint32_t runs = 0;
  while (run({.kind = kind, .first = at, .count = count}, how, 32, 16)) {
    at += stride;
    ++runs;
  }
  BOOST_TEST(runs > 5u, runs << " runs, " << at << " operations");
}

}  // namespace

BOOST_AUTO_TEST_CASE(without_faults_a_killed_process_loses_nothing) {
  for (std::uint32_t steps = 1; steps < 48; steps += every_fault() ? 1 : 7) {
    run({}, crash::process, steps, 0);
    run({}, crash::power, steps, 0);
  }
}

BOOST_AUTO_TEST_CASE(a_write_that_fails_once) { fail_at_every_operation(fault_kind::io_error, 1, crash::process); }
BOOST_AUTO_TEST_CASE(a_write_that_fails_once_and_a_power_cut) {
  fail_at_every_operation(fault_kind::io_error, 1, crash::power);
}
BOOST_AUTO_TEST_CASE(half_of_a_write_that_fails) {
  fail_at_every_operation(fault_kind::short_write, 1, crash::process);
}
BOOST_AUTO_TEST_CASE(half_of_a_write_that_fails_and_a_power_cut) {
  fail_at_every_operation(fault_kind::short_write, 1, crash::power);
}
BOOST_AUTO_TEST_CASE(a_disk_that_fails_for_a_while) {
  fail_at_every_operation(fault_kind::io_error, for_good, crash::process);
}
BOOST_AUTO_TEST_CASE(a_disk_that_is_full_for_a_while) {
  fail_at_every_operation(fault_kind::no_space, for_good, crash::process);
}
BOOST_AUTO_TEST_CASE(a_disk_that_is_full_for_a_while_and_a_power_cut) {
  fail_at_every_operation(fault_kind::no_space, for_good, crash::power);
}
