#include "model/files/zip_directory.hpp"

#include <algorithm>

#include "model/files/checkpoint_limits.hpp"

// Layouts and signatures are those of PKWARE's APPNOTE.TXT, sections 4.3.7 to 4.3.16 and 4.5.3.
namespace skein::model {
namespace {

constexpr std::uint32_t local_signature = 0x04034b50, entry_signature = 0x02014b50, end_signature = 0x06054b50,
                        end64_signature = 0x06064b50, locator64_signature = 0x07064b50;
constexpr std::uint64_t local_bytes = 30, entry_bytes = 46, end_bytes = 22, end64_bytes = 56, locator64_bytes = 20;
constexpr std::uint16_t absent16 = 0xffff;
constexpr std::uint32_t absent32 = 0xffffffff;

/// Position of the central directory and its number of entries.
struct extent {
  std::uint64_t entries = 0, bytes = 0, begin = 0;
  std::uint64_t end = 0;  ///< offset of the record that follows the directory
};

/// The end record is at the end of the file, followed only by a comment whose length it states.
std::optional<std::uint64_t> find_end_record(byte_span file) {
  if (file.size() < end_bytes) return std::nullopt;
  for (std::uint64_t comment = 0; comment <= 0xffff && comment <= file.size() - end_bytes; ++comment) {
    const std::uint64_t at = file.size() - end_bytes - comment;
    if (load<std::uint32_t>(file, at) == end_signature && load<std::uint16_t>(file, at + 20) == comment) return at;
  }
  return std::nullopt;
}

/// Replaces the fields that the end record leaves open (or repeats) with those of the zip64 record referenced by the
/// locator at `locator`.
result<extent> read_end64(byte_span file, std::uint64_t locator, const extent& plain) {
  const auto at = load<std::uint64_t>(file, locator + 8);
  if (!fits(at, end64_bytes, locator) || load<std::uint32_t>(file, at) != end64_signature)
    return damaged(locator, "the zip64 locator does not point to a zip64 record");
  const extent full{load<std::uint64_t>(file, at + 32), load<std::uint64_t>(file, at + 40),
                    load<std::uint64_t>(file, at + 48), at};
  const bool agree = (plain.entries == absent16 || plain.entries == full.entries) &&
                     (plain.bytes == absent32 || plain.bytes == full.bytes) &&
                     (plain.begin == absent32 || plain.begin == full.begin);
  if (!agree) return damaged(at, "the zip64 record contradicts the zip end record");
  if (load<std::uint32_t>(file, at + 16) != 0 || load<std::uint32_t>(file, at + 20) != 0 ||
      load<std::uint64_t>(file, at + 24) != full.entries)
    return damaged(at, "multi-part zip archives are not supported");
  return full;
}

result<extent> find_directory(byte_span file) {
  const auto end = find_end_record(file);
  if (!end) return damaged(file.size(), "no zip end record: the file is truncated or not a zip archive");
  extent where{load<std::uint16_t>(file, *end + 10), load<std::uint32_t>(file, *end + 12),
               load<std::uint32_t>(file, *end + 16), *end};
  const std::uint64_t locator = *end - locator64_bytes;
  if (*end >= locator64_bytes && load<std::uint32_t>(file, locator) == locator64_signature) {
    auto full = read_end64(file, locator, where);
    if (!full) return full.error();
    where = *full;
  } else if (load<std::uint16_t>(file, *end + 4) != 0 || load<std::uint16_t>(file, *end + 6) != 0 ||
             load<std::uint16_t>(file, *end + 8) != where.entries) {
    return damaged(*end, "multi-part zip archives are not supported");
  }
  if (!fits(where.begin, where.bytes, where.end) || where.begin + where.bytes != where.end)
    return damaged(*end, "the zip directory is not where the end record says");
  if (where.entries > max_zip_members)
    return damaged(*end, "more than " + std::to_string(max_zip_members) + " zip members");
  if (where.bytes > max_zip_directory_bytes)
    return damaged(*end, "a zip directory of " + std::to_string(where.bytes) + " bytes is too long");
  if (where.entries > where.bytes / entry_bytes)
    return damaged(*end, "the zip directory is too short for its " + std::to_string(where.entries) + " entries");
  return where;
}

/// A member with the offset of its local header, for the check that members do not overlap.
struct placed_member {
  zip_member member;
  std::uint64_t header = 0;
  std::uint64_t entry = 0;  ///< of its entry in the directory
};

/// Reads from the zip64 field those of the three numbers that the entry leaves open, in the order of the field.
bool read_extra64(byte_span file, std::uint64_t at, std::uint64_t bytes, std::span<std::uint64_t* const> open) {
  for (const std::uint64_t end = at + bytes; end - at >= 4;) {
    const auto id = load<std::uint16_t>(file, at);
    const std::uint64_t size = load<std::uint16_t>(file, at + 2);
    at += 4;
    if (size > end - at) return false;
    if (id == 1) {
      if (size / 8 < open.size()) return false;
      for (auto* number : open) {
        *number = load<std::uint64_t>(file, at);
        at += 8;
      }
      return true;
    }
    at += size;
  }
  return false;
}

/// Reads one entry of the central directory; moves `at` past it.
result<placed_member> read_entry(byte_span file, std::uint64_t& at, const extent& directory) {
  const std::uint64_t entry = at, end = directory.begin + directory.bytes;
  if (!fits(entry, entry_bytes, end) || load<std::uint32_t>(file, entry) != entry_signature)
    return damaged(entry, "expected an entry of the zip directory");
  const auto flags = load<std::uint16_t>(file, entry + 8), method = load<std::uint16_t>(file, entry + 10);
  std::uint64_t compressed = load<std::uint32_t>(file, entry + 20), bytes = load<std::uint32_t>(file, entry + 24);
  const std::uint64_t name = load<std::uint16_t>(file, entry + 28), extra = load<std::uint16_t>(file, entry + 30),
                      comment = load<std::uint16_t>(file, entry + 32);
  std::uint64_t header = load<std::uint32_t>(file, entry + 42);
  at += entry_bytes;
  if (!fits(at, name + extra + comment, end)) return damaged(entry, "a zip entry extends beyond the directory");
  const std::string_view label = text_at(file, at, name);
  const auto fault = [&](const char* what) { return damaged(entry, "zip member " + printable(label) + " " + what); };

  std::uint64_t* open[3];
  std::size_t count = 0;
  for (std::uint64_t* number : {&bytes, &compressed, &header})
    if (*number == absent32) open[count++] = number;
  if (count > 0 && !read_extra64(file, at + name, extra, {open, count})) return fault("has no zip64 sizes");
  at += name + extra + comment;

  constexpr std::uint16_t encrypted = 1u | 1u << 6 | 1u << 13;
  if (flags & encrypted) return fault("is encrypted");
  if (method != 0 || compressed != bytes) return fault("is compressed; only stored members are accepted");
  if (!fits(header, local_bytes, directory.begin) || load<std::uint32_t>(file, header) != local_signature)
    return fault("has no local header at the offset in the directory");
  const std::uint64_t local_name = load<std::uint16_t>(file, header + 26),
                      local_extra = load<std::uint16_t>(file, header + 28);
  const std::uint64_t data = header + local_bytes + local_name + local_extra;
  if (!fits(data, bytes, directory.begin)) return fault("extends beyond the start of the directory");
  if (text_at(file, header + local_bytes, local_name) != label) return fault("has another name in its local header");
  return placed_member{{label, data, bytes}, header, entry};
}

}  // namespace

result<zip_directory> zip_directory::read(byte_span file) {
  const auto directory = find_directory(file);
  if (!directory) return directory.error();
  std::vector<placed_member> placed;
  placed.reserve(directory->entries);
  std::uint64_t at = directory->begin;
  for (std::uint64_t i = 0; i < directory->entries; ++i) {
    auto member = read_entry(file, at, *directory);
    if (!member) return member.error();
    placed.push_back(*member);
  }
  if (at != directory->begin + directory->bytes) return damaged(at, "the zip directory has bytes after its last entry");

  std::ranges::sort(placed, {}, &placed_member::header);
  for (std::size_t i = 1; i < placed.size(); ++i)
    if (placed[i].header < placed[i - 1].member.data + placed[i - 1].member.bytes)
      return damaged(placed[i].entry, "zip member " + printable(placed[i].member.name) + " overlaps another");
  std::ranges::sort(placed, {}, [](const placed_member& p) { return p.member.name; });
  for (std::size_t i = 1; i < placed.size(); ++i)
    if (placed[i].member.name == placed[i - 1].member.name)
      return damaged(placed[i].entry, "zip member " + printable(placed[i].member.name) + " appears twice");

  std::vector<zip_member> members;
  members.reserve(placed.size());
  for (const auto& p : placed) members.push_back(p.member);
  return zip_directory(std::move(members));
}

const zip_member* zip_directory::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(members_, name, {}, &zip_member::name);
  return found != members_.end() && found->name == name ? &*found : nullptr;
}

}  // namespace skein::model
