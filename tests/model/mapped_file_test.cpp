// What cannot be mapped is told apart, and opening a large checkpoint reads its directory only.
#include "model/files/mapped_file.hpp"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <stdexcept>

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
