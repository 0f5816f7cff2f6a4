// A .pth whose zip archive lies about itself is refused with a reason: each row is a good archive with one fault.
// Positions inside the records are those of APPNOTE.TXT: directory entry +42 is the local header's offset, and so on.
#include <boost/test/unit_test.hpp>

#include "model/files/checkpoint_limits.hpp"
#include "tests/model/checkpoint_builders.hpp"
#include "tests/model/opened.hpp"

namespace skein::test {
namespace {

std::string one_tensor_pickle() {
  using namespace pickled;
  return whole(dict(text("a") + tensor(storage("FloatStorage", "0", 4), 0, {2, 2}, {2, 1})));
}

zip_builder archive() { return pth_archive(one_tensor_pickle(), {{"0", std::string(16, '\1')}}); }

std::string in_entry(std::size_t member, std::size_t offset, std::uint64_t value, int bytes) {
  const zip_builder zip = archive();
  return patched(zip.file(), zip.directory_entry(member) + offset, little_endian(value, bytes));
}

std::string in_end(std::size_t offset, std::uint64_t value, int bytes) {
  const zip_builder zip = archive();
  return patched(zip.file(), zip.end_record() + offset, little_endian(value, bytes));
}

/// In the zip64 record, which lies 76 bytes before the end record (56 of its own, 20 of the locator).
std::string in_end64(std::size_t offset, std::uint64_t value, int bytes) {
  const zip_builder zip = archive().zip64(true);
  return patched(zip.file(), zip.end_record() - 76 + offset, little_endian(value, bytes));
}

std::string with_member(std::string_view name, std::string_view data, const zip_builder::options& how = {}) {
  return archive().add(name, data, how).file();
}

std::string many_members(std::size_t count) {
  zip_builder zip;
  for (std::size_t i = 0; i < count; ++i) zip.add("m/data/" + std::to_string(i), "");
  return zip.zip64(true).file();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hostile_zip)

BOOST_AUTO_TEST_CASE(the_rows_without_a_fault_open) {
  for (const bool zip64 : {false, true}) {
    const auto file = opened(archive().zip64(zip64).file());
    BOOST_REQUIRE(file);
    BOOST_TEST(file->tensors().size() == 1u);
    BOOST_TEST(file->format() == "pth");
  }
}

BOOST_AUTO_TEST_CASE(padding_and_comment_are_no_fault) {
  zip_builder zip;
  zip.add("m/data.pkl", one_tensor_pickle(), {std::string("FB\x05\x00ZZZZZ", 9), 0, 8, 0});
  zip.add("m/data/0", std::string(16, '\1'), {std::string("FB\x01\x00Z", 5), 0, 8, 0});
  std::string bytes = zip.file() + "a comment";
  bytes = patched(bytes, zip.end_record() + 20, little_endian(9, 2));
  BOOST_TEST(!!opened(bytes));
}

BOOST_AUTO_TEST_CASE(faulty_archives_are_refused) {
  const zip_builder zip = archive();
  const std::string good = zip.file();
  check_refused({
      {"only a local signature", "PK\x03\x04", "no zip end record"},
      {"no end record", good.substr(0, zip.end_record()), "no zip end record"},
      {"cut inside the end record", good.substr(0, good.size() - 1), "no zip end record"},
      {"bytes after the end", good + "x", "no zip end record"},
      {"comment longer than the file", in_end(20, 0xffff, 2), "no zip end record"},
      {"several disks", in_end(4, 1, 2), "multi-part"},
      {"directory on another disk", in_end(6, 1, 2), "multi-part"},
      {"entries of this disk differ", in_end(8, 2, 2), "multi-part"},
      {"more entries than there are", patched(in_end(8, 5, 2), zip.end_record() + 10, little_endian(5, 2)),
       "too short for its 5 entries"},
      {"fewer entries than there are", patched(in_end(8, 1, 2), zip.end_record() + 10, little_endian(1, 2)),
       "bytes after its last entry"},
      {"entries that cannot fit", patched(in_end(8, 999, 2), zip.end_record() + 10, little_endian(999, 2)),
       "too short for its 999 entries"},
      {"entries above the ceiling", patched(in_end(8, 60000, 2), zip.end_record() + 10, little_endian(60000, 2)),
       "more than 32768 zip members"},
      {"directory begins elsewhere", in_end(16, 0, 4), "not where the end record says"},
      {"directory beyond the file", in_end(16, 0xfffffff0, 4), "not where the end record says"},
      {"directory size wrong", in_end(12, 7, 4), "not where the end record says"},
      {"directory size 2^32 - 1 without zip64", in_end(12, 0xffffffff, 4), "not where the end record says"},
      {"entry signature wrong", in_entry(1, 0, 0, 4), "expected an entry of the zip directory"},
      {"entry name runs out", in_entry(2, 28, 0xffff, 2), "extends beyond the directory"},
      {"entry comment runs out", in_entry(2, 32, 1000, 2), "extends beyond the directory"},
      {"encrypted", in_entry(1, 8, 1, 2), "'m/data/0' is encrypted"},
      {"strongly encrypted", in_entry(1, 8, 1u << 6, 2), "is encrypted"},
      {"masked headers", in_entry(1, 8, 1u << 13, 2), "is encrypted"},
      {"deflated", in_entry(0, 10, 8, 2), "is compressed"},
      {"sizes differ", in_entry(1, 20, 15, 4), "is compressed"},
      {"local header beyond the file", in_entry(1, 42, 0xfffffff0, 4), "no local header"},
      {"local header inside data", in_entry(1, 42, 31, 4), "no local header"},
      {"local header in the directory", in_entry(1, 42, zip.directory_entry(0), 4), "no local header"},
      {"local header of another member", in_entry(1, 42, 0, 4), "another name in its local header"},
      {"size beyond the file",
       patched(in_entry(1, 20, 0xfffffff0, 4), zip.directory_entry(1) + 24, little_endian(0xfffffff0, 4)),
       "extends beyond"},
      {"size over the next member", patched(in_entry(1, 20, 40, 4), zip.directory_entry(1) + 24, little_endian(40, 4)),
       "overlaps another"},
      {"zip64 size without its field",
       patched(in_entry(1, 20, 0xffffffff, 4), zip.directory_entry(1) + 24, little_endian(0xffffffff, 4)),
       "has no zip64 sizes"},
      {"local padding runs out", patched(good, zip.local_header(2) + 28, little_endian(0xffff, 2)), "extends beyond"},
      {"a member twice", with_member("m/data/0", "again"), "'m/data/0' appears twice"},
      {"more members than possible", many_members(model::max_zip_members + 1), "more than 32768 zip members"},
  });
}

BOOST_AUTO_TEST_CASE(members_sharing_their_bytes_are_refused) {
  // The second entry is made a copy of the first: same name, same local header.
  zip_builder zip;
  zip.add("m/data/0", "1234").add("m/data/1", "1234");
  const std::string good = zip.file();
  const std::size_t first = zip.directory_entry(0), second = zip.directory_entry(1);
  check_refused({{"two entries, one member", patched(good, second, good.substr(first, second - first)), "overlaps"}});
}

BOOST_AUTO_TEST_CASE(lies_of_zip64_are_refused) {
  const zip_builder zip = archive().zip64(true);
  const std::string good = zip.file();
  const std::size_t locator = zip.end_record() - 20;
  const auto located = [&](std::uint64_t at) { return patched(good, locator + 8, little_endian(at, 8)); };
  check_refused({
      {"locator points beyond the file", located(std::uint64_t{1} << 62), "not point to a zip64 record"},
      {"locator points near 2^64", located(~std::uint64_t{0} - 8), "not point to a zip64 record"},
      {"locator points to the start", located(0), "not point to a zip64 record"},
      {"locator points to itself", located(locator), "not point to a zip64 record"},
      {"record signature wrong", in_end64(0, 0, 4), "not point to a zip64 record"},
      {"entries of 2^62", in_end64(32, std::uint64_t{1} << 62, 8), "multi-part"},
      {"entries of 2^62, twice",
       patched(in_end64(32, std::uint64_t{1} << 62, 8), locator - 56 + 24, little_endian(std::uint64_t{1} << 62, 8)),
       "more than 32768 zip members"},
      {"directory of 2^63 bytes", in_end64(40, std::uint64_t{1} << 63, 8), "not where the end record says"},
      {"directory at 2^64 - 1", in_end64(48, ~std::uint64_t{0}, 8), "not where the end record says"},
      {"several disks", in_end64(16, 1, 4), "multi-part"},
      {"contradiction to the end record", patched(good, zip.end_record() + 16, little_endian(7, 4)), "contradicts"},
  });
}

BOOST_AUTO_TEST_CASE(archives_that_are_no_checkpoint_are_refused) {
  const std::string pickle = one_tensor_pickle();
  zip_builder long_pickle;
  long_pickle.add("m/data.pkl", std::string(model::max_header_bytes + 1, ' '));
  zip_builder archive_of_photos;
  archive_of_photos.add("photos/1.jpg", "...");
  check_refused({
      {"no data.pkl", archive_of_photos.file(), "no data.pkl"},
      {"two of them", with_member("n/data.pkl", pickle), "more than one data.pkl"},
      {"big endian", with_member("m/byteorder", "big"), "byte order"},
      {"pickle above the ceiling", long_pickle.file(), "too long"},
      {"torch before 1.6", std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e"),
       "torch before 1.6"},
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
