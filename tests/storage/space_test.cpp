// Shows that the bytes of deleted states are freed without a requested compaction: blob files shrink to about the live
// data once the deletions are flushed.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <thread>

#include "storage/states/state_store.hpp"
#include "tests/storage/random_records.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using namespace skein::storage;

namespace {

std::uint64_t blob_bytes(const std::filesystem::path& folder) {
  std::uint64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::error_code gone;
    const auto size = file.path().extension() == ".blob" ? file.file_size(gone) : 0;
    if (!gone) bytes += size;
  }
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(deleted_states_give_their_bytes_back) {
  const test::temporary_folder folder;
  const auto db = test::opened(folder.path());
  const model::state_layout layout{.layers = 4, .embd = 256, .heads = 16, .head_size = 64};  // 1.2 MB a state
  state_store states(db, layout, "model", dtype::f32);
  test::random_cases random;
  const auto state = test::random_state(random, layout);
  constexpr std::uint64_t count = 24, kept = 3;
  for (std::uint64_t i = 1; i <= count; ++i) BOOST_REQUIRE(states.put({"model", default_tenant, {7, i}, 1}, state));
  const std::uint64_t full = blob_bytes(folder.path());
  BOOST_REQUIRE_GE(full, count * states.record_bytes("model"));
  for (std::uint64_t i = 1; i <= count; ++i)
    if (i % (count / kept) != 0) BOOST_REQUIRE(states.remove({7, i}));
  BOOST_REQUIRE(db->flush());  // as the persistence actor does after deletions

  const std::uint64_t wanted = 2 * kept * states.record_bytes("model");
  std::uint64_t left = full;
  for (int i = 0; i < 3000 && left > wanted; ++i) {  // RocksDB works in its own time
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    left = blob_bytes(folder.path());
  }
  BOOST_TEST_MESSAGE("blob files: " << full << " bytes before, " << left << " after");
  BOOST_TEST(left <= wanted);
  for (std::uint64_t i = count / kept; i <= count; i += count / kept)
    BOOST_TEST((states.get({7, i}).value()->state == state));
}
