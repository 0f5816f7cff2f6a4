#include "storage/files/log_length.hpp"

#include <algorithm>
#include <boost/crc.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/log/log.hpp"
#include "storage/files/log_blocks.hpp"
#include "storage/files/rocksdb_status.hpp"

namespace skein::storage {
namespace {

using crc32c = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true>;

/// A checksum as RocksDB stores it: masked.
std::uint32_t masked(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

bool holds(const log_header& header, std::string_view payload) {
  crc32c sum;
  sum.process_byte(header.type);
  sum.process_bytes(payload.data(), payload.size());
  return masked(sum.checksum()) == header.checksum;
}

/// The length, shorter than the header says, at which the checksum of the first record in `rest` matches. Another
/// record or the end of the log must follow; a checksum that matches by chance is no proof.
std::optional<std::uint16_t> proven_length(std::string_view rest) {
  const log_header said = header_at(rest);
  const std::string_view payload = rest.substr(log_header_bytes);
  crc32c sum;
  sum.process_byte(said.type);
  for (std::size_t length = 0; length < payload.size(); ++length) {
    sum.process_byte(static_cast<std::uint8_t>(payload[length]));
    if (masked(sum.checksum()) != said.checksum) continue;
    const std::string_view after = payload.substr(length + 1);
    if (after.empty()) return static_cast<std::uint16_t>(length + 1);
    if (after.size() < log_header_bytes) return std::nullopt;
    const log_header next = header_at(after);
    if (next.length > after.size() - log_header_bytes) return std::nullopt;
    if (!holds(next, after.substr(log_header_bytes, next.length))) return std::nullopt;
    return static_cast<std::uint16_t>(length + 1);
  }
  return std::nullopt;
}

struct wrong_length {
  std::uint64_t at;  ///< offset of the length in the file
  std::uint16_t right;
};

/// Searches the last block of a log, which begins at `begin` in the file.
std::optional<wrong_length> wrong_length_in(std::string_view block, std::uint64_t begin) {
  for (std::size_t at = 0; block.size() - at > log_header_bytes;) {
    const std::string_view rest = block.substr(at);
    const log_header header = header_at(rest);
    if (header.length > rest.size() - log_header_bytes) {
      const auto right = proven_length(rest);
      return right ? std::optional(wrong_length{begin + at + log_length_offset, *right}) : std::nullopt;
    }
    at += log_header_bytes + header.length;
  }
  return std::nullopt;
}

rocksdb::Status look(rocksdb::Env& env, const std::string& path, std::optional<wrong_length>& found) {
  std::uint64_t bytes = 0;
  if (auto s = env.GetFileSize(path, &bytes); !s.ok() || bytes == 0) return s;
  std::unique_ptr<rocksdb::RandomAccessFile> file;
  if (auto s = env.NewRandomAccessFile(path, &file, rocksdb::EnvOptions()); !s.ok()) return s;
  const std::uint64_t begin = (bytes - 1) / log_block_bytes * log_block_bytes;
  std::string buffer(static_cast<std::size_t>(bytes - begin), '\0');
  rocksdb::Slice block;
  if (auto s = file->Read(begin, buffer.size(), &block, buffer.data()); !s.ok()) return s;
  found = wrong_length_in({block.data(), block.size()}, begin);
  return {};
}

rocksdb::Status write_length(rocksdb::Env& env, const std::string& path, const wrong_length& what) {
  std::unique_ptr<rocksdb::RandomRWFile> file;
  if (auto s = env.NewRandomRWFile(path, &file, rocksdb::EnvOptions()); !s.ok()) return s;
  const char bytes[] = {static_cast<char>(what.right & 0xff), static_cast<char>(what.right >> 8)};
  if (auto s = file->Write(what.at, {bytes, sizeof bytes}); !s.ok()) return s;
  if (auto s = file->Sync(); !s.ok()) return s;
  return file->Close();
}

}  // namespace

result<void> check_log_lengths(rocksdb::Env& env, const std::string& directory, bool mend) {
  std::vector<std::string> names;
  if (const auto listed = env.GetChildren(directory, &names); !listed.ok())
    return from_status(listed, "listing " + directory);
  const std::string folder = directory + '/';
  for (const auto& name : names) {
    if (!name.ends_with(".log") && !name.starts_with("MANIFEST-")) continue;
    const std::string path = folder + name;
    std::optional<wrong_length> found;
    if (const auto looked = look(env, path, found); !looked.ok()) return from_status(looked, "reading " + path);
    if (!found) continue;
    const std::string where = "the length of a record at byte " + std::to_string(found->at) + " of " + path;
    if (!mend) return error{error_kind::damaged, where + " is damaged; the next start of a server repairs it", {}};
    if (const auto written = write_length(env, path, *found); !written.ok())
      return from_status(written, "repairing " + path);
    log::warning("a damaged file was repaired", {{"what", where}, {"length", found->right}});
  }
  return {};
}

}  // namespace skein::storage
