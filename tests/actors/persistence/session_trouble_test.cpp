// Shows what sessions do when the disk is in trouble, and that sessions travel as files: nothing is claimed that is not
// so, answers go on from memory, and what comes from outside is believed only after it was checked.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <string_view>

#include "storage/database/database_impl.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/repair/verify.hpp"
#include "storage/sessions/session_file.hpp"
#include "tests/actors/persistence/keeper_bench.hpp"
#include "tests/support/random_cases.hpp"

using namespace skein;
using namespace skein::test;

namespace {

using tokens_t = std::vector<token_id>;

struct disk_bench : opened_bench {
  void fill_disk() { files->plan({.kind = fault_kind::no_space, .first = 1, .count = 1'000'000}); }
  std::string exported(const std::string& id) {
    return answered<session_bytes>(export_session{{0, 1}, {default_tenant, id}, true}).file;
  }
  import_session import_of(const std::string& id, std::string file, bool replace = false) {
    return {{0, 1}, {default_tenant, id}, std::move(file), replace};
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_session_without_turns_can_be_exported) {
  disk_bench b;
  label_session making{{0, 1}, {default_tenant, "s"}, "a title", {}};
  making.make = true;
  (void)b.answered<done>(making);
  const auto taken = b.answered<done>(b.import_of("t", b.exported("s"))).session;
  BOOST_TEST(taken.title == "a title");
  BOOST_TEST(taken.versions == 0u);
  b.turn("t", {1}, "a");
  BOOST_TEST(b.described("t").session.record.model_identity == b.model);
}

BOOST_AUTO_TEST_CASE(a_full_disk_means_memory_until_there_is_space) {
  disk_bench b;
  b.turn("s", {1}, "a");
  b.fill_disk();
  const auto o = b.opened("s");
  auto c = b.commit_of(o, {2}, "b");
  c.wanted = durability::power;
  BOOST_TEST((b.ask<turn_committed>(std::move(c)).durable == durability::memory));
  b.tell(state_kept{o.key, state_after(tokens_t{1, 2})});
  BOOST_TEST((b.turn("new", {7}, "x").durable == durability::memory));  // a session that the disk never saw
  // What is in memory serves; what would have to be safe is refused.
  BOOST_TEST((*b.opened("s").resume.state == *state_after(tokens_t{1, 2})));
  b.tell(fork_session{{0, 1}, {default_tenant, "s"}, {default_tenant, "t"}, {}});
  BOOST_TEST((b.refusal().kind == error_kind::no_space));
  BOOST_TEST(b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "", 10}).sessions.size() == 2u);
  b.sessions->publish();
  BOOST_TEST(b.counters.disk_fails);
  BOOST_TEST(b.counters.unsaved_sessions == 2u);
  BOOST_TEST(b.counters.unsaved_bytes > 0u);

  b.recover();
  b.sessions->publish();
  BOOST_TEST(!b.counters.disk_fails);
  BOOST_TEST(b.counters.unsaved_bytes == 0u);
  b.pass(2s);
  b.crash();
  b.open();
  BOOST_TEST(b.opened("s").base == 2u);
  const auto again = b.opened("new");
  BOOST_TEST(again.base == 1u);
  BOOST_REQUIRE(again.resume.state != nullptr);  // its state was written once its turn was
}

BOOST_AUTO_TEST_CASE(turns_that_only_memory_has_are_bounded) {
  keeper_bench b;
  b.options.sessions.unsaved_bytes_max = 3000;
  b.open();
  b.turn("s", {1}, "a");
  b.files->plan({.kind = fault_kind::io_error, .first = 1, .count = 1'000'000});
  int taken = 0;
  for (;; ++taken) {
    BOOST_REQUIRE(taken < 20);
    const auto o = b.opened("s");
    b.tell(b.commit_of(o, {2}, std::string(500, 'x')));
    if (std::holds_alternative<refused>(b.replies.all.front())) break;
    (void)b.take<turn_committed>();
    b.tell(state_kept{o.key, nullptr});
  }
  BOOST_TEST(taken > 0);
  BOOST_TEST((b.refusal().kind == error_kind::no_space));
  BOOST_TEST(b.described("s").session.record.versions == 1u + static_cast<std::uint32_t>(taken));
  b.recover();
  BOOST_TEST((b.turn("s", {3}, "c").durable == durability::process));
}

