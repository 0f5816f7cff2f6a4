// Shows that states on disk and in session files load that version 0.2.0 wrote (folder written_by_0.2.0): a session of
// two turns on the fake engine, with states stored as fp32 and as fp16. The fake engine's states are whole numbers
// below 256, so both have the same numbers.
#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "storage/records/record_bytes.hpp"
#include "storage/sessions/session_file.hpp"
#include "storage/sessions/session_store.hpp"
#include "storage/states/state_record.hpp"
#include "storage/states/state_store.hpp"
#include "tests/storage/random_records.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using namespace skein::storage;

namespace {

const std::filesystem::path written = SKEIN_WRITTEN_BY_0_2_0;
constexpr model::state_layout layout{.layers = 1, .embd = 512};
constexpr std::uint64_t checksum_of_floats = 13939591998131956454u;  // of the state of version 2

std::uint64_t checksum_of(const model::state_value& state) {
  const auto floats = floats_of(state);
  return checksum({reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float)});
}

/// The database works on a copy.
struct copied_database {
  explicit copied_database(const char* type) {
    std::filesystem::create_directories(folder.path() / "sessions");
    for (const auto& file : std::filesystem::directory_iterator(written / type))
      std::filesystem::copy(file.path(), folder.path() / "sessions" / file.path().filename());
    db = test::opened(folder.path() / "sessions");
  }
  test::temporary_folder folder;
  std::shared_ptr<database> db;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(old_records)

BOOST_AUTO_TEST_CASE(a_database_of_0_2_0_loads_into_engines_of_both_types) {
  for (const char* const stored : {"fp32", "fp16"})
    for (const dtype engine : {dtype::f32, dtype::f16})
      BOOST_TEST_CONTEXT("stored " << stored << ", engine " << to_string(engine)) {
        const copied_database old(stored);
        const model::state_format format(layout, engine);
        state_store states(old.db, format, "fake", std::nullopt);
        const auto list = states.list().value();
        BOOST_REQUIRE(!list.empty());
        for (const auto& one : list) {
          const auto got = states.get(one.key);
          BOOST_REQUIRE_MESSAGE(got, (got ? "" : got.error().message));
          BOOST_REQUIRE(got->has_value());
          BOOST_TEST(((*got)->state.format == format));
          if (version_of(one.key) == 2) BOOST_TEST(checksum_of((*got)->state) == checksum_of_floats);
        }
        BOOST_TEST((version_of(list.back().key) == 2u));
        // And what this program writes beside them.
        const auto state = states.get(list.back().key).value()->state;
        BOOST_REQUIRE(states.put({"fake", default_tenant, {7, 1}, 5}, state).has_value());
        BOOST_TEST((states.get({7, 1}).value()->state == state));
      }
}

BOOST_AUTO_TEST_CASE(session_files_of_0_2_0_load) {
  for (const char* const stored : {"fp32.session", "fp16.session"}) {
    const auto file = read_session_file(test::content_of(written / stored), {});
    BOOST_REQUIRE_MESSAGE(file, (file ? "" : file.error().message));
    BOOST_TEST(file->versions.size() == 2u);
    BOOST_REQUIRE_EQUAL(file->states.size(), 2u);
    for (const dtype engine : {dtype::f32, dtype::f16}) {
      const auto state = decode_state(file->states.back(), {layout, engine}, "fake");
      BOOST_REQUIRE_MESSAGE(state, (state ? "" : state.error().message));
      BOOST_TEST(checksum_of(state->state) == checksum_of_floats);
    }
  }
}

// So that version 0.2.0 can read what this program writes, where one type suffices.
BOOST_AUTO_TEST_CASE(records_of_one_type_are_as_before) {
  for (const char* const stored : {"fp32.session", "fp16.session"}) {
    const auto file = read_session_file(test::content_of(written / stored), {}).value();
    const auto& record = file.states.back();
    const dtype type = std::string_view(stored).starts_with("fp16") ? dtype::f16 : dtype::f32;
    const auto state = decode_state(record, {layout, type}, "fake").value();
    BOOST_TEST((encode_state(state.label, state.state) == record));
    BOOST_TEST((encode_state(state.label, converted(state.state, layout), type) == record));
  }
}

BOOST_AUTO_TEST_SUITE_END()
