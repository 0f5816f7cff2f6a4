// Shows that an output file appears complete or not at all, also if a signal ends the process; that links are followed,
// modes are kept, and pipes are not replaced.
#include "cli/output/output_file.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <fstream>

#include "tests/support/oracle.hpp"

using namespace skein;
using cli::output_file;
using cli::special_files;
namespace fs = std::filesystem;

namespace {

struct output_folder {
  test::temporary_folder folder;

  fs::path path(const std::string& name) const { return folder.path() / name; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()));
  }
  /// Writes `text`; with `commit`, to its place.
  void write(const fs::path& to, const std::string& text, bool commit = true) const {
    auto file = output_file::create(to, special_files::refuse);
    BOOST_REQUIRE(file);
    std::ofstream(file->path()) << text;
    if (commit) BOOST_TEST(!!file->commit());
  }
};

/// How a process ends that is sent the signal before it has completed its output.
int ended_by(int signal, const fs::path& out, bool ignored) {
  const pid_t child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    if (ignored) std::signal(signal, SIG_IGN);
    auto file = output_file::create(out, special_files::refuse);
    if (!file) ::_exit(1);
    std::ofstream(file->path()) << "half";
    ::raise(signal);
    ::_exit(file->commit() ? 0 : 2);
  }
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

unsigned mode_of(const fs::path& path) { return static_cast<unsigned>(fs::status(path).permissions()); }

}  // namespace

BOOST_AUTO_TEST_CASE(a_file_appears_when_it_is_committed) {
  const output_folder in;
  in.write(in.path("out"), "half", false);
  BOOST_TEST(in.files() == 0u);
  in.write(in.path("out"), "first");
  in.write(in.path("out"), "half", false);
  BOOST_TEST(test::content_of(in.path("out")) == "first");
  in.write(in.path("out"), "second");
  BOOST_TEST(test::content_of(in.path("out")) == "second");
  BOOST_TEST(in.files() == 1u);
}

BOOST_AUTO_TEST_CASE(what_an_earlier_process_left_is_replaced) {
  const output_folder in;
  std::ofstream(in.path("mine")) << "mine";
  fs::create_symlink("mine", in.path("out.partial-" + std::to_string(::getpid())));
  in.write(in.path("out"), "new");
  BOOST_TEST(test::content_of(in.path("out")) == "new");
  BOOST_TEST(test::content_of(in.path("mine")) == "mine");
  BOOST_TEST(in.files() == 2u);
}

BOOST_AUTO_TEST_CASE(a_replaced_file_keeps_its_mode) {
  const output_folder in;
  for (const unsigned mode : {0600u, 0640u, 0400u}) {
    std::ofstream(in.path("out")) << "old";
    fs::permissions(in.path("out"), static_cast<fs::perms>(mode));
    {
      auto file = output_file::create(in.path("out"), special_files::refuse);
      BOOST_REQUIRE(file);
      BOOST_TEST(mode_of(file->path()) == 0600u);  // other users cannot read it before either
      BOOST_TEST(!!file->commit());
    }
    BOOST_TEST(mode_of(in.path("out")) == mode);
    fs::remove(in.path("out"));
  }
  const auto mask = ::umask(027);
  in.write(in.path("new"), "new");
  ::umask(mask);
  BOOST_TEST(mode_of(in.path("new")) == 0640u);
}

BOOST_AUTO_TEST_CASE(links_are_followed) {
  const output_folder in;
  fs::create_directory(in.path("there"));
  fs::create_symlink("there/real", in.path("second"));
  fs::create_symlink(in.path("second"), in.path("out"));
  in.write(in.path("out"), "new");  // a link to no file yet
  in.write(in.path("out"), "newer");
  BOOST_TEST(fs::is_symlink(in.path("out")));
  BOOST_TEST(fs::is_symlink(in.path("second")));
  BOOST_TEST(test::content_of(in.path("there/real")) == "newer");
  fs::create_symlink("ring", in.path("ring"));
  BOOST_TEST(!output_file::create(in.path("ring"), special_files::refuse));
}

BOOST_AUTO_TEST_CASE(pipes_and_folders_are_not_replaced) {
  const output_folder in;
  BOOST_REQUIRE(::mkfifo(in.path("pipe").c_str(), 0600) == 0);
  fs::create_symlink("pipe", in.path("link"));
  for (const auto& path : {in.path("pipe"), in.path("link")}) {
    const auto refused = output_file::create(path, special_files::refuse);
    BOOST_REQUIRE(!refused);
    BOOST_TEST(refused.error().message == path.string() + ": is not a regular file; give a file name");
    auto in_place = output_file::create(path, special_files::write_in_place);
    BOOST_REQUIRE(in_place);
    BOOST_TEST(in_place->path() == path);
    BOOST_TEST(!!in_place->commit());
  }
  BOOST_TEST(fs::is_fifo(in.path("pipe")));
  BOOST_TEST(!output_file::create(in.folder.path(), special_files::write_in_place));
  BOOST_TEST(in.files() == 2u);
}

BOOST_AUTO_TEST_CASE(a_name_without_a_folder_is_in_the_working_directory) {
  const output_folder in;
  const auto before = fs::current_path();
  fs::current_path(in.folder.path());
  in.write("out", "new");
  fs::current_path(before);
  BOOST_TEST(test::content_of(in.path("out")) == "new");
}

BOOST_AUTO_TEST_CASE(a_signal_that_ends_the_process_removes_what_was_written) {
  const output_folder in;
  std::ofstream(in.path("out")) << "old";
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const int status = ended_by(signal, in.path("out"), false);
    BOOST_TEST((WIFSIGNALED(status) && WTERMSIG(status) == signal), signal);
    BOOST_TEST(in.files() == 1u);
    BOOST_TEST(test::content_of(in.path("out")) == "old");
  }
}

BOOST_AUTO_TEST_CASE(an_ignored_signal_stays_ignored) {
  const output_folder in;
  BOOST_TEST(ended_by(SIGHUP, in.path("out"), true) == 0);
  BOOST_TEST(test::content_of(in.path("out")) == "half");
}
