#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "protocol/answer_writer.hpp"
#include "protocol/generation_request.hpp"
#include "protocol/http_error.hpp"
#include "protocol/object_reader.hpp"

namespace skein::protocol {

/// How tokens are drawn and where answers end, where a request names nothing.
struct sampling_rules {
  float temperature = 1.0f, top_p = 1.0f;
  std::int32_t top_k = 0;
  float alpha_presence = 0.0f, alpha_frequency = 0.0f, alpha_decay = 1.0f;
  std::uint32_t max_tokens = 0;
  std::vector<std::string> turn_ends = {};  ///< stop strings
  /// The older servers' rules: each default stands alone, and top_p beyond 0 .. 1 means 1. Else naming one of
  /// temperature, top_p and top_k makes the others neutral.
  bool stands_alone = false;
  bool temperature_only = false;  ///< top_p, top_k, min_p and penalties are not read
  bool penalises_prompt = false;  ///< global_penalty
  bool noise = false;             ///< `noise` is, where limits.noise lets it
  bool stop_replaces = false;     ///< a request's `stop` stands in place of turn_ends
  std::string_view bias_field = "logit_bias";
  /// The classic order (sampling_params::filters_first); of the penalties presence lasts, and frequency counts and
  /// decays.
  bool classic = false;
};

struct dialect;

/// What a reader of bodies knows beside the body.
struct reading {
  const dialect& as;
  const model_preset& preset;
  const request_limits& limits;
};

/// One way in which clients ask for text: how bodies are read, what holds where they are silent, how answers are
/// written. All dialects stand as rows of one table (dialects.cpp); a route names its own.
struct dialect {
  std::string_view name;
  std::string_view prompt_field;  ///< the member that brings the prompts
  /// Reads the prompts, and sets what goes with them (chat, style, suffix).
  void (*read_prompts)(const object_reader& body, const reading& by, generation_request& out);
  sampling_rules (*rules)(const model_preset& preset);
  const answer_writer* writer;
  /// Reads what only this dialect knows, after all else; may be null.
  void (*read_more)(const object_reader& body, const reading& by, generation_request& out) = nullptr;
  error_style errors = error_style::openai;
  std::uint32_t chunk_size = 1;  ///< tokens collected before an event
  bool streams = false;          ///< unless the request says no
  bool sessions = true;          ///< session_id is read
  bool lenient = false;          ///< see generation_request
  /// Numbers and truths may come as texts, and fields inside the member of this name; empty: neither.
  std::string_view loose_values_in = {};
  bool may_be_open = false;  ///< a switch lets anybody in
  /// The dialect that a body is in, where a path has several; null: this one.
  const dialect* (*choose)(const object_reader& body) = nullptr;
};

/// A body as it was understood. The dialect says how its errors are written.
struct understood {
  const dialect* as;
  result<generation_request> request;
  std::string refusal;  ///< the body that says why there is none, where the dialect has one of its own
  std::vector<std::string> ignored = {};  ///< members that were not read, where limits.tells_ignored wants them
};

/// Parses and checks a body; all defaults are applied. Errors: invalid_argument or unsupported with `field` set to the
/// JSON field at fault ("messages[1].role"), or invalid_argument without a field for text that is not JSON; too_large
/// above body_bytes_max. Duplicate keys are refused. Unknown fields are ignored, null equals absent.
///
/// Stops: `stop` adds to the turn ends of the preset (chat only), since an answer also ends where the turn does;
/// `stop_tokens`, the native field, replaces them, so that an empty list leaves none. `ignore_eos` lifts them too.
/// Penalties: alpha_* names follow the native rule, OpenAI's names OpenAI's; where both are given the native name wins.
[[nodiscard]] understood read_request(std::string_view body, const dialect& spoken, const model_preset& preset,
                                      const request_limits& limits);

/// The table. A name says whose routes they are; the paths stand in the table of routes.
namespace dialects {
extern const dialect chat;           ///< OpenAI's conversations
extern const dialect completions;    ///< OpenAI's raw texts
extern const dialect responses;      ///< OpenAI's Responses API
extern const dialect socket;         ///< the same on a WebSocket: events, whatever a message says of `stream`
extern const dialect spoken_chat;    ///< /openai/v1: the same, refused where nobody says anything
extern const dialect shared_chat;    ///< OpenAI's, with the names for who speaks that RWKV-Runner's clients send
extern const dialect chat_or_batch;  ///< /v1/chat/completions: messages, contents or prompt
extern const dialect text_or_chat;   ///< /v1/completions: prompt or messages
extern const dialect state;          ///< one turn of a session, raw
extern const dialect multi_state;    ///< the same where the session is a tree
extern const dialect batch;          ///< /v1, `contents`: many raw prompts
extern const dialect batch_v2;       ///< the same with pad_zero and penalty_mode
extern const dialect batch_v3;       ///< the same with a template
extern const dialect big_batch;      ///< the same with nothing but a temperature
extern const dialect single_events;  ///< the same with one choice an event
extern const dialect fill_in;        ///< prefix and suffix
extern const dialect infill;         ///< llama-server: input_prefix and input_suffix
extern const dialect translate;      ///< text_list
extern const dialect infer_chat;     ///< RWKV-Infer and RWKV-Runner
extern const dialect infer_completions;
extern const dialect ai_chat;  ///< ai00: the same with its own defaults
extern const dialect ai_completions;
extern const dialect ai_choices;  ///< texts that are scored, and none drawn
extern const dialect resume;      ///< a chat that goes on after a pause; its body is read by control_request
}  // namespace dialects

}  // namespace skein::protocol
