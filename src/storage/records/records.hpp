#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "model/state_value.hpp"

/// The parts of a session as values. Serialization: record_codec.
namespace skein::storage {

/// A client's name for a session: any string of 1 to 256 bytes, unique within the tenant.
struct session_key {
  tenant_id tenant = default_tenant;
  std::string id;
  auto operator<=>(const session_key&) const = default;
};

inline constexpr std::size_t session_id_bytes_max = 256;

/// A session's number in a database. Never reused, so no data of a deleted session can appear in a new one of the same
/// name.
using session_uid = std::uint64_t;

/// A version of a session: 1, 2, ... in order of creation, across all branches. 0 is the beginning: an empty history.
using version_id = std::uint32_t;
inline constexpr version_id beginning = 0;
/// Highest version number accepted in a session file: turns never reach it, and enough numbers remain above it.
inline constexpr version_id version_in_file_max = version_id{1} << 31;

/// Names a state permanently: the state stored under a key never changes. So tiers only copy or delete states, and no
/// copy can be stale.
struct state_key {
  session_uid owner = 0;     ///< a session; 0: a prefix of some prompts
  std::uint64_t number = 0;  ///< the session's version, or the prefix's number, from 1; 0: no state
  auto operator<=>(const state_key&) const = default;
  [[nodiscard]] explicit operator bool() const { return number != 0; }
};

/// The session version that a state belongs to: the lower half of its number.
[[nodiscard]] inline version_id version_of(const state_key& key) { return static_cast<version_id>(key.number); }

/// A state, shared and immutable.
using state_buffer = std::shared_ptr<const model::state_value>;

struct message {
  std::string role, content;
  bool operator==(const message&) const = default;
};

/// A chained XXH3 of texts: a version's hash covers its parent's hash and its own segment, so that a long history is
/// recognised segment by segment without being stored.
using history_hash = std::array<std::uint8_t, 16>;

/// One version: what a turn added to its parent. Immutable once committed.
struct version_record {
  version_id id = 0, parent = beginning;
  std::int64_t created_ms = 0;      ///< Unix time
  std::vector<token_id> tokens;     ///< all tokens fed since the parent: the prompt's, then the model's
  std::uint32_t prompt_tokens = 0;  ///< number of prompt tokens among them
  std::uint64_t total_tokens = 0;   ///< from the beginning to the end of this version
  std::string text;                 ///< the decoded tokens: exactly prompt and visible answer
  std::uint64_t prompt_bytes = 0;   ///< number of prompt bytes among them
  std::uint64_t segment_bytes = 0;  ///< bytes that this turn adds to the history as a client resends it
  history_hash history{};           ///< from the beginning to the end of this version
  std::vector<message> messages;    ///< the client's messages in this turn; empty for raw prompts
  std::string reasoning, answer;    ///< as sent to the client
  std::string finish_reason;        ///< "stop" or "length"
  std::string stop_reason;          ///< "drain", "timeout", ... if the server ended the answer; else empty
  std::string template_name;        ///< "chat" or "raw"
  std::string sampling;             ///< settings of the turn as a JSON object, for people
  std::string request_key;          ///< the Idempotency-Key; empty: none
  bool deleted = false;  ///< hidden from clients; kept only for the versions that descend from it, and removed with the
                         ///< last of them
  bool unfinished = false;  ///< interrupted by a crash or a drain: may be continued, never becomes the head by itself
  bool operator==(const version_record&) const = default;
};

/// A version shared by its users: sessions forked from each other, answers in progress. Immutable, so any thread may
/// read it.
using shared_version = std::shared_ptr<const version_record>;

/// Total bytes of a version's tokens and texts, and of its messages, which take memory even without texts.
[[nodiscard]] inline std::uint64_t content_bytes(const version_record& v) {
  std::uint64_t bytes = v.tokens.size() * sizeof(token_id) + v.text.size() + v.reasoning.size() + v.answer.size() +
                        v.sampling.size() + v.request_key.size();
  for (const auto& m : v.messages) bytes += sizeof m + m.role.size() + m.content.size();
  return bytes;
}

/// Names and values that clients attach to a session. The limits are those of OpenAI's API.
using session_metadata = std::vector<std::pair<std::string, std::string>>;
inline constexpr std::size_t metadata_pairs_max = 16, metadata_name_bytes_max = 64, metadata_value_bytes_max = 512;
inline constexpr std::size_t session_title_bytes_max = 256;

/// The facts about a session that are known without reading its versions.
struct session_record {
  session_uid uid = 0;
  session_key key;
  std::string model_identity;  ///< the only model that may continue it
  std::string initial_state;   ///< identity of the tuned state it began with; empty: the zero state
  version_id head = beginning;
  version_id last_version = beginning;  ///< the highest committed number
  std::uint32_t versions = 0;           ///< number of versions
  std::uint64_t total_tokens = 0;       ///< of the head
  std::uint64_t log_bytes = 0;          ///< content_bytes of all versions; earlier programs counted less
  std::int64_t created_ms = 0, used_ms = 0;
  std::string title;  ///< its first words, or the title set by a client; at most session_title_bytes_max
  session_metadata metadata;
  bool made_empty = false;  ///< a client created it before its first turn: it stays when its last version is removed
  bool operator==(const session_record&) const = default;
};

/// A running turn: enough to make an unfinished version of it after a crash.
struct running_turn {
  version_record so_far;  ///< `tokens`, `text`, ... up to the last append
  bool operator==(const running_turn&) const = default;
};

/// How durable a turn is when its last event reports it.
enum class durability : std::uint8_t {
  memory,   ///< in this process only: there is no disk, or writes to it fail
  process,  ///< written to the log: survives kill -9
  power,    ///< and synced: survives a power cut
};

}  // namespace skein::storage

template <>
struct std::hash<skein::storage::state_key> {
  std::size_t operator()(const skein::storage::state_key& k) const noexcept {
    return static_cast<std::size_t>(k.owner * 0x9e3779b97f4a7c15ull ^ k.number);
  }
};
