#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "storage/records/record_bytes.hpp"
#include "storage/records/records.hpp"

/// Serialization of session records. A record that belongs to a session contains its number, so that a record under the
/// wrong key is detected. Errors of decode_x: damaged (which check failed, where), conflict (another format; both
/// versions named). Decoded records are consistent: lengths, counts and numbers agree with each other.
namespace skein::storage {

[[nodiscard]] std::string encode_session(const session_record& record);
[[nodiscard]] result<session_record> decode_session(std::string_view bytes);

/// Records found at the start of a longer byte string, for salvage from damaged files. A session record need not be
/// intact, because the session's name is at its beginning.
struct found_session {
  session_record session;
  bool whole = false;  ///< its checksum matches
};
struct found_version {
  session_uid owner = 0;
  version_record version;
};
/// The bytes that every record of a kind begins with.
[[nodiscard]] std::string mark_of(record_kind kind);
[[nodiscard]] std::optional<found_session> session_at(std::string_view bytes);
[[nodiscard]] std::optional<found_version> version_at(std::string_view bytes);
struct found_origin;
[[nodiscard]] std::optional<found_origin> origin_at(std::string_view bytes);

[[nodiscard]] std::string encode_version(session_uid owner, const version_record& record);
[[nodiscard]] result<version_record> decode_version(std::string_view bytes, session_uid owner);

[[nodiscard]] std::string encode_running(session_uid owner, const running_turn& turn);
[[nodiscard]] result<running_turn> decode_running(std::string_view bytes, session_uid owner);

/// The index entry of a stored state; for a prefix it includes the prefix's tokens and initial state.
struct state_entry {
  state_key key;
  std::uint64_t bytes = 0;  ///< of the state's record
  std::int64_t used_ms = 0;
  bool complete = true;          ///< false: being written, or interrupted by a crash
  tenant_id tenant;              ///< of a prefix
  std::string initial_state;     ///< of a prefix
  std::vector<token_id> tokens;  ///< of a prefix
  bool operator==(const state_entry&) const = default;
};
[[nodiscard]] std::string encode_entry(const state_entry& entry);
[[nodiscard]] result<state_entry> decode_entry(std::string_view bytes, const state_key& key);

/// States of other sessions that this session shares.
[[nodiscard]] std::string encode_shares(session_uid borrower, const std::vector<state_key>& states);
[[nodiscard]] result<std::vector<state_key>> decode_shares(std::string_view bytes, session_uid borrower);

/// Where a fork begins: it shares the versions from the beginning to `shown` with another session. They stay under the
/// number of the session that wrote them: `owner` or one of its own origins.
struct fork_origin {
  session_uid owner = 0;              ///< wrote the version `last`
  version_id last = beginning;        ///< the owner keeps its versions up to here, for this session and its forks
  version_id shown = beginning;       ///< the last version that this session has: `last` or one on the path to it
  std::vector<version_id> deleted{};  ///< shown versions that this session offers to no client, ascending
  bool operator==(const fork_origin&) const = default;
};
[[nodiscard]] std::string encode_origin(session_uid fork, const fork_origin& origin);
[[nodiscard]] result<fork_origin> decode_origin(std::string_view bytes, session_uid fork);

struct found_origin {
  session_uid fork = 0;
  fork_origin origin;
};

/// A version that its session no longer has, kept for forks.
[[nodiscard]] std::string encode_kept(session_uid owner, const version_record& record);
[[nodiscard]] bool is_kept(std::string_view version);
/// A version, kept for forks or not.
[[nodiscard]] result<version_record> decode_any_version(std::string_view bytes, session_uid owner);

/// The first fields of a version, kept for forks or not, whose record has a correct checksum.
struct version_place {
  version_id id = beginning, parent = beginning;
};
[[nodiscard]] result<version_place> decode_place(std::string_view bytes, session_uid owner);

/// A single number: the database's format, or the next session number.
[[nodiscard]] std::string encode_number(record_kind kind, std::uint64_t number);
[[nodiscard]] result<std::uint64_t> decode_number(std::string_view bytes, record_kind kind);

/// A record in quarantine, with reason and time; `record` is empty if it could not be kept.
struct set_aside_record {
  std::string reason;
  std::int64_t at_ms = 0;
  std::string record;
  bool operator==(const set_aside_record&) const = default;
};
[[nodiscard]] std::string encode_set_aside(const set_aside_record& what);
[[nodiscard]] result<set_aside_record> decode_set_aside(std::string_view bytes);

// Fields without an envelope, for files that hold many records.
void write_fields(record_writer& out, const session_record& record);
void write_fields(record_writer& out, const version_record& record);
void read_fields(record_reader& in, session_record& record);
void read_fields(record_reader& in, version_record& record);
// Pass over the fields without keeping them; for the memory that they would take.
void size_session_fields(record_sizer& in);
void size_version_fields(record_sizer& in);

}  // namespace skein::storage
