// Shows what `skein state` does to the sessions in a directory, and what it says when it cannot; by running the built
// program on directories that the storage library wrote.
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <fstream>

#include <simdjson.h>
#include "storage/database/database_impl.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/sessions/session_file.hpp"
#include "storage/sessions/session_store.hpp"
#include "storage/states/state_store.hpp"
#include "tests/cli/run_skein.hpp"
#include "tests/storage/random_records.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using namespace skein::storage;

namespace {

const std::string secret = "kx7Q2vLm9ZpR4tWc8YbN3sHd6JfGa1Ue";  // does not shrink, so that it can be found in files

/// A state directory with sessions s0, s1, ... of a few versions each, all of whose states are stored. Before the turns
/// of s2 others had failed, which shows in its states' keys.
struct state_folder {
  test::temporary_folder folder;
  std::vector<test::random_tree> trees;

  explicit state_folder(std::uint32_t sessions = 3) {
    test::random_cases random;
    const auto db = open();
    session_store store(db);
    state_store states(db, test::small_layout(), "model", dtype::f32);
    for (std::uint32_t i = 0; i < sessions; ++i) {
      auto tree = test::random_tree_of(random, store.new_uid().value(), "s" + std::to_string(i), 3);
      tree.session.model_identity = "model";
      tree.versions[1].answer = secret + std::to_string(i);
      BOOST_REQUIRE(store.commit(tree.session, tree.versions, false));
      for (const auto& v : tree.versions) {
        const std::uint64_t failures = i == 2 ? v.id : 0;
        const state_key key{tree.session.uid, failures << 32 | v.id};
        BOOST_REQUIRE(states.put({"model", default_tenant, key, v.total_tokens}, state()));
      }
      trees.push_back(std::move(tree));
    }
  }
  static model::state_value state() {
    test::random_cases random;
    return test::random_state(random, test::small_layout());
  }
  std::shared_ptr<database> open() const { return test::opened(database_directory(folder.path())); }
  std::string path(const std::string& name) const { return folder.path() / name; }

