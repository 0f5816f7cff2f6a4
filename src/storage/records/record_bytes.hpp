#pragma once
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"

/// Serialization of records. Every record is an envelope around its fields:
///   "Skn", kind (1 byte) | format version (u32) | fields | XXH3-64 of all before it (u64)      little-endian
/// Later formats keep the envelope, so that a record of a newer program can be told from a damaged one. Fields: numbers
/// are little-endian varints with 7 bits per byte (zigzag if signed); texts and lists are prefixed with their length.
///
/// One function `fields(io, record)` lists the fields for both directions; io is a record_writer or a record_reader.
namespace skein::storage {

enum class record_kind : char {
  session = 'S',
  version = 'V',
  running = 'R',
  state = 'C',
  state_entry = 'I',
  prefix_entry = 'P',
  database_format = 'F',
  counter = 'U',
  set_aside = 'Q',
  state_shares = 'L',
  fork_origin = 'O',
  kept_version = 'K',  ///< a version that its session no longer has, kept for forks
  session_file = 'X',
};
[[nodiscard]] std::string_view to_string(record_kind kind);

/// The format of a database as a whole, and of most records.
inline constexpr std::uint32_t record_format = 1;
/// The format of a database in which sessions share versions, which its first fork sets.
inline constexpr std::uint32_t database_format_with_forks = 2;
/// The newest format of a kind of record; this program reads earlier formats too.
[[nodiscard]] constexpr std::uint32_t format_of(record_kind kind) {
  switch (kind) {
    case record_kind::session: return 3;       // 2: title, metadata; 3: made_empty, only in sessions that have it
    case record_kind::session_file: return 2;  // 2: title, metadata
    case record_kind::state: return 2;         // 2: a type for each array
    default: return record_format;
  }
}

/// XXH3-64.
[[nodiscard]] std::uint64_t checksum(std::string_view bytes);

/// Serializes fields into a record.
class record_writer {
 public:
  explicit record_writer(record_kind kind) : record_writer(kind, format_of(kind)) {}
  /// `memory`: reused for the record; its contents are discarded.
  record_writer(record_kind kind, std::uint32_t format, std::string memory = {});
  /// For fields without an envelope.
  record_writer() = default;

  void number(std::unsigned_integral auto n) { varint(n); }
  void number(std::signed_integral auto n) {
    const std::int64_t wide = n;
    varint(static_cast<std::uint64_t>(wide) << 1 ^ static_cast<std::uint64_t>(wide >> 63));
  }
  void number(bool truth) { varint(truth ? 1 : 0); }
  void text(std::string_view t);
  void raw(std::span<const std::uint8_t> bytes);
  void raw(std::string_view bytes) { bytes_.append(bytes); }
  template <typename Element, typename Field>
  void list(const std::vector<Element>& all, Field&& field) {
    varint(all.size());
    for (const Element& one : all) field(*this, one);
  }
  void tokens(const std::vector<token_id>& all);

  [[nodiscard]] std::uint32_t format() const { return format_; }
  [[nodiscard]] std::string& bytes() { return bytes_; }
  /// The record with its checksum.
  [[nodiscard]] std::string sealed() &&;

 private:
  void varint(std::uint64_t n);
  std::string bytes_;
  std::uint32_t format_ = record_format;
};

/// Reads fields in the order in which they were written. After the first fault it reads zeros, so callers check once,
/// at
/// the end. A list never has more elements than bytes that are left.
class record_reader {
 public:
  /// Checks the envelope. Errors: damaged (which check failed), conflict (an unknown format; both versions named).
  [[nodiscard]] static result<record_reader> open(std::string_view record, record_kind kind);
  /// For a record whose end is unknown: nothing is checked.
  [[nodiscard]] static record_reader unsealed(std::string_view record, record_kind kind);
  /// For fields without an envelope; `what` names them in errors.
  record_reader(std::string_view fields, std::string_view what) : rest_(fields), what_(what), size_(fields.size()) {}

  template <std::integral Number>
  void number(Number& n) {
    const std::uint64_t read = varint();
    if constexpr (std::same_as<Number, bool>) {
      n = read == 1;
      if (read > 1) fault("a flag is neither 0 nor 1");
    } else if constexpr (std::signed_integral<Number>) {
      const auto value = static_cast<std::int64_t>(read >> 1 ^ (~(read & 1) + 1));
      n = static_cast<Number>(value);
      if (n != value) fault("a number is out of range");
    } else {
      n = static_cast<Number>(read);
      if (n != read) fault("a number is out of range");
    }
  }
  void text(std::string& t);
  void raw(std::span<std::uint8_t> bytes);
  template <typename Element, typename Field>
  void list(std::vector<Element>& all, Field&& field) {
    const std::uint64_t count = varint();
    if (count > rest_.size()) fault("a list is longer than the record");
    all.clear();
    for (std::uint64_t i = 0; i < count && !faulty(); ++i) field(*this, all.emplace_back());
  }
  void tokens(std::vector<token_id>& all);

  /// The next bytes, without a copy.
  [[nodiscard]] std::string_view view(std::uint64_t bytes);
  [[nodiscard]] std::string_view rest() const { return rest_; }
  [[nodiscard]] std::uint32_t format() const { return format_; }
  [[nodiscard]] bool faulty() const { return !fault_.empty(); }
  /// Records that a field has an invalid value.
  void fault(std::string_view why);
  /// After the last field: damaged if there was a fault or bytes are left.
  [[nodiscard]] result<void> end();

 private:
  [[nodiscard]] std::uint64_t varint();
  std::string_view rest_;
  std::string_view what_;
  std::size_t size_ = 0;  ///< including the envelope before the fields
  std::uint32_t format_ = record_format;
  std::string fault_;
};

/// Reads fields as record_reader does, but keeps no texts or lists: it counts the memory that they would take.
class record_sizer {
 public:
  explicit record_sizer(record_reader& in) : in_(in) {}

  template <std::integral Number>
  void number(Number& n) {
    in_.number(n);
  }
  void text(const std::string&);
  void raw(std::span<std::uint8_t> bytes) { in_.raw(bytes); }
  /// An element takes twice its size, because vectors grow by doubling.
  template <typename Element, typename Field>
  void list(const std::vector<Element>&, Field&& field) {
    std::uint64_t count = 0;
    in_.number(count);
    if (count > in_.rest().size()) in_.fault("a list is longer than the record");
    Element skipped{};
    for (std::uint64_t i = 0; i < count && !in_.faulty(); ++i, bytes_ += 2 * sizeof(Element)) field(*this, skipped);
  }
  void tokens(const std::vector<token_id>& all) {
    list(all, [](record_sizer& io, token_id& token) { io.number(token); });
  }

  [[nodiscard]] std::uint32_t format() const { return in_.format(); }
  void fault(std::string_view why) { in_.fault(why); }
  /// Of the texts and lists so far.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  record_reader& in_;
  std::uint64_t bytes_ = 0;
};

}  // namespace skein::storage