BOOST_AUTO_TEST_CASE(a_state_that_cannot_be_written_is_tried_again) {
  disk_bench b;
  b.turn("s", {1}, "a");
  b.fill_disk();
  b.pass(2s);
  b.recover();
  b.pass(3s);
  b.pass(3s);
  BOOST_TEST(b.states->list()->size() == 1u);
}

BOOST_AUTO_TEST_CASE(while_the_disk_fails_no_thread_wakes_up_for_writes) {
  disk_bench b;
  b.turn("s", {1}, "a");
  b.fill_disk();
  b.pass(2s);  // the write of its state fails
  BOOST_REQUIRE(!b.sessions->disk_works());
  for (int i = 0; i < 5; ++i) {
    b.pass(1100ms);
    BOOST_TEST((b.sessions->next_wake() > b.time.now()));
  }
  b.recover();
  b.pass(2s);
  BOOST_TEST(b.states->list()->size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_first_turn_that_fails_while_the_disk_does_leaves_nothing) {
  disk_bench b;
  const auto o = b.opened("s");
  note_running n{o.lease, {}};
  n.so_far.tokens = tokens_t(20, 1);
  b.tell(std::move(n));  // now the log has the session and how far its answer has come
  b.fill_disk();
  BOOST_TEST((b.turn("other", {1}, "a").durable == durability::memory));
  b.tell(release{o.reply, o.lease});
  b.recover();
  const auto names = [&] {
    std::string all;
    for (const auto& one : b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "", 20}).sessions)
      all += one.record.key.id + ' ';
    return all;
  };
  BOOST_TEST(names() == "other ");
  b.end();
  b.open();
  BOOST_TEST(names() == "other ");
  const auto found = storage::verify(*b.db).value();
  BOOST_TEST(found.running == 0u);
  BOOST_TEST(found.damaged_count == 0u);
}

