// Shows how a database opens and refuses to: once at a time, in its own format, changing nothing it should not.
#include "storage/database/database.hpp"

#include <boost/test/unit_test.hpp>
#include <fstream>

#include "storage/database/database_impl.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/sessions/session_store.hpp"
#include "tests/storage/outcomes.hpp"
#include "tests/storage/random_records.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using namespace skein::storage;

namespace {

using test::refused;

void write_format(const std::filesystem::path& folder, const std::string& record) {
  const auto db = test::opened(folder);
  BOOST_REQUIRE(db->internals().write(safety::synced,
                                      [&](change_list& changes) { changes.put(family::meta, "format", record); }));
}

std::vector<std::string> files_of(const std::filesystem::path& folder) {
  std::vector<std::string> all;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    all.push_back(file.path().filename().string() + " " + std::to_string(file.file_size()));
  std::ranges::sort(all);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_directory_is_opened_once_at_a_time) {
  const test::temporary_folder folder;
  {
    const auto first = test::opened(folder.path());
    BOOST_TEST(first->on_disk());
    refused(database::open({.directory = folder.path()}), error_kind::in_use, "in use by another process");
    refused(database::open({.directory = folder.path(), .read_only = true}), error_kind::in_use, "in use");
  }
  const auto reader = database::open({.directory = folder.path(), .read_only = true});
  BOOST_REQUIRE(reader);
  refused(database::open({.directory = folder.path()}), error_kind::in_use, "in use");
}

BOOST_AUTO_TEST_CASE(in_memory_there_are_as_many_as_one_likes) {
  session_store first(test::opened()), second(test::opened());
  session_record session;
  session.uid = 1;
  session.key.id = "a";
  BOOST_REQUIRE(first.commit(session, {}, true));
  BOOST_TEST(first.find(session.key).value().has_value());
  BOOST_TEST(!second.find(session.key).value().has_value());
  BOOST_TEST(!test::opened()->on_disk());
}

BOOST_AUTO_TEST_CASE(other_formats_are_refused_and_left_alone) {
  for (const std::uint32_t format : {0u, 3u, 77u}) {
    const test::temporary_folder folder;
    write_format(folder.path(), encode_number(record_kind::database_format, format));
    const auto before = files_of(folder.path());
    for (const bool read_only : {false, true})
      refused(database::open({.directory = folder.path(), .read_only = read_only}), error_kind::conflict,
              "format " + std::to_string(format) + "; this program reads formats up to 2");
    BOOST_TEST(files_of(folder.path()) == before, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_damaged_or_missing_format_record_is_refused) {
  const test::temporary_folder damaged, missing;
  write_format(damaged.path(), "nonsense");
  refused(database::open({.directory = damaged.path()}), error_kind::damaged, "format record");
  {
    const auto db = test::opened(missing.path());
    BOOST_REQUIRE(db->internals().write(safety::synced, [&](change_list& changes) {
      changes.erase(family::meta, "format");
      changes.put(family::meta, "something", "else");
    }));
  }
  refused(database::open({.directory = missing.path()}), error_kind::conflict, "but no format record");
}

BOOST_AUTO_TEST_CASE(nothing_is_made_where_that_was_not_asked) {
  const test::temporary_folder folder;
  refused(database::open({.directory = folder.path() / "no", .create = false}), error_kind::missing_file,
          "no database");
  refused(database::open({.directory = folder.path() / "no", .read_only = true}), error_kind::missing_file,
          "no database");
  BOOST_TEST(!std::filesystem::exists(folder.path() / "no"));
  std::ofstream(folder.path() / "file") << "x";
  BOOST_TEST(!database::open({.directory = folder.path() / "file"}));
  BOOST_TEST(!database::open({.directory = folder.path() / "file" / "below"}));
}

BOOST_AUTO_TEST_CASE(a_directory_that_goes_while_it_is_in_use_takes_nothing_until_it_comes_back) {
  const test::temporary_folder folder;
  const auto path = folder.path() / "db";
  const auto db = test::opened(path);
  session_store store(db);
  session_record session;
  session.uid = 1;
  session.key.id = "a";
  BOOST_REQUIRE(store.commit(session, {}, false));
  const auto away = folder.path() / "away";
  std::filesystem::rename(path, away);
  BOOST_TEST(!store.commit(session, {}, true));  // the write succeeds, but the file would not be found
  BOOST_TEST(db->failing());
  for (int i = 0; i < 3; ++i) BOOST_TEST(!db->probe());
  std::filesystem::create_directory(path);
  for (int i = 0; i < 3; ++i) BOOST_TEST(!db->probe());
  BOOST_TEST(std::filesystem::is_empty(path));
  BOOST_TEST(store.find(session.key).value().has_value());
  std::filesystem::remove(path);
  std::filesystem::rename(away, path);
  BOOST_TEST(db->probe());
  BOOST_TEST(store.commit(session, {}, true).has_value());
}

BOOST_AUTO_TEST_CASE(readers_change_no_file) {
  const test::temporary_folder folder;
  session_record session;
  session.uid = 1;
  session.key.id = "a";
  BOOST_REQUIRE(session_store(test::opened(folder.path())).commit(session, {}, true));
  const auto before = files_of(folder.path());
  {
    const auto db = database::open({.directory = folder.path(), .read_only = true});
    BOOST_REQUIRE(db);
    session_store store(*db);
    BOOST_TEST((store.find(session.key).value() == session));
    const auto written = store.commit(session, {}, true);
    BOOST_REQUIRE(!written);
    BOOST_TEST(to_string(written.error().kind) == "io");
  }
  BOOST_TEST(files_of(folder.path()) == before, boost::test_tools::per_element());
}
