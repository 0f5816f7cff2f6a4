// Shows that a flipped bit, in any kind of file or on the way from it, gives an error or the right data, never other
// data and never an abort, and that reads which fail spoil nothing: on copies of one directory. SKEIN_FLIPS says how
// many in each kind of file.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "storage/database.hpp"
#include "tests/storage/commit_ledger.hpp"
#include "tests/storage/fault_file_system.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using namespace skein::storage;

namespace {

std::uint32_t flips() {
  const char* const given = std::getenv("SKEIN_FLIPS");
  return given ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10)) : 10;
}

/// The kinds of files that RocksDB makes, as their names begin or end.
const std::vector<std::string> kinds{".sst", ".blob", ".log", "MANIFEST-", "CURRENT", "OPTIONS-"};

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder, const std::string& kind) {
  std::vector<std::filesystem::path> all;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().filename();
    if ((name.starts_with(kind) || name.ends_with(kind)) && file.file_size() > 0) all.push_back(file.path());
  }
  std::ranges::sort(all);
  return all;
}

void flip_bit(const std::filesystem::path& path, test::random_cases& random) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto at = random.below(static_cast<std::uint32_t>(std::filesystem::file_size(path)));
  file.seekg(at);
  const char byte = static_cast<char>(file.get());
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 1 << random.below(8)));
}

/// A directory with files of every kind, and what was done to it: closed as by kill -9, so that a log is left.
struct written_directory {
  test::temporary_folder folder;
  test::random_cases random;
  test::commit_ledger ledger{random};

  written_directory() {
    const auto files = std::make_shared<test::fault_file_system>();
    test::fault_environment environment(files);
    for (const std::uint32_t steps : {31u, 14u}) {
      const auto db = database::open({.directory = path(), .environment = &environment});
      BOOST_REQUIRE(db);
      ledger.live(*db, steps);
      if (steps == 14u) files->freeze();
    }
  }
  std::filesystem::path path() const { return folder.path() / "db"; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_flipped_bit_is_an_error_or_nothing) {
  written_directory original;
  for (const auto& kind : kinds) BOOST_TEST(!files_of(original.path(), kind).empty(), kind);
  std::uint32_t refused = 0, harmless = 0;
  for (std::uint32_t run = 0; run < flips() * kinds.size(); ++run) {
    const test::temporary_folder folder;
    const auto copy = folder.path() / "db";
    std::filesystem::copy(original.path(), copy);
    const auto& kind = kinds[run % kinds.size()];
    const auto files = files_of(copy, kind);
    const auto& hit = files[original.random.below(static_cast<std::uint32_t>(files.size()))];
    flip_bit(hit, original.random);
    const auto db = database::open({.directory = copy});
    if (!db) {
      ++refused;
      BOOST_TEST(!db.error().message.empty());
      continue;
    }
    ++harmless;
    const auto lies = original.ledger.lies_in(*db);
    BOOST_TEST(lies.empty(), "run " << run << ", " << hit.filename() << ": " << (lies.empty() ? "" : lies.front()));
  }
  BOOST_TEST(refused > 0u);
  BOOST_TEST(harmless > 0u);
}

namespace {

/// Opens a copy and reads all of it, while one read goes wrong. Returns whether one did.
bool read_with_fault(written_directory& original, test::fault_kind kind, std::uint64_t first) {
  const test::temporary_folder folder;
  const auto copy = folder.path() / "db";
  std::filesystem::copy(original.path(), copy);
  const auto files = std::make_shared<test::fault_file_system>();
  test::fault_environment environment(files);
  files->plan({.kind = kind, .reads = true, .first = first});
  if (const auto db = database::open({.directory = copy, .environment = &environment})) {
    const auto lies = original.ledger.lies_in(*db);
    BOOST_TEST(lies.empty(), "read " << first << ": " << (lies.empty() ? "" : lies.front()));
  }
  if (kind == test::fault_kind::io_error) {  // what is on the disk is whole, so it must be found now
    const auto db = database::open({.directory = copy});
    BOOST_REQUIRE_MESSAGE(db, (db ? "" : db.error().message));
    const auto faults = original.ledger.faults_in(*db, test::crash::process);
    BOOST_TEST(faults.empty(), "after read " << first << ": " << (faults.empty() ? "" : faults.front()));
  }
  return files->faults() > 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_read_that_goes_wrong_once) {
  written_directory original;
  for (const auto kind : {test::fault_kind::io_error, test::fault_kind::flipped_bit}) {
    const std::uint32_t stride = flips() >= 1000 ? 1 : 7;
    std::uint64_t at = 1;
    while (read_with_fault(original, kind, at)) at += stride;
    BOOST_TEST(at > 50u);
  }
}
