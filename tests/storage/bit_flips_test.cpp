// Shows that a flipped bit, in any kind of file or on the way from it, gives an error or the right data, never other
// data and never an abort, and that reads which fail spoil nothing: on copies of one directory. SKEIN_FLIPS says how
// many in each kind of file.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "storage/database/database.hpp"
#include "storage/files/log_blocks.hpp"
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

void flip_bit_at(const std::filesystem::path& path, std::uint64_t at, unsigned bit) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(at));
  const char byte = static_cast<char>(file.get());
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 1 << bit));
}

void flip_bit(const std::filesystem::path& path, test::random_cases& random) {
  const auto at = random.below(static_cast<std::uint32_t>(std::filesystem::file_size(path)));
  flip_bit_at(path, at, random.below(8));
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

/// Where the headers of a log's last block begin.
std::vector<std::uint64_t> last_headers(const std::filesystem::path& log) {
  const std::string all = test::content_of(log);
  std::vector<std::uint64_t> headers;
  for (std::size_t at = (all.size() - 1) / log_block_bytes * log_block_bytes; at + log_header_bytes < all.size();
       at += log_header_bytes + header_at(std::string_view(all).substr(at)).length)
    headers.push_back(at);
  return headers;
}

}  // namespace

/// To RocksDB that is a torn write; all behind it would be gone without a word.
BOOST_AUTO_TEST_CASE(a_length_that_points_behind_the_end_is_mended) {
  written_directory original;
  for (const std::string kind : {".log", "MANIFEST-"}) {
    std::uint32_t tried = 0;
    for (const auto& log : files_of(original.path(), kind))
      for (const std::uint64_t at : last_headers(log)) {
        const test::temporary_folder folder;
        const auto copy = folder.path() / "db";
        std::filesystem::copy(original.path(), copy);
        flip_bit_at(copy / log.filename(), at + log_length_offset + 1, 7);  // 32 KiB more
        const auto looked = database::open({.directory = copy, .read_only = true});
        BOOST_REQUIRE(!looked);
        BOOST_TEST((looked.error().kind == error_kind::damaged));
        BOOST_TEST(looked.error().message.find(log.filename()) != std::string::npos, looked.error().message);
        const auto db = database::open({.directory = copy});
        BOOST_REQUIRE_MESSAGE(db, db.error().message);
        const auto faults = original.ledger.faults_in(*db, test::crash::process);
        BOOST_TEST(faults.empty(), log.filename() << " at " << at << ": " << (faults.empty() ? "" : faults.front()));
        ++tried;
      }
    BOOST_TEST(tried > 3u, kind);
  }
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
