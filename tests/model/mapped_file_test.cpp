// What cannot be mapped is told apart, and opening a large checkpoint reads its directory only.
#include "model/mapping/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "model/checkpoint.hpp"
#include "tests/model/checkpoint_builders.hpp"
#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

/// How much of a mapped file is in this process's memory, in KB; as the kernel counts it, mapping by mapping.
std::size_t resident_kb(const std::filesystem::path& path) {
  std::ifstream mappings("/proc/self/smaps");
  bool ours = false;
  for (std::string line; std::getline(mappings, line);) {
    if (line.ends_with(path.string())) ours = true;
    if (ours && line.starts_with("Rss:")) return std::stoul(line.substr(4));
  }
  throw std::runtime_error(path.string() + " is not mapped");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mapped_files)

BOOST_AUTO_TEST_CASE(what_cannot_be_mapped_is_told_apart) {
  const temporary_folder folder;
  const auto kind_of = [&](const std::filesystem::path& path) {
    const auto file = model::mapped_file::open(path);
    BOOST_REQUIRE(!file);
    BOOST_TEST(file.error().message.starts_with(path.string() + ": "));
    return file.error().kind;
  };
  BOOST_TEST((kind_of(folder.path() / "absent") == error_kind::missing_file));
  BOOST_TEST((kind_of(folder.path()) == error_kind::bad_file));
  const auto pipe = folder.path() / "pipe";
  BOOST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  BOOST_TEST((kind_of(pipe) == error_kind::bad_file));  // and does not wait for a writer
  BOOST_TEST((kind_of("/dev/zero") == error_kind::bad_file));
  const auto empty = folder.path() / "empty";
  write_file(empty, "");
  BOOST_TEST((kind_of(empty) == error_kind::bad_file));
  BOOST_TEST((kind_of(empty / "below") == error_kind::missing_file));
}

// Without the guard, the access ends the process.
BOOST_AUTO_TEST_CASE(lost_pages_read_as_zeros_and_are_told) {
  const temporary_folder folder;
  const auto path = folder.path() / "file", other_path = folder.path() / "other";
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (int round = 0; round < 2; ++round) {
    write_file(path, std::string(5 * page - 7, 'x'));
    write_file(other_path, std::string(5 * page, 'y'));
    auto file = model::mapped_file::open(path), other = model::mapped_file::open(other_path);
    BOOST_REQUIRE((file && other));
    BOOST_TEST(file->unchanged());
    std::filesystem::resize_file(path, page + 1);
    BOOST_TEST(!file->unchanged());  // before any access too
    const model::mapped_file moved = std::move(*file);
    std::vector<std::thread> readers;
    std::atomic<std::size_t> zeros{0};
    for (std::size_t i = 0; i < 4; ++i)
      readers.emplace_back([&, i] { zeros += moved.bytes()[(4 - i) * page] == std::byte{0}; });
    for (auto& reader : readers) reader.join();
    BOOST_TEST(zeros == 3u);
    BOOST_TEST((moved.bytes()[page] == std::byte{'x'}));
    BOOST_TEST((moved.bytes().back() == std::byte{0}));
    std::filesystem::resize_file(path, 5 * page - 7);
    BOOST_TEST(!moved.unchanged());
    BOOST_TEST(other->unchanged());
    BOOST_TEST((other->bytes().back() == std::byte{'y'}));
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_is_written_to_is_told_and_one_that_is_replaced_is_not) {
  const temporary_folder folder;
  const auto path = folder.path() / "file";
  write_file(path, "some bytes");
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const auto file = model::mapped_file::open(path);
  BOOST_REQUIRE(file);
  write_file(folder.path() / "new", "others");
  std::filesystem::rename(folder.path() / "new", path);
  BOOST_TEST(file->unchanged());
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const auto again = model::mapped_file::open(path);
  BOOST_REQUIRE(again);
  write_file(path, "sixsix");
  BOOST_TEST(!again->unchanged());
}

// As before, that of an access outside of all mapped files, and one that another process sends.
BOOST_AUTO_TEST_CASE(other_bus_errors_end_the_process) {
  const temporary_folder folder;
  const auto path = folder.path() / "file", foreign = folder.path() / "foreign";
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  write_file(path, "some bytes");
  write_file(foreign, std::string(2 * page, 'x'));
  for (const bool sent : {false, true}) {
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
      const rlimit no_core{0, 0};
      ::setrlimit(RLIMIT_CORE, &no_core);
      ::alarm(30);
      std::signal(SIGBUS, SIG_DFL);
      const auto file = model::mapped_file::open(path);
      const int descriptor = ::open(foreign.c_str(), O_RDWR);
      void* const start = ::mmap(nullptr, 2 * page, PROT_READ, MAP_PRIVATE, descriptor, 0);
      if (!file || start == MAP_FAILED || ::ftruncate(descriptor, 1) != 0) ::_exit(1);
      if (sent) ::kill(::getpid(), SIGBUS);
      ::_exit(2 + static_cast<const volatile char*>(start)[page]);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST((WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS), "status " << status);
  }
}

BOOST_AUTO_TEST_CASE(a_mapping_outlives_its_name_and_moves) {
  const temporary_folder folder;
  write_file(folder.path() / "file", "some bytes");
  auto file = model::mapped_file::open(folder.path() / "file");
  BOOST_REQUIRE(file);
  std::filesystem::remove(folder.path() / "file");
  const model::mapped_file moved = std::move(*file);
  BOOST_TEST(model::text_at(moved.bytes(), 0, moved.bytes().size()) == "some bytes");
  BOOST_TEST(file->bytes().empty());
}

// 14 GB that take no room on the disk: the storages are holes. Reading one of the 1,000 tensors would show.
BOOST_AUTO_TEST_CASE(opening_a_large_pth_touches_its_directory_only) {
  constexpr std::int64_t elements = 7 << 20;
  const temporary_folder folder;
  const auto path = folder.path() / "large.pth";
  std::string items;
  zip_builder archive;
  for (int i = 0; i < 1000; ++i) {
    const std::string key = std::to_string(i);
    const auto storage = pickled::storage("BFloat16Storage", key, elements);
    items += pickled::text(key) + pickled::tensor(storage, 0, {elements / 1024, 1024}, {1024, 1});
  }
  archive.zip64(true).add("m/data.pkl", pickled::whole(pickled::dict(items)));
  for (int i = 0; i < 1000; ++i)
    archive.add("m/data/" + std::to_string(i), "", {"", 0, 8, static_cast<std::uint64_t>(elements) * 2});
  archive.write(path);

  const auto file = model::checkpoint::open(path);
  BOOST_REQUIRE(file);
  BOOST_TEST(file->tensors().size() == 1000u);
  BOOST_TEST(file->file_bytes() > 14'000'000'000u);
  BOOST_TEST(resident_kb(path) < 32u * 1024);  // some pages for each member
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
