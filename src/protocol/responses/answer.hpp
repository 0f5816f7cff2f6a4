#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.hpp"

/// The parts of bodies and events of both OpenAI routes, as plain values; chat_response and completion_response write
/// them.
namespace skein::protocol {

/// The fields that all parts of one answer share.
struct answer_head {
  std::string id{};  ///< see answer_id
  std::string model;
  std::string system_fingerprint{};  ///< names model, weight type and build; empty: null
  std::int64_t created = 0;          ///< Unix seconds
  bool usage_follows = false;        ///< a usage event comes at the end of the stream
  /// What the constraint of the answer does not enforce, as a value of its metadata; empty: nothing.
  std::string constraint_notes{};
  std::string tool_notes{};  ///< the same for tools of the request that the model was not offered
};

/// The names of these notes in the metadata of an answer.
inline constexpr std::string_view constraint_notes_key = "constraint_notes", tool_notes_key = "tool_notes";

/// The member `session` of a body and of a stream's last events: the session that the answer was added to.
struct session_note {
  std::string id;
  std::uint32_t version = 0;  ///< that ends with this answer; if not `stored`: that the answer continued
  std::string durable;        ///< "memory", "process" or "power"
  bool stored = true;
  bool replayed = false;                ///< read from the record of an earlier call with the same Idempotency-Key
  bool unfinished = false;              ///< not the head: the session's head is still the previous version
  std::optional<std::uint32_t> parent;  ///< native routes: the answer has the members dialogue_idx and parent
};

/// A prefix such as "chatcmpl-" followed by 24 hex digits.
[[nodiscard]] std::string answer_id(std::string_view prefix, const std::array<std::uint8_t, 12>& random);

struct token_usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::uint64_t cached_tokens = 0;     ///< of the prompt
  std::uint64_t reasoning_tokens = 0;  ///< of the completion
};

enum class finish_reason : std::uint8_t { stop, length, tool_calls };
[[nodiscard]] std::string_view to_string(finish_reason reason);

/// A tool call in an answer.
struct tool_call {
  std::string id, name;
  std::string arguments;  ///< an object, as JSON text
  bool whole = true;      ///< false: cut within the arguments, which are the beginning of an object
};

/// What an event adds to a call: its id and name at its beginning, and a part of the arguments.
struct call_piece {
  std::string id = {}, name = {};  ///< empty: of the call before
  std::string arguments = {};
  bool ends = false;         ///< the arguments are complete
  std::uint32_t number = 0;  ///< of the call in the row
};

/// The id of a call: of the answer, the choice and the call's number.
[[nodiscard]] std::string call_id(std::string_view answer, std::uint32_t index, std::uint32_t number);

/// An end caused by the server, not by the text: "drain", "timeout", "device_lost" or "response_bytes_max".
struct administrative_stop {
  std::string stop_reason;
  std::string request_id;
};

/// Whether an answer that ended for this reason can be continued: the server interrupted it, or its client
/// disconnected.
[[nodiscard]] bool is_parked(std::string_view stop_reason);

/// How one choice ended.
struct answer_end {
  finish_reason reason = finish_reason::stop;
  std::variant<std::monostate, std::string, token_id> stop_reason;  ///< the stop string or token that matched, if any
  std::optional<administrative_stop> administrative;                ///< written as the top-level object `rwkv`
};

/// One token with its log-probability. Texts are the bytes of tokens, which need not be whole characters.
struct logprob_entry {
  std::string text;
  std::optional<float> logprob;  ///< none for the first token of an echoed prompt, which has no context
  std::vector<std::pair<std::string, float>> top{};  ///< best first
  std::uint64_t text_offset = 0;  ///< completions: position in the choice's text in characters (utf8_length)
};

}  // namespace skein::protocol