namespace {

/// A record of a family that is none any more.
void spoil(disk_bench& b, storage::family where, std::string_view key) {
  BOOST_REQUIRE(
      b.db->internals().write(storage::safety::logged, [&](auto& changes) { changes.put(where, key, "no"); }));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_session_with_a_damaged_version_can_be_deleted) {
  disk_bench b;
  b.turn("s", {1}, "a");
  b.turn("s", {2}, "b", tokens_t{1, 2});
  b.pass(3s);
  const auto uid = b.described("s").session.record.uid;
  b.end();
  b.open();
  spoil(b, storage::family::versions, storage::keys::of_version(uid, 1));
  b.tell(b.question("s"));
  BOOST_TEST((b.refusal().kind == error_kind::damaged));
  BOOST_TEST(b.answered<removed>(remove_session{{0, 1}, {default_tenant, "s"}}).sessions == 1u);
  BOOST_TEST((b.opened("s").state == session_state::fresh));
  BOOST_TEST(b.states->list()->empty());
  const auto found = storage::verify(*b.db).value();
  BOOST_TEST(found.versions == 0u);
  BOOST_TEST(found.set_aside == 0u);
  BOOST_TEST(found.damaged_count == 0u);
}

BOOST_AUTO_TEST_CASE(a_damaged_session_does_not_take_names_that_begin_as_its_own) {
  disk_bench b;
  b.turn("chat-10", {1}, "a");
  b.end();
  b.open();
  spoil(b, storage::family::sessions, storage::keys::of_session({default_tenant, "chat-10"}));
  b.tell(b.question("chat-10"));
  BOOST_TEST((b.refusal().kind == error_kind::damaged));
  b.tell(b.question("chat-10"));
  BOOST_TEST((b.refusal().kind == error_kind::damaged));  // also once it was set aside
  BOOST_TEST((b.opened("chat-1").state == session_state::fresh));
  BOOST_TEST(b.answered<removed>(remove_session{{0, 1}, {default_tenant, "chat-10"}}).sessions == 1u);
  BOOST_TEST((b.opened("chat-10").state == session_state::fresh));
}

BOOST_AUTO_TEST_CASE(a_damaged_session_is_reported_and_touches_no_other) {
  disk_bench b;
  b.turn("bad", {1}, "a");
  b.turn("good", {1}, "a");
  b.end();
  {
    const auto db = storage::database::open({.directory = b.folder.path() / "db"});
    storage::session_store store(*db);
    auto record = **store.find({default_tenant, "bad"});
    record.head = 9;
    BOOST_REQUIRE(store.commit(record, {}, false));
  }
  b.open();
  b.tell(b.question("bad"));
  BOOST_TEST((b.refusal().kind == error_kind::damaged));
  BOOST_TEST(b.counters.damaged == 1u);
  BOOST_TEST(b.opened("good").base == 1u);
}

// ---------------------------------------------------------------- files

BOOST_AUTO_TEST_CASE(a_session_travels_as_a_file_with_its_state) {
  disk_bench b;
  b.turn("s", {1}, "a");
  b.turn("s", {2, 3}, "b", tokens_t{1, 2, 3});
  const std::string file = b.exported("s");
  const auto taken = b.answered<done>(b.import_of("t", file)).session;
  BOOST_TEST(taken.key.id == "t");
  BOOST_TEST(taken.head == 2u);
  auto o = b.opened("t");
  BOOST_REQUIRE(o.resume.state != nullptr);
  BOOST_TEST((*o.resume.state == *state_after(tokens_t{1, 2, 3})));
  b.tell(release{o.reply, o.lease});

  b.tell(b.import_of("t", file));
  {
    const auto why = b.refusal();
    BOOST_TEST(why.field == "replace");
    BOOST_TEST(why.message == "session 't' already exists; set replace=true to overwrite it");
  }
  b.turn("t", {4}, "c", tokens_t{1, 2, 3, 4});
  const auto before = b.described("t").session.record.uid;
  BOOST_TEST(b.answered<done>(b.import_of("t", file, true)).session.versions == 2u);
  BOOST_TEST((b.forgotten == std::vector<session_uid>{before}));
  o = b.opened("t");
  BOOST_TEST((*o.resume.state == *state_after(tokens_t{1, 2, 3})));
  b.tell(b.import_of("t", file, true));  // while a turn runs
  BOOST_TEST((b.refusal().kind == error_kind::conflict));
  b.crash();
  b.open();
  BOOST_TEST(b.described("t").versions.size() == 2u);
  // Without its state, and from a state on disk.
  b.tell(export_session{{0, 1}, {default_tenant, "s"}, false});
  const auto light = std::get<session_bytes>(b.take<answer>().body).file;
  BOOST_TEST(light.size() < file.size());
  BOOST_TEST(b.answered<done>(b.import_of("light", light)).session.head == 2u);
  BOOST_TEST(b.opened("light").resume.feed.size() == 3u);
  b.tell(export_session{{0, 1}, {default_tenant, "nobody"}, true});
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
}

BOOST_AUTO_TEST_CASE(what_is_in_a_file_is_checked) {
  disk_bench b;
  b.turn("s", {1, 999}, "a");
  const std::string file = b.exported("s");
  test::random_cases random;
  for (int i = 0; i < 200; ++i) {
    std::string torn = file;
    if (i % 2)
      torn.resize(random.below(static_cast<std::uint32_t>(torn.size())));
    else
      torn[random.below(static_cast<std::uint32_t>(torn.size()))] ^= static_cast<char>(1 + random.below(255));
    b.tell(b.import_of("torn", torn));
    const auto kind = b.refusal().kind;
    BOOST_REQUIRE((kind == error_kind::bad_file || kind == error_kind::conflict));
  }
  b.end();
  b.model = "model-b";
  b.open();
  b.tell(b.import_of("t", file));
  BOOST_TEST((b.refusal().kind == error_kind::conflict));
  b.close();
  b.model = "model-a";
  b.vocab = 999;  // the file has a token that this model does not
  b.open();
  b.tell(b.import_of("t", file));
  BOOST_TEST((b.refusal().kind == error_kind::bad_file));
  b.close();
  b.vocab = 1000;
  b.options.sessions.signature_key = "secret";
  b.open();
  b.tell(b.import_of("t", file));
  BOOST_TEST((b.refusal().kind == error_kind::forbidden));
  BOOST_TEST(b.answered<done>(b.import_of("t", b.exported("s"))).session.head == 1u);
  b.close();
  b.options.sessions.file_bytes_max = 64;
  b.open();
  b.tell(b.import_of("u", file));
  BOOST_TEST((b.refusal().kind == error_kind::too_large));
}

BOOST_AUTO_TEST_CASE(numbers_in_a_file_are_not_believed) {
  keeper_bench b(true);  // in memory, where the bytes of sessions have a ceiling
  b.open();
  b.turn("mine", {1}, "a");
  const auto file = b.answered<session_bytes>(export_session{{0, 1}, {default_tenant, "mine"}, false}).file;
  const auto import_with = [&](auto change) {
    auto parts = storage::read_session_file(file, {}).value();
    change(parts.session);
    b.tell(import_session{{0, 1}, {default_tenant, "t"}, storage::write_session_file(parts, {}), true});
  };
  import_with([](session_record& s) { s.log_bytes = std::uint64_t{1} << 63; });
  BOOST_TEST(std::get<done>(b.take<answer>().body).session.log_bytes < 200u);
  BOOST_TEST(b.described("mine").versions.size() == 1u);
  import_with([](session_record& s) { s.last_version = 0xffffffff; });  // the next number would be 0
  BOOST_TEST((b.refusal().kind == error_kind::bad_file));
  import_with([](session_record& s) { s.last_version = storage::version_in_file_max; });
  b.take<answer>();
  BOOST_TEST(b.turn("t", {2}, "b").version == storage::version_in_file_max + 1);
}

BOOST_AUTO_TEST_CASE(a_file_has_no_longer_labels_than_the_api_takes) {
  disk_bench b;
  b.turn("s", {1}, "a");
  auto parts = storage::read_session_file(b.exported("s"), {}).value();
  parts.session.metadata = {{std::string(100'000, 'n'), "value"}};
  b.tell(b.import_of("t", storage::write_session_file(parts, {})));
  const auto why = b.refusal();
  BOOST_TEST((why.kind == error_kind::bad_file));
  BOOST_TEST(why.field == "metadata");
  parts.session.metadata = {{std::string(64, 'n'), std::string(512, 'v')}};
  BOOST_TEST(b.answered<done>(b.import_of("t", storage::write_session_file(parts, {}))).session.metadata.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_crash_behind_a_replacement_leaves_nothing_of_the_old_one_in_the_log) {
  disk_bench b;
  b.turn("s", {1}, "a");
  const std::string file = b.exported("s");
  b.turn("s", {2}, "b", tokens_t{1, 2});
  b.pass(3s);
  b.sessions->handle(b.import_of("s", file, true));
  BOOST_REQUIRE(b.runner.step());
  BOOST_TEST(b.take<answer>().reply.number == 1u);
  b.crash();  // before what is left of the old one could go
  b.open();
  BOOST_TEST(b.described("s").versions.size() == 1u);
  BOOST_TEST(storage::verify(*b.db).value().damaged_count == 0u);
}

BOOST_AUTO_TEST_CASE(a_full_disk_takes_no_other_head) {
  disk_bench b;
  b.turn("s", {1}, "a");
  b.turn("s", {2}, "b");
  b.fill_disk();
  b.tell(rollback_session{{0, 1}, {default_tenant, "s"}, 1});
  BOOST_TEST((b.refusal().kind == error_kind::no_space));
  BOOST_TEST(b.described("s").session.record.head == 2u);
  b.recover();
  BOOST_TEST(b.answered<done>(rollback_session{{0, 1}, {default_tenant, "s"}, 1}).session.head == 1u);
  b.crash();
  b.open();
  BOOST_TEST(b.described("s").session.record.head == 1u);
}

BOOST_AUTO_TEST_CASE(a_full_disk_takes_no_file) {
  disk_bench b;
  b.turn("s", {1}, "a");
  const std::string file = b.exported("s");
  b.fill_disk();
  b.tell(b.import_of("t", file));
  BOOST_TEST((b.refusal().kind == error_kind::no_space));
  b.tell(b.import_of("s", file, true));
  BOOST_TEST((b.refusal().kind == error_kind::no_space));
  b.recover();
  BOOST_TEST(b.described("s").versions.size() == 1u);
  b.crash();
  b.open();
  BOOST_TEST(b.described("s").versions.size() == 1u);
  b.tell(describe_session{{0, 1}, {default_tenant, "t"}, false, {}});
  BOOST_TEST((b.refusal().kind == error_kind::not_found));
}

BOOST_AUTO_TEST_CASE(large_sessions_go_into_the_log_ahead_of_their_record) {
  keeper_bench b;
  b.options.sessions.file_bytes_max = 64 << 20;
  b.open();
  const std::string text(300'000, 'x');
  for (token_id i = 1; i <= 5; ++i) b.turn("s", {i}, text);
  b.pass(3s);
  const session_key s{default_tenant, "s"};
  const auto file = b.answered<session_bytes>(export_session{{0, 1}, s, false}).file;
  const auto versions = [&] {
    std::size_t count = 0;
    BOOST_REQUIRE(b.db->internals().scan(storage::family::versions, {}, {}, [&](auto, auto) { return ++count > 0; }));
    return count;
  };
  const auto begin = [&](const char* to) {
    b.sessions->handle(import_session{{0, 1}, {default_tenant, to}, file, false, true});
    BOOST_REQUIRE(b.runner.jobs.size() == 1u);
    auto work = std::move(b.runner.jobs.front());
    b.runner.jobs.pop_front();
    return work();
  };
  auto rest = begin("t");
  BOOST_TEST(versions() == 10u);  // and the log's thread has done nothing yet
  BOOST_TEST(b.silent());
  BOOST_TEST(storage::verify(*b.db).value().damaged_count == 0u);
  rest = nullptr;
  b.crash();
  b.open();
  BOOST_TEST(versions() == 5u);  // unknown records are gone
  BOOST_TEST(b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "", 10}).sessions.size() == 1u);

  begin("t")();
  BOOST_TEST(b.take<answer>().reply.number == 1u);
  b.crash();
  b.open();
  BOOST_TEST(versions() == 10u);
  BOOST_TEST(b.described("t", true).versions.back()->text == text);
  b.answered<removed>(remove_session{{0, 1}, {default_tenant, "t"}, false});

  // Another session takes the name meanwhile.
  rest = begin("t");
  b.turn("t", {7}, "mine");
  rest();
  b.pump();
  BOOST_TEST((b.refusal().kind == error_kind::conflict));
  BOOST_TEST(versions() == 6u);
  BOOST_TEST(b.described("t").versions.size() == 1u);
  b.answered<removed>(remove_session{{0, 1}, {default_tenant, "t"}, false});
  BOOST_TEST(storage::verify(*b.db).value().damaged_count == 0u);
}

namespace {

/// Spoils the blocks of data on disk that hold a family, and not what is read when the database is opened.
void spoil_blocks(disk_bench& b, std::string_view family) {
  std::vector<rocksdb::LiveFileMetaData> files;
  b.db->internals().db->GetLiveFilesMetaData(&files);
  int spoilt = 0;
  for (const auto& file : files) {
    if (file.column_family_name != family) continue;
    std::fstream bytes(file.db_path + file.name, std::ios::in | std::ios::out | std::ios::binary);
    bytes.write("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    BOOST_REQUIRE(bytes.good());
    ++spoilt;
  }
  BOOST_REQUIRE(spoilt > 0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_session_that_cannot_be_removed_is_not_a_disk_that_rejects_writes) {
  disk_bench b;
  const auto o = b.opened("s");
  note_running n{o.lease, {}};
  n.so_far.tokens = tokens_t(20, 1);
  b.tell(std::move(n));
  BOOST_REQUIRE(b.db->internals().flush({}));
  spoil_blocks(b, to_string(storage::family::running));
  b.fill_disk();
  BOOST_TEST((b.turn("other", {1}, "a").durable == durability::memory));
  b.tell(release{o.reply, o.lease});
  b.recover();
  BOOST_TEST((b.turn("other", {2}, "b", tokens_t{1, 2}).durable == durability::process));
}

BOOST_AUTO_TEST_CASE(a_read_of_a_state_that_fails_once_is_tried_again) {
  for (const std::uint64_t faults : {std::uint64_t{1}, std::uint64_t{1'000'000}}) {
    disk_bench b;
    b.turn("s", {1, 2}, "ab");
    b.pass(3s);
    BOOST_REQUIRE(b.db->internals().flush({}));
    b.end();
    b.open();
    const auto before = b.files->faults();
    (void)b.described("s");  // reads the session
    b.files->plan({.kind = fault_kind::io_error, .reads = true, .first = 1, .count = faults});
    const auto o = b.opened("s");
    b.files->heal();
    BOOST_TEST(b.files->faults() > before);
    BOOST_TEST((o.resume.state != nullptr) == (faults == 1));
    b.pump();
    BOOST_TEST(b.states->list()->size() == (faults == 1 ? 1u : 0u));
  }
}
