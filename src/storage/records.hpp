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

/// What a session consists of, as values (design section 6). How they become bytes stands in record_codec.
namespace skein::storage {

/// How a client names a session: any string of 1 to 256 bytes, in the space of its tenant.
struct session_key {
  tenant_id tenant = default_tenant;
  std::string id;
  auto operator<=>(const session_key&) const = default;
};

inline constexpr std::size_t session_id_bytes_max = 256;

/// A session's number in a database: never used again, so that nothing of a deleted session can show in a new one of
/// the same name.
using session_uid = std::uint64_t;

/// A version of a session: 1, 2, ... in order of creation, in all branches. 0 is the beginning, where nothing was said.
using version_id = std::uint32_t;
inline constexpr version_id beginning = 0;
/// So much a file may say; no session gets there by its turns, and none runs out of numbers behind it.
inline constexpr version_id version_in_file_max = version_id{1} << 31;

/// Names a state for ever: what is stored under a key is never replaced by something else. So a state moves between
/// tiers as a copy or goes away, and no copy can be stale.
struct state_key {
  session_uid owner = 0;     ///< a session; 0: a prefix of some prompts
  std::uint64_t number = 0;  ///< the session's version, or the prefix's number, from 1; 0: no state
  auto operator<=>(const state_key&) const = default;
  [[nodiscard]] explicit operator bool() const { return number != 0; }
};

/// The version that a session's state is of.
[[nodiscard]] inline version_id version_of(const state_key& key) { return static_cast<version_id>(key.number); }

/// A state in the canonical order of model/state_layout, shared by whoever reads it, never changed.
using state_buffer = std::shared_ptr<const std::vector<float>>;

struct message {
  std::string role, content;
  bool operator==(const message&) const = default;
};

/// A chained XXH3 of texts: that of a version is over its parent's and its own segment, so that a long history is
/// recognised segment by segment without being kept.
using history_hash = std::array<std::uint8_t, 16>;

/// One version: what a turn added to its parent. Immutable once committed.
struct version_record {
  version_id id = 0, parent = beginning;
  std::int64_t created_ms = 0;   ///< Unix time
  std::vector<token_id> tokens;  ///< all that the state has swallowed since the parent: the client's, then the model's
  std::uint32_t prompt_tokens = 0;  ///< how many of them the client brought
  std::uint64_t total_tokens = 0;   ///< from the beginning to the end of this version
  std::string text;                 ///< the bytes of the tokens: exactly prompt and visible answer
  std::uint64_t prompt_bytes = 0;   ///< how many of them the client brought
  std::uint64_t segment_bytes = 0;  ///< what this turn adds to the history as a client resends it
  history_hash history{};           ///< from the beginning to the end of this version
  std::vector<message> messages;    ///< what the client said in this turn; empty for raw prompts
  std::string reasoning, answer;    ///< as the client got them
  std::string finish_reason;        ///< "stop" or "length"
  std::string stop_reason;          ///< "drain", "timeout", ... where the server ended the answer; else empty
  std::string template_name;        ///< "chat" or "raw"
  std::string sampling;             ///< settings of the turn as a JSON object, for people
  std::string request_key;          ///< the Idempotency-Key; empty: none
  bool deleted =
      false;  ///< only what goes on from it still has it: it is offered to nobody, and goes with the last of those
  bool unfinished = false;  ///< cut by a crash or a drain: may be continued, is never the head by itself
  bool operator==(const version_record&) const = default;
};

/// A version as all who have it share it: sessions that were forked from each other, answers on their way. Never
/// changed, so it is read on any thread.
using shared_version = std::shared_ptr<const version_record>;

/// Bytes of a version's tokens and texts.
[[nodiscard]] inline std::uint64_t content_bytes(const version_record& v) {
  std::uint64_t bytes = v.tokens.size() * sizeof(token_id) + v.text.size() + v.reasoning.size() + v.answer.size() +
                        v.sampling.size() + v.request_key.size();
  for (const auto& m : v.messages) bytes += m.role.size() + m.content.size();
  return bytes;
}

/// What clients keep beside a session: names and values. The limits are those of OpenAI's API.
using session_metadata = std::vector<std::pair<std::string, std::string>>;
inline constexpr std::size_t metadata_pairs_max = 16, metadata_name_bytes_max = 64, metadata_value_bytes_max = 512;
inline constexpr std::size_t session_title_bytes_max = 256;

/// What is known of a session without reading its versions.
struct session_record {
  session_uid uid = 0;
  session_key key;
  std::string model_identity;  ///< of the only model that may continue it
  std::string initial_state;   ///< identity of the tuned state it began with; empty: zero
  version_id head = beginning;
  version_id last_version = beginning;  ///< the highest number given out and committed
  std::uint32_t versions = 0;           ///< how many there are
  std::uint64_t total_tokens = 0;       ///< of the head
  std::uint64_t log_bytes = 0;          ///< of all versions' tokens and texts
  std::int64_t created_ms = 0, used_ms = 0;
  std::string title;  ///< how it begins, or what a client called it; at most session_title_bytes_max
  session_metadata metadata;
  bool operator==(const session_record&) const = default;
};

/// A turn that runs: enough to make an unfinished version of it after a crash.
struct running_turn {
  version_record so_far;  ///< `tokens`, `text`, ... up to the last append
  bool operator==(const running_turn&) const = default;
};

/// How safe a turn is when its last event says so.
enum class durability : std::uint8_t {
  memory,   ///< in this process only: there is no disk, or it fails
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