  test::outcome run(std::vector<std::string> words) const {
    words.insert(words.begin(), "state");
    words.insert(words.end(), {"--state-dir", folder.path()});
    return test::run_skein(words);
  }
  std::string succeed(const std::vector<std::string>& words) const {
    const auto ended = run(words);
    BOOST_REQUIRE_MESSAGE(ended.exit_code == 0, words.front() << ": " << ended.err);
    return ended.out;
  }
  void fail(const std::vector<std::string>& words, int code, const std::string& needle) const {
    const auto ended = run(words);
    BOOST_TEST(ended.exit_code == code, words.front() << " ended with " << ended.exit_code);
    BOOST_TEST(ended.err.find(needle) != std::string::npos, ended.err << " lacks " << needle);
    BOOST_TEST(ended.err.starts_with("skein: "), ended.err);
  }
  /// Whether the bytes stand in any file.
  bool holds(const std::string& bytes) const {
    for (const auto& file : std::filesystem::recursive_directory_iterator(database_directory(folder.path()))) {
      if (test::content_of(file.path()).find(bytes) != std::string::npos) return true;
    }
    return false;
  }
};

/// The session under a name has the versions and states of `tree`, as far as `version`'s way goes.
void expect_like(const state_folder& in, const std::string& id, const test::random_tree& tree, std::size_t versions) {
  const auto db = in.open();
  session_store store(db);
  const auto session = store.find({default_tenant, id}).value();
  BOOST_REQUIRE(session.has_value());
  const auto found = store.versions(session->uid).value();
  BOOST_TEST(found.size() == versions);
  state_store states(db, test::small_layout(), "model", dtype::f32);
  for (const auto& v : found) {
    BOOST_TEST((v == tree.versions[v.id - 1]));
    const auto shared = store.shares().find(session->uid, v.id);
    const auto state = states.get(shared.value_or(state_key{session->uid, v.id})).value();
    BOOST_REQUIRE(state.has_value());
    BOOST_TEST((state->state == state_folder::state()));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(sessions_are_listed_and_described) {
  const state_folder in;
  const auto text = in.succeed({"list"});
  for (const auto* name : {"s0\t3 versions", "s1\t3 versions", "s2\t3 versions"})
    BOOST_TEST(text.find(name) != std::string::npos, text);
  BOOST_TEST(text.find("\ntenant default: 3 sessions, 9 versions, ") != std::string::npos, text);
  simdjson::dom::parser parser;
  const simdjson::dom::array all = parser.parse(in.succeed({"list", "--json"}));
  BOOST_TEST(all.size() == 3u);
  BOOST_TEST(std::string_view(all.at(1)["id"]) == "s1");
  BOOST_TEST(std::string_view(all.at(1)["model"]) == "model");
  BOOST_TEST(in.succeed({"list", "--tenant", "nobody"}) ==
             "no sessions of tenant 'nobody'; tenants with sessions (--tenant): default\n");

  const auto about = in.succeed({"info", "s1"});
  BOOST_TEST(about.find("version 3") != std::string::npos, about);
  BOOST_TEST(about.find("state stored") != std::string::npos, about);
  BOOST_TEST(about.find(secret) == std::string::npos);
  const simdjson::dom::element one = parser.parse(in.succeed({"info", "s1", "--json"}));
  BOOST_TEST(simdjson::dom::array(one["tree"]).size() == 3u);
  BOOST_TEST(bool(one["tree"].at(2)["state_stored"]));
  in.fail({"info", "s9"}, 66, "no session 's9'");
}

BOOST_AUTO_TEST_CASE(a_session_goes_to_another_directory_as_a_file) {
  const state_folder from, to(1);
  const std::string file = from.path("session"), key = from.path("key"), other = from.path("other");
  std::ofstream(key) << "a key that both servers know\n";
  std::ofstream(other) << "another\n";
  from.succeed({"export", "s2", "--out", file, "--key-file", key});
  to.fail({"import", file, "--key-file", other}, 77, "signed with another key");
  to.succeed({"import", file, "--key-file", key});
  expect_like(to, "s2", from.trees[2], 3);
  to.fail({"import", file}, 65, "already");
  to.succeed({"import", file, "--replace"});
  to.succeed({"import", file, "--as", "copy"});
  expect_like(to, "s2", from.trees[2], 3);
  expect_like(to, "copy", from.trees[2], 3);
  expect_like(to, "s0", to.trees[0], 3);
  to.fail({"import", file, "--as", std::string(257, 'a')}, 64, "256 bytes");

  from.succeed({"export", "s2", "--out", file, "--no-states"});
  from.fail({"import", file, "--as", "x", "--key-file", key}, 77, "not signed");
  std::fstream(file, std::ios::binary | std::ios::in | std::ios::out).seekp(40).put('\x7f');
  from.fail({"import", file, "--as", "x"}, 65, "damaged");
  from.fail({"import", from.path("none")}, 66, "none");
  from.fail({"export", "s2", "--out", from.path("no/such/folder")}, 74, "cannot write");
  BOOST_TEST(to.succeed({"verify"}).find("damaged         0") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_file_with_longer_labels_than_the_api_takes_is_refused) {
  const state_folder in(1);
  session_file file{in.trees[0].session, in.trees[0].versions, {}};
  file.session.metadata = {{std::string(100'000, 'n'), "value"}};
  const std::string path = in.path("labels.session");
  std::ofstream(path, std::ios::binary) << write_session_file(file, "");
  in.fail({"import", path, "--as", "x"}, 65, "metadata: a name of 100000 bytes");
}

BOOST_AUTO_TEST_CASE(a_fork_has_the_way_to_its_version) {
  const state_folder in;
  const auto& tree = in.trees[0];
  std::size_t length = 0;
  for (auto at = tree.session.head; at != beginning; at = tree.versions[at - 1].parent) ++length;
  in.succeed({"fork", "s0", "branch"});
  expect_like(in, "branch", tree, length);
  in.succeed({"fork", "s0", "first", "--version-number", "1"});
  expect_like(in, "first", tree, 1);
  in.succeed({"fork", "s0", "empty", "--version-number", "0"});
  in.fail({"fork", "s0", "x", "--version-number", "9"}, 66, "no version 9");
  in.fail({"fork", "s0", "s1"}, 65, "already");
  in.succeed({"verify"});

  // It lives on the states of its origin, and keeps them.
  const auto states = [&] { return in.succeed({"verify"}).find("states          9") != std::string::npos; };
  BOOST_TEST(states());
  const std::string file = in.path("branch.session");
  in.succeed({"delete", "s0"});
  expect_like(in, "branch", tree, length);
  BOOST_TEST(in.succeed({"info", "branch"}).find("state stored") != std::string::npos);
  in.succeed({"export", "branch", "--out", file});
  for (const char* id : {"branch", "first", "empty"}) in.succeed({"delete", id});
  BOOST_TEST(in.succeed({"verify"}).find("states          6") != std::string::npos);
  in.succeed({"import", file});
  expect_like(in, "branch", tree, length);
}

BOOST_AUTO_TEST_CASE(deletion_leaves_nothing_behind) {
  const state_folder in;
  BOOST_TEST(in.holds(secret + "1"));
  in.succeed({"delete", "s1"});
  in.succeed({"compact"});
  BOOST_TEST(!in.holds(secret + "1"));
  BOOST_TEST(!in.holds(keys::of_session({default_tenant, "s1"})));
  BOOST_TEST(in.holds(secret + "0"));
  expect_like(in, "s0", in.trees[0], 3);
  in.fail({"delete", "s1"}, 66, "no session");
}

BOOST_AUTO_TEST_CASE(verification_names_every_damaged_record) {
  const state_folder in;
  BOOST_TEST(in.succeed({"verify"}).find("states          9") != std::string::npos);
  const auto uid = in.trees[1].session.uid;
  BOOST_REQUIRE(in.open()->internals().write(safety::logged, [&](change_list& changes) {
    changes.put(family::versions, keys::of_version(uid, 2), "torn");
    changes.put(family::states, keys::of_state({uid, 3}) + std::string(4, '\0'), "torn");
    changes.erase(family::sessions, keys::of_session(in.trees[2].session.key));
  }));
  const std::string number = std::to_string(uid);
  for (int again = 0; again < 2; ++again) {  // it changes nothing
    const auto ended = in.run({"verify"});
    BOOST_TEST(ended.exit_code == 65);
    BOOST_TEST(ended.err == "skein: 3 records are damaged\n");
    for (const auto& record :
         {"version 2 of session number " + number, "state of version 3 of session number " + number,
          "versions of session number " + std::to_string(in.trees[2].session.uid) + ": there is no such session"})
      BOOST_TEST(ended.out.find(record) != std::string::npos, ended.out << " lacks " << record);
  }
  simdjson::dom::parser parser;
  const simdjson::dom::element report = parser.parse(in.run({"verify", "--json"}).out);
  BOOST_TEST(std::uint64_t(report["damaged"]) == 3u);
  BOOST_TEST(simdjson::dom::array(report["findings"]).size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_backup_is_a_state_directory) {
  const state_folder in;
  const test::temporary_folder other;
  const std::string into = other.path() / "backup";
  in.succeed({"backup", into});
  in.succeed({"delete", "s0"});
  const auto listed = test::run_skein({"state", "list", "--state-dir", into});
  BOOST_TEST(listed.exit_code == 0);
  BOOST_TEST(listed.out.find("s0\t") != std::string::npos, listed.out);
  BOOST_TEST(test::run_skein({"state", "verify", "--state-dir", into}).exit_code == 0);
  in.fail({"backup", into}, 65, "already exists");
  in.fail({"backup", "/proc/no"}, 74, "cannot create");
}

bool is_root(boost::unit_test::test_unit_id) { return ::geteuid() == 0; }

/// Otherwise the service, which runs as its own user, could not open its database after a command of root.
BOOST_AUTO_TEST_CASE(root_leaves_no_files_of_its_own, *boost::unit_test::precondition(is_root)) {
  namespace fs = std::filesystem;
  constexpr uid_t service = 65534;
  const state_folder in;
  const auto each_file = [&](const auto& act) {
    act(in.folder.path());
    for (const auto& entry : fs::recursive_directory_iterator(in.folder.path())) act(entry.path());
  };
  each_file([](const fs::path& path) { BOOST_REQUIRE(::chown(path.c_str(), service, service) == 0); });
  in.succeed({"fork", "s0", "copy"});
  in.succeed({"backup", in.path("backup")});
  fs::remove(database_directory(in.folder.path()) / "CURRENT");
  in.succeed({"repair"});
  each_file([](const fs::path& path) {
    struct stat found {};
    BOOST_REQUIRE(::stat(path.c_str(), &found) == 0);
    BOOST_TEST((found.st_uid == service && found.st_gid == service), path);
  });
  const test::temporary_folder other;  // of root
  in.succeed({"export", "copy", "--out", other.path() / "file"});
  in.succeed({"import", other.path() / "file", "--as", "again"});
  in.fail({"backup", other.path() / "backup"}, 74, "the user of the server must be able to write there");
}

BOOST_AUTO_TEST_CASE(a_damaged_database_is_repaired) {
  const state_folder in;
  BOOST_TEST(in.succeed({"repair"}).find("the database is sound; nothing was changed") != std::string::npos);
  const auto directory = database_directory(in.folder.path());
  std::filesystem::remove(directory / "CURRENT");
  in.fail({"list"}, 65, "skein state repair --state-dir " + in.folder.path().string());
  in.fail({"repair", "--dry-run"}, 65, "--dry-run");
  simdjson::dom::parser parser;
  const simdjson::dom::element report = parser.parse(in.succeed({"repair", "--json"}));
  BOOST_TEST(std::uint64_t(report["sessions"]) == 3u);
  BOOST_TEST(std::uint64_t(report["lost"]) == 0u);
  BOOST_TEST(std::filesystem::exists(std::string(std::string_view(report["old_database"]))));
  BOOST_TEST(std::uint64_t(report["states"]) == 9u);
  for (std::size_t i = 0; i < 2; ++i) expect_like(in, "s" + std::to_string(i), in.trees[i], 3);
  BOOST_TEST(in.succeed({"verify"}).find("states          9") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_running_server_keeps_its_directory) {
  const state_folder in;
  const auto server = in.open();
  in.fail({"repair"}, 75, "a server is running on");
  in.fail({"repair", "--dry-run"}, 75, "a server is running on");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"list"},
                                             {"info", "s0"},
                                             {"export", "s0", "--out", in.path("f")},
                                             {"delete", "s0"},
                                             {"fork", "s0", "x"},
                                             {"verify"},
                                             {"compact"},
                                             {"backup", in.path("b")}})
    in.fail(words, 65, "a server is running on");
  BOOST_TEST(!std::filesystem::exists(in.path("b")));
}

BOOST_AUTO_TEST_CASE(a_directory_that_is_none) {
  const test::temporary_folder empty;
  BOOST_TEST(test::run_skein({"state", "repair", "--state-dir", empty.path() / "no"}).exit_code == 66);
  for (const std::string action : {"list", "verify", "compact"}) {
    const auto ended = test::run_skein({"state", action, "--state-dir", empty.path() / "no"});
    BOOST_TEST(ended.exit_code == 66);
    BOOST_TEST(ended.err.find("no database") != std::string::npos, ended.err);
  }
  BOOST_TEST(!std::filesystem::exists(empty.path() / "no"));
  BOOST_TEST(test::run_skein({"state"}).exit_code == 64);
  BOOST_TEST(test::run_skein({"state", "list"}).exit_code == 64);
}
