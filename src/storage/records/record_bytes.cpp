#include "storage/records/record_bytes.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <utility>

namespace skein::storage {
namespace {

constexpr std::string_view magic = "Skn";
constexpr std::size_t header_bytes = 8, checksum_bytes = 8;

template <typename Number>
void put_fixed(std::string& out, Number n) {
  for (std::size_t i = 0; i < sizeof n; ++i) out.push_back(static_cast<char>(n >> 8 * i));
}

template <typename Number>
Number get_fixed(std::string_view bytes) {
  Number n = 0;
  for (std::size_t i = 0; i < sizeof n; ++i) n |= static_cast<Number>(static_cast<std::uint8_t>(bytes[i])) << 8 * i;
  return n;
}

error damaged(std::string_view what, std::string_view why) {
  return {error_kind::damaged, std::string(what).append(": ").append(why), {}};
}

}  // namespace

std::string_view to_string(record_kind kind) {
  switch (kind) {
    case record_kind::session: return "session record";
    case record_kind::version: return "version record";
    case record_kind::running: return "record of a running turn";
    case record_kind::state: return "state record";
    case record_kind::state_entry: return "entry of the state index";
    case record_kind::prefix_entry: return "entry of a prefix";
    case record_kind::database_format: return "format record";
    case record_kind::counter: return "counter";
    case record_kind::set_aside: return "record in quarantine";
    case record_kind::state_shares: return "list of shared states";
    case record_kind::fork_origin: return "origin of a fork";
    case record_kind::kept_version: return "version record kept for forks";
    case record_kind::session_file: return "session file";
  }
  return "record";
}

std::uint64_t checksum(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

record_writer::record_writer(record_kind kind, std::uint32_t format, std::string memory)
    : bytes_(std::move(memory)), format_(format) {
  bytes_.assign(magic);
  bytes_.push_back(static_cast<char>(kind));
  put_fixed(bytes_, format);
}

void record_writer::varint(std::uint64_t n) {
  for (; n > 0x7f; n >>= 7) bytes_.push_back(static_cast<char>(n | 0x80));
  bytes_.push_back(static_cast<char>(n));
}

void record_writer::text(std::string_view t) {
  varint(t.size());
  bytes_.append(t);
}

void record_writer::raw(std::span<const std::uint8_t> bytes) { bytes_.append(bytes.begin(), bytes.end()); }

void record_writer::tokens(const std::vector<token_id>& all) {
  list(all, [](record_writer& io, token_id token) { io.number(token); });
}

std::string record_writer::sealed() && {
  put_fixed(bytes_, checksum(bytes_));
  return std::move(bytes_);
}

result<record_reader> record_reader::open(std::string_view record, record_kind kind) {
  const std::string_view what = to_string(kind);
  if (record.size() < header_bytes + checksum_bytes)
    return damaged(what, std::to_string(record.size()) + " bytes are too short for a record");
  const std::size_t end = record.size() - checksum_bytes;
  if (get_fixed<std::uint64_t>(record.substr(end)) != checksum(record.substr(0, end)))
    return damaged(what, "its checksum is wrong");
  if (!record.starts_with(magic) || record[magic.size()] != static_cast<char>(kind))
    return damaged(what, "it is a record of another kind");
  const auto format = get_fixed<std::uint32_t>(record.substr(4));
  if (format == 0 || format > format_of(kind))
    return error{error_kind::conflict,
                 std::string(what) + " has format " + std::to_string(format) + "; this program reads format " +
                     std::to_string(format_of(kind)),
                 {}};
  record_reader reader(record.substr(header_bytes, end - header_bytes), what);
  reader.size_ = end;
  reader.format_ = format;
  return reader;
}

record_reader record_reader::unsealed(std::string_view record, record_kind kind) {
  const bool headed = record.size() >= header_bytes;
  record_reader reader(headed ? record.substr(header_bytes) : "", to_string(kind));
  if (headed) reader.format_ = get_fixed<std::uint32_t>(record.substr(4));
  return reader;
}

std::uint64_t record_reader::varint() {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < rest_.size() && i < 10; ++i) {
    const auto byte = static_cast<std::uint8_t>(rest_[i]);
    if (i == 9 && byte > 1) break;  // more than 64 bits
    n |= static_cast<std::uint64_t>(byte & 0x7f) << 7 * i;
    if (byte & 0x80) continue;
    rest_.remove_prefix(i + 1);
    return n;
  }
  fault("a number does not end");
  return 0;
}

std::string_view record_reader::view(std::uint64_t bytes) {
  if (bytes > rest_.size()) {
    fault("a length points beyond the end");
    return {};
  }
  const auto seen = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return seen;
}

void record_reader::text(std::string& t) { t.assign(view(varint())); }

void record_sizer::text(const std::string&) {
  constexpr std::uint64_t block_bytes = 32;  // a string's end and the header of its block
  std::uint64_t length = 0;
  in_.number(length);
  if (!in_.view(length).empty()) bytes_ += length + block_bytes;
}

void record_reader::raw(std::span<std::uint8_t> bytes) {
  const auto seen = view(bytes.size());
  std::ranges::copy(seen, bytes.begin());
}

void record_reader::tokens(std::vector<token_id>& all) {
  list(all, [](record_reader& io, token_id& token) { io.number(token); });
}

void record_reader::fault(std::string_view why) {
  if (fault_.empty()) fault_ = std::string(why) + " at byte " + std::to_string(size_ - rest_.size());
  rest_ = {};
}

result<void> record_reader::end() {
  if (fault_.empty() && !rest_.empty()) fault(std::to_string(rest_.size()) + " bytes are left over");
  if (!fault_.empty()) return damaged(what_, fault_);
  return {};
}

}  // namespace skein::storage
