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

/// What the bodies and events of both OpenAI routes are made of. Plain values; chat_response and completion_response
/// write them.
namespace skein::protocol {

/// What all parts of one answer share.
struct answer_head {
  std::string id{};  ///< see answer_id
  std::string model;
  std::string system_fingerprint{};  ///< names model, weight type and build; empty: null
  std::int64_t created = 0;          ///< Unix seconds
  bool usage_follows = false;        ///< a usage event comes at the end of the stream
};

/// What an answer says of the session it was added to: the member `session` of a body and of a stream's last events.
struct session_note {
  std::string id;
  std::uint32_t version = 0;  ///< that now ends with this answer; with `stored` false, the one that it continued
  std::string durable;        ///< "memory", "process" or "power"
  bool stored = true;
  bool replayed = false;                ///< from the record of an earlier call with the same Idempotency-Key
  bool unfinished = false;              ///< kept aside: the session's newest version is still the one before
  std::optional<std::uint32_t> parent;  ///< native: the answer also says dialogue_idx and this
};

/// "chatcmpl-" or the like and 24 hex digits.
[[nodiscard]] std::string answer_id(std::string_view prefix, const std::array<std::uint8_t, 12>& random);

struct token_usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::uint64_t cached_tokens = 0;     ///< of the prompt
  std::uint64_t reasoning_tokens = 0;  ///< of the completion
};

enum class finish_reason : std::uint8_t { stop, length, tool_calls };
[[nodiscard]] std::string_view to_string(finish_reason reason);

/// What an answer asks a tool to do.
struct tool_call {
  std::string id, name;
  std::string arguments;  ///< an object, as JSON text
};

/// An end that the server, not the text, brought about: "drain", "timeout", "device_lost" or
/// "response_bytes_max".
struct administrative_stop {
  std::string stop_reason;
  std::string request_id;
};

/// Whether an answer that ended for this reason may be gone on with: the server broke it off, or its reader left.
[[nodiscard]] bool is_parked(std::string_view stop_reason);

/// How one choice ended.
struct answer_end {
  finish_reason reason = finish_reason::stop;
  std::variant<std::monostate, std::string, token_id> stop_reason;  ///< the string or token that matched, if one did
  std::optional<administrative_stop> administrative;                ///< written as the top-level object `rwkv`
};

/// One token with its log-probability. Texts are the tokens' bytes, which need not be whole characters.
struct logprob_entry {
  std::string text;
  std::optional<float> logprob;  ///< none: the first token of an echoed prompt, which nothing precedes
  std::vector<std::pair<std::string, float>> top{};  ///< best first
  std::uint64_t text_offset = 0;  ///< completions: characters of the choice's text before the token (utf8_length)
};

}  // namespace skein::protocol
