// Shows that a write which the disk stored although it reported a failure does no harm: it was refused, so it is undone
// once the disk works again, and a crash at any time before leaves whole sessions.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "storage/repair/verify.hpp"
#include "tests/actors/persistence/keeper_bench.hpp"

using namespace skein;
using namespace skein::test;

namespace {

using tokens_t = std::vector<token_id>;

struct doubt_bench : keeper_bench {
  explicit doubt_bench(std::size_t unsaved_bytes_max = 1 << 20) {
    options.sessions.unsaved_bytes_max = unsaved_bytes_max;
    open();
  }
  void fill_disk(std::uint64_t first) {
    files->plan({.kind = fault_kind::no_space, .first = first, .count = 1'000'000});
  }
  /// The next write to the log reaches the file, and the flush behind it fails.
  void fill_disk_behind_a_write() { fill_disk(2); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(behind_a_failed_write_nothing_is_written_until_the_disk_was_tried) {
  doubt_bench b;
  b.turn("s", {1}, "a");
  b.pass(3s);
  const auto files = [&] {
    std::set<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(b.folder.path() / "db"))
      names.insert(file.path().filename());
    return names;
  };
  const auto before = files();
  b.files->plan({.kind = fault_kind::no_space, .first = 2, .count = 1});  // there is space again at once
  b.tell(fork_session{{0, 1}, {default_tenant, "s"}, {default_tenant, "t"}, {}});
  BOOST_TEST((b.refusal().kind == error_kind::no_space));
  for (int i = 0; i < 30 && files() == before; ++i) std::this_thread::sleep_for(10ms);
  BOOST_TEST(files() == before, boost::test_tools::per_element());
  b.recover();
  b.turn("t", {2}, "b");
}

BOOST_AUTO_TEST_CASE(a_refused_removal_that_the_disk_stored_keeps_the_states_of_a_fork) {
  doubt_bench b;
  b.turn("s", {1, 2}, "a");
  b.pass(3s);
  b.answered<done>(fork_session{{0, 1}, {default_tenant, "s"}, {default_tenant, "t"}, {}});
  b.fill_disk_behind_a_write();
  b.tell(remove_session{{0, 1}, {default_tenant, "t"}});
  BOOST_TEST((b.refusal().kind == error_kind::no_space));
  b.recover();
  b.crash();
  b.open();
  const auto o = b.opened("t");
  BOOST_REQUIRE(o.resume.state != nullptr);
  BOOST_TEST((*o.resume.state == *state_after(tokens_t{1, 2})));
}

BOOST_AUTO_TEST_CASE(a_broken_answer_that_has_no_room_leaves_nothing_behind) {
  doubt_bench b(1);
  b.turn("s", {1}, "a");
  note_running n{b.opened("s").lease, {}};
  n.so_far.tokens = tokens_t(20, 1);
  b.tell(std::move(n));
  b.crash();
  b.open();
  b.fill_disk_behind_a_write();
  BOOST_TEST(b.described("s").versions.size() == 1u);  // what the disk stored of the answer was refused
  b.recover();
  b.answered<done>(rollback_session{{0, 1}, {default_tenant, "s"}, 0});
  const auto found = storage::verify(*b.db).value();
  BOOST_TEST(found.damaged_count == 0u, (found.damaged.empty() ? "" : found.damaged.front().why));
}

namespace {

/// A disk that recovers up to some write, then a crash; how often until all writes succeed.
void crash_at_each_write(const std::function<void(doubt_bench&)>& refused_and_stored) {
  bool recovered = false;
  for (std::uint64_t write = 1; !recovered; ++write) {
    BOOST_TEST_INFO_SCOPE("write " << write);
    BOOST_REQUIRE(write < 1000u);
    doubt_bench b;
    b.turn("s", {1}, "a");
    b.turn("s", {2}, "b", tokens_t{1, 2});
    b.pass(3s);
    refused_and_stored(b);
    b.fill_disk(write);
    for (int i = 0; i < 3; ++i) b.pass(3s);
    recovered = b.sessions->disk_works();
    b.crash();
    b.open();
    const auto found = storage::verify(*b.db).value();
    for (const auto& one : found.damaged) BOOST_ERROR(one.record << ": " << one.why);
    const auto all = b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "", 10}).sessions;
    BOOST_REQUIRE(!all.empty());
    BOOST_TEST(all.front().record.key.id == "s");
    for (const auto& one : all) BOOST_TEST(b.described(one.record.key.id).versions.size() > 0u);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_crash_while_a_refused_fork_is_undone_leaves_whole_sessions) {
  crash_at_each_write([](doubt_bench& b) {
    b.fill_disk_behind_a_write();
    b.tell(fork_session{{0, 1}, {default_tenant, "s"}, {default_tenant, "t"}, {}});
    BOOST_TEST((b.refusal().kind == error_kind::no_space));
    BOOST_TEST((b.turn("t", {7}, "x").durable == durability::memory));  // takes the name
  });
}

BOOST_AUTO_TEST_CASE(a_crash_while_a_refused_import_is_undone_leaves_whole_sessions) {
  crash_at_each_write([](doubt_bench& b) {
    const session_key s{default_tenant, "s"};
    const std::string file = b.answered<session_bytes>(export_session{{0, 1}, s, true}).file;
    b.fill_disk(6);  // behind the mark, the versions and the record, of which each is written and flushed
    b.tell(import_session{{0, 1}, s, file, true});
    BOOST_TEST((b.refusal().kind == error_kind::no_space));
  });
}
